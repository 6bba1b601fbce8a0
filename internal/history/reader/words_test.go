package reader_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/internal/history/reader"
)

func TestParseMatch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]reader.Match{
		"input:/user=alice":               {In: "input", Pointer: "/user", Value: json.RawMessage(`"alice"`)},
		`input:/user="alice"`:             {In: "input", Pointer: "/user", Value: json.RawMessage(`"alice"`)},
		"result:/allow=false":             {In: "result", Pointer: "/allow", Value: json.RawMessage(`false`)},
		"raw:/error":                      {In: "raw", Pointer: "/error"},
		"result=true":                     {In: "result", Value: json.RawMessage(`true`)},
		"result:=true":                    {In: "result", Value: json.RawMessage(`true`)},
		"result":                          {In: "result"},
		"input:/path= [ 1, 2 ] ":          {In: "input", Pointer: "/path", Value: json.RawMessage(`[ 1, 2 ]`)},
		"input:/n=1e300":                  {In: "input", Pointer: "/n", Value: json.RawMessage(`1e300`)},
		"input:/n=":                       {In: "input", Pointer: "/n", Value: json.RawMessage(`""`)},
		"input:/q=a=b":                    {In: "input", Pointer: "/q", Value: json.RawMessage(`"a=b"`)},
		"input:/q=a:b":                    {In: "input", Pointer: "/q", Value: json.RawMessage(`"a:b"`)},
		`input:"/a=b/c"=1`:                {In: "input", Pointer: "/a=b/c", Value: json.RawMessage(`1`)},
		`input:/a~1b/~0c=null`:            {In: "input", Pointer: "/a~1b/~0c", Value: json.RawMessage(`null`)},
		"input:/":                         {In: "input", Pointer: "/"},
		"input:/note=\"\\ud83d\\ude80\"":  {In: "input", Pointer: "/note", Value: json.RawMessage(`"\ud83d\ude80"`)},
		"raw:/labels/app=<checkout>":      {In: "raw", Pointer: "/labels/app", Value: json.RawMessage(`"\u003ccheckout\u003e"`)},
		"input:/percent=012":              {In: "input", Pointer: "/percent", Value: json.RawMessage(`"012"`)},
		"input:/user=" + `{"a":{"b":[]}}`: {In: "input", Pointer: "/user", Value: json.RawMessage(`{"a":{"b":[]}}`)},
	} {
		m, err := reader.ParseMatch(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestParseMatch_RefusesImpossibleValues(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "user=alice", "Input:/a=1", "labels:/a=1", "input:user=alice", "input:/a~2=1", "input:/a~=1", `input:"/a=1`, `input:"/a"1`,
		`input:/a="\u0000"`, `input:/a="\ud800"`, "input:/a=\x00", "input:/a=\xff", "input:/\xff=1", "input:/a\x00=1", "input:/n=1e999999",
		"input:/a=" + strings.Repeat("x", reader.MaxMatchBytes+1), "input:/" + strings.Repeat("a", 5000),
		"input:/a=" + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + "x\x00",
	} {
		m, err := reader.ParseMatch(text)
		if w := (*reader.WordError)(nil); !errors.As(err, &w) || !reader.IsWord(err) {
			t.Errorf("%.40q: %+v, %v", text, m, err)
		}
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 20, 15, 3, 0, time.FixedZone("", 3600))
	for text, want := range map[string]string{
		"now": "2026-11-21T19:15:03Z", "2h": "2026-11-21T17:15:03Z", "90m": "2026-11-21T17:45:03Z", "7d": "2026-11-14T19:15:03Z", "0.5d": "2026-11-21T07:15:03Z", "1w": "2026-11-14T19:15:03Z",
		"0s": "2026-11-21T19:15:03Z", "1h30m": "2026-11-21T17:45:03Z", "2026-11-21": "2026-11-21T00:00:00Z", "2026-11-21T20:15:00+02:00": "2026-11-21T18:15:00Z",
		"2026-11-21T20:15:00.000001Z": "2026-11-21T20:15:00.000001Z",
		"today":                       "2026-11-21T00:00:00Z", "yesterday": "2026-11-20T00:00:00Z", "Yesterday": "2026-11-20T00:00:00Z", // it is a Saturday
		"saturday": "2026-11-21T00:00:00Z", "friday": "2026-11-20T00:00:00Z", "MONDAY": "2026-11-16T00:00:00Z", "sunday": "2026-11-15T00:00:00Z",
	} {
		at, err := reader.ParseTime(text, now)
		if err != nil || at.Format(time.RFC3339Nano) != want || at.Location() != time.UTC {
			t.Errorf("%s: %s, %v; want %s", text, at.Format(time.RFC3339Nano), err, want)
		}
	}
	for _, text := range []string{"", "2", "-2h", "-1d", "NaNd", "Infd", "1e300d", "999999d", "tomorrow", "mon", "day", "yesterday 10:00", "2026-13-01", "0000-01-01", "9999-12-31T23:59:59-10:00", "2026-11-21 20:15"} {
		if at, err := reader.ParseTime(text, now); !reader.IsWord(err) {
			t.Errorf("%q: %s, %v", text, at, err)
		}
	}
}

// TestDays_AreThoseOfUTC: also if the local clock is on another day.
func TestDays_AreThoseOfUTC(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 0, 30, 0, 0, time.FixedZone("", 3600)) // a Monday there, a Sunday in UTC
	for text, want := range map[string]string{"today": "2026-11-22", "yesterday": "2026-11-21", "monday": "2026-11-16", "sunday": "2026-11-22"} {
		if at, err := reader.ParseTime(text, now); err != nil || at.Format(time.RFC3339) != want+"T00:00:00Z" {
			t.Errorf("%s: %v, %v", text, at, err)
		}
	}
}

