package decision

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestClaimOf(t *testing.T) {
	t.Parallel()
	const id, at = `"decision_id":"a-1"`, `"timestamp":"2026-03-01T12:00:00.5+01:00"`
	noon := time.Date(2026, 3, 1, 11, 0, 0, 500_000_000, time.UTC)
	for value, want := range map[string]Claim{
		`{` + id + `,` + at + `}`:                                     {ID: "a-1", Time: noon},
		` { "x" : [1,{"decision_id":"no"},"]\"}"] , ` + id + `,` + at: {ID: "a-1", Time: noon},
		`{` + id + `,"path":5,` + at + `}`:                            {ID: "a-1", Time: noon},
		`{` + id + `,` + id + `,"decision_id":"b"}`:                   {ID: "a-1"},
		`{` + id + `,"timestamp":"yesterday"}`:                        {ID: "a-1"},
		`{` + at + `,"decision_id":7}`:                                {Time: noon},
		`{` + id + `,"x":tru`:                                         {ID: "a-1"},
		`{` + id + `,"x":"` + "\xff" + `",` + at + `}`:                {ID: "a-1"},
		`{"x":"` + strings.Repeat("y", 1<<16) + `",` + id + `}`:       {ID: "a-1"},
		`{"decision_id":"é\u0000\ud800\ud83d\ude00\/"}`:               {ID: "é\ufffd\ufffd😀/"},
		`{"decision_id":"a\x"}`:                                       {},
		`{"decision_id":"a`:                                           {},
		`{"decision_id":"a\u12`:                                       {},
		`[{` + id + `}]`:                                              {},
		`{"a":{` + id + `}}`:                                          {},
		`"decision_id"`:                                               {},
		"":                                                            {},
	} {
		for name, given := range map[string][]byte{"plain": []byte(value), "gzip": zip(t, value), "gzip that ends early": early(t, value)} {
			got := ClaimOf(given)
			if got.ID != want.ID || !got.Time.Equal(want.Time) || (got.Escaped == nil) != (want.ID == "") {
				t.Errorf("%s, %s: %+v, want %+v", name, value, got, want)
			}
		}
	}
}

func TestClaimsOf(t *testing.T) {
	t.Parallel()
	const a, b = `{"decision_id":"a","timestamp":"2026-03-01T12:00:00Z"}`, `{"path":"]","decision_id":"b","x":[{"decision_id":"no"},1]}`
	for value, want := range map[string]string{
		"[" + a + "," + b + ",]":                        "0 a true 1 b false",
		" [\n " + b + " , 7, null ,\n" + a + "] behind": "0 b false 3 a true",
		"[" + a + `,{"decision_id":"c","x":tru},` + b:   "0 a true 1 c false 2 b false",
		"[" + a + `,{"x":"\q"},` + b + "]":              "0 a true",
		"[" + a + `,{"decision_id":"d","x":"torn`:       "0 a true 1 d false",
		"[{" + a + "},[" + a + "]," + b + "]":           "2 b false",
		"[]":                                            "",
		"[":                                             "",
		a:                                               "",
		a + "\n" + b:                                    "",
		"":                                              "",
	} {
		for name, given := range map[string][]byte{"plain": []byte(value), "gzip": zip(t, value), "gzip that ends early": early(t, value)} {
			var got []string
			for place, c := range ClaimsOf(given, 1<<20) {
				got = append(got, fmt.Sprint(place, " ", c.ID, " ", !c.Time.IsZero()))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s, %s: %q, want %q", name, value, got, want)
			}
		}
	}
	for place := range ClaimsOf(zip(t, "["+a+","+strings.Repeat(" ", 100)+b+"]"), 100) {
		if place > 0 {
			t.Error("it reads behind the limit")
		}
	}
	for place := range ClaimsOf([]byte("["+a+","+b+"]"), 1<<20) {
		if place > 0 {
			t.Error("it yields after the end of the loop")
		}
		break
	}
}

// early removes the checksum behind the content.
func early(t *testing.T, value string) []byte {
	t.Helper()
	b := zip(t, value)
	return b[:len(b)-8]
}

// For decisions that the decoder accepts, the claim equals the decoded identity.
func FuzzClaimOf(f *testing.F) {
	for _, seed := range []string{
		`{"decision_id":"a","timestamp":"2026-03-01T12:00:00Z","x":[1,{"a":"\\\""}]}`, ` {"decision_id":"\u0041é\ud83d\ude00","timestamp":"2026-03-01T12:00:00Z"}`,
		`{"decision_id":"a","decision_id":"b"}`, `{"decision_id":"a\`, `[{"decision_id":"a"}]`, "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		c := ClaimOf(value)
		if !utf8.ValidString(c.ID) || strings.ContainsRune(c.ID, 0) {
			t.Fatalf("%q", c.ID)
		}
		for place, c := range ClaimsOf(value, 1<<20) {
			if c.ID == "" || !utf8.ValidString(c.ID) || strings.ContainsRune(c.ID, 0) || place < 0 || place >= MaxDecisions {
				t.Fatalf("%d %q", place, c.ID)
			}
		}
		record, refused := Decode(value, 1<<20)
		if refused != nil || !record.Sole || record.Parts[0].Err != nil || IsGzip(value) || trim(value)[0] != '{' {
			return
		}
		if log := record.Parts[0].Log; c.ID != log.ID || !c.Time.Equal(log.Time) {
			t.Fatalf("%q claims %q at %v, and is %q at %v", value, c.ID, c.Time, log.ID, log.Time)
		}
	})
}