func TestParseVerdict_AndLabel(t *testing.T) {
	t.Parallel()
	for _, v := range reader.Verdicts() {
		if got, err := reader.ParseVerdict(" " + strings.ToUpper(string(v)) + " "); got != v || err != nil {
			t.Errorf("%s: %s, %v", v, got, err)
		}
	}
	if slices.Contains(reader.Verdicts(), "") {
		t.Error("no verdict is empty")
	}
	for _, text := range []string{"", "deny", "allow", "denied,allowed"} {
		if v, err := reader.ParseVerdict(text); !reader.IsWord(err) {
			t.Errorf("%q: %s, %v", text, v, err)
		}
	}
	if k, v, err := reader.ParseLabel("app=a=b"); k != "app" || v != "a=b" || err != nil {
		t.Errorf("%q %q %v", k, v, err)
	}
	if k, v, err := reader.ParseLabel("app="); k != "app" || v != "" || err != nil {
		t.Errorf("%q %q %v", k, v, err)
	}
	for _, text := range []string{"", "app", "=x", "a\x00=b", "a=\xff"} {
		if _, _, err := reader.ParseLabel(text); !reader.IsWord(err) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParsePointer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{"": nil, "/": {""}, "/a/b": {"a", "b"}, "/~01/~10/0": {"~1", "/0", "0"}, "//": {"", ""}} {
		if steps, err := reader.ParsePointer(text); err != nil || !slices.Equal(steps, want) {
			t.Errorf("%q: %q, %v", text, steps, err)
		}
	}
}

// FuzzMatch: Postgres accepts every parsed match.
func FuzzMatch(f *testing.F) {
	for _, text := range []string{"input:/user=alice", `input:"/a=b"=1`, "result", "raw:/error", `input:/a="\ud800"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := reader.ParseMatch(text)
		if err != nil {
			if !reader.IsWord(err) {
				t.Errorf("%v is no WordError", err)
			}
			return
		}
		if m.Value != nil && !json.Valid(m.Value) || strings.ContainsRune(m.Pointer, 0) {
			t.Errorf("%+v", m)
		}
		if _, err := reader.ParsePointer(m.Pointer); err != nil {
			t.Error(err)
		}
	})
}
