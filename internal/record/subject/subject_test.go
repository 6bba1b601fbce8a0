package subject

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"go.uber.org/goleak"

	"docket/internal/record/decision"
	"docket/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse_Forms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Spec{
		"requested_by": {}, "requested_by:host": {Kind: RequestedByHost}, "decision_id": {Kind: DecisionID},
		"label:team": {Kind: Label, Label: "team"}, "label:a:b/c": {Kind: Label, Label: "a:b/c"},
		"input:/user/name": {Kind: Input, Pointer: "/user/name"}, "input:/": {Kind: Input, Pointer: "/"}, "input:/a~1b/~01/0": {Kind: Input, Pointer: "/a~1b/~01/0"},
	} {
		got, err := Parse(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: got %+v, %v, which is written %s", text, got, err, got)
		}
	}
}

func TestParse_RefusesOtherForms(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "requested_by:", "requested_by:port", "Requested_by", "label:", "label", "labels:a", "input", "input:", "input:user", "input:/a~", "input:/a~2b", "input:/~", "label:a\nb", "label:\xff", "id"} {
		if got, err := Parse(text); !errors.Is(err, ErrForm) || !strings.Contains(err.Error(), strconv.Quote(text)) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

func TestOf_ValueAtThePlace(t *testing.T) {
	t.Parallel()
	const log = ` { "labels" : {"team":"a","n":7,"team":"\u0062","none":null,"deep":{"team":"c"}}, "decision_id":"d1","timestamp":"2026-11-21T02:00:39Z",
	"input":{"user":"first","user":{"na\u006de":"z\u00e9\"","name/x":"slash","~":"tilde","~1":"both","":"empty"},"list":[[1,{"a":-1.50}],"b",true,null,"",[],{}],
	"yes":true,"no":false,"e":1e2,"gone":"x","gone":null,"twice":{"a":1},"twice":{"b":2},"0":"zero", "emoji":"\ud83d\ude00"}, "requested_by" : "10.0.7.19:53022" } `
	for text, want := range map[string]string{
		"requested_by": "10.0.7.19:53022", "requested_by:host": "10.0.7.19", "decision_id": "d1",
		"label:team": "b", "label:n": "7", "label:none": "-", "label:deep": "-", "label:other": "-", "label:TEAM": "-",
		"input:/user/name": `zé"`, "input:/user/name~1x": "slash", "input:/user/~0": "tilde", "input:/user/~01": "both", "input:/user/": "empty",
		"input:/list/0/1/a": "-1.50", "input:/list/0/0": "1", "input:/list/1": "b", "input:/list/2": "true", "input:/list/3": "-", "input:/list/4": "-", "input:/list/5": "-", "input:/list/6": "-",
		"input:/list/7": "-", "input:/list/01": "-", "input:/list/-": "-", "input:/list/-1": "-", "input:/list/+1": "-", "input:/list/": "-", "input:/list/1/a": "-", "input:/list/4294967297": "-",
		"input:/yes": "true", "input:/no": "false", "input:/e": "1e2", "input:/gone": "-", "input:/twice/a": "-", "input:/twice/b": "2", "input:/user": "-", "input:/0": "zero",
		"input:/yes/a": "-", "input:/": "-", "input:/emoji": "😀",
	} {
		spec, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := spec.Of([]byte(log)); ok != (want != "-") || ok && got != want || !ok && got != "" {
			t.Errorf("%s: got %q, %v; want %q", text, got, ok, want)
		}
	}
}

func TestOf_NoSubject(t *testing.T) {
	t.Parallel()
	for _, log := range []string{
		`{"decision_id":"","timestamp":"t"}`, `{}`, `{"requested_by":null,"labels":null,"input":null}`, `{"requested_by":"","labels":{},"input":[]}`, `{"input":"a","labels":{"a":""}}`,
		`{"result":{"requested_by":"a"},"input":{"decision_id":"a","labels":{"a":"b"}}}`,
		// Not valid input, but it must not panic.
		``, `{`, `{"requested_by"`, `{"requested_by":`, `{"requested_by":"`, `{"requested_by":"\`, `{"input":{"a":[`, `[]`, `7`, `{"input":{"a"}`,
	} {
		for _, spec := range []Spec{{}, {Kind: RequestedByHost}, {Kind: Label, Label: "a"}, {Kind: Input, Pointer: "/a"}, {Kind: DecisionID}} {
			if got, ok := spec.Of([]byte(log)); ok || got != "" {
				t.Errorf("%s of %s: got %q, %v", spec, log, got, ok)
			}
		}
	}
}

func TestHost_RemovesThePort(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"10.0.7.19:53022": "10.0.7.19", "10.0.7.19": "10.0.7.19", "[2001:db8::1]:443": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "2001:db8::1": "2001:db8::1", "::1": "::1",
		"[fe80::1%eth0]:1": "fe80::1%eth0", "host.example:80": "host.example", "host": "host", "team:alice": "team:alice", "a:123456": "a:123456", "a:": "a:", ":80": "", "": "", "[]:80": "", "a:b:80": "a:b:80", "@": "@",
	} {
		if got := Host(address); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

// TestOf_AgreesWithEncodingJSON reads real decision logs, also with jsonb's order and spacing.
func TestOf_AgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	found := 0
	for _, log := range sample.DecisionLogs() {
		record, refusal := decision.Decode(log, 1<<30)
		if refusal != nil || len(record.Parts) != 1 || record.Parts[0].Err != nil {
			continue
		}
		for _, text := range []string{"requested_by", "label:id", "label:version", "input:/method", "input:/path/0", "input:/user", "input:/attributes/request/http/method", "decision_id"} {
			spec, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := spec.Of(log)
			if want, has := standard(t, log, text); got != want || ok != has {
				t.Fatalf("%s: got %q, %v; want %q, %v of %s", text, got, ok, want, has, log)
			}
			if ok {
				found++
			}
		}
	}
	if found < 3000 {
		t.Errorf("only %d places had something", found)
	}
}

// standard reads the subject again by encoding/json, where the last of equal names wins too.
func standard(t *testing.T, log []byte, text string) (string, bool) {
	t.Helper()
	var value any
	if err := json.Unmarshal(log, &value); err != nil {
		t.Fatal(err)
	}
	kind, rest, _ := strings.Cut(text, ":")
	pointer := "/" + kind
	switch kind {
	case "label":
		pointer = "/labels/" + rest
	case "input":
		pointer = "/input" + rest
	}
	for _, segment := range strings.Split(pointer[1:], "/") {
		switch v := value.(type) {
		case map[string]any:
			value = v[segment]
		case []any:
			i, err := strconv.Atoi(segment)
			if value = nil; err == nil && i < len(v) {
				value = v[i]
			}
		default:
			value = nil
		}
	}
	said, ok := value.(string)
	return said, ok && said != ""
}

func FuzzOf(f *testing.F) {
	for _, log := range sample.DecisionLogs()[:50] {
		f.Add(string(log), "/path/0")
	}
	f.Add(`{"decision_id":"d","timestamp":"2026-11-21T02:00:39Z","input":{"a":{"b":"\u0041"},"a":["x"]}}`, "/a/0")
	f.Fuzz(func(t *testing.T, log, pointer string) {
		spec := Spec{Kind: Input, Pointer: pointer}
		if pointer != "" && checkPointer(pointer) != nil {
			return
		}
		got, ok := spec.Of([]byte(log)) // no input may make it panic
		record, refusal := decision.Decode([]byte(log), 1<<20)
		if refusal != nil || record.Parts[0].Err != nil || record.Inflated > 0 || !json.Valid([]byte(log)) || log[0] == '[' {
			return
		}
		if strings.ContainsFunc(pointer, func(r rune) bool { return !unicode.IsLetter(r) && r != '/' }) || pointer == "" {
			return // the second reading knows only plain segments
		}
		want, has := standard(t, []byte(log), "input:"+pointer)
		if has && (!ok || got != want) {
			t.Fatalf("got %q, %v; want %q", got, ok, want)
		}
	})
}

//nolint:paralleltest // it measures what is the whole process's
func TestOf_OneAllocation(t *testing.T) {
	log := sample.DecisionLogs()[0]
	for _, spec := range []Spec{{}, {Kind: RequestedByHost}, {Kind: Label, Label: "id"}, {Kind: DecisionID}} {
		if _, ok := spec.Of(log); !ok {
			t.Fatalf("the first has no %s", spec)
		}
		if got := testing.AllocsPerRun(100, func() { spec.Of(log) }); got > 1 {
			t.Errorf("%s: %v allocations", spec, got)
		}
	}
}

func BenchmarkSubject(b *testing.B) {
	logs := sample.DecisionLogs()
	spec := Spec{}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		spec.Of(logs[i%len(logs)])
	}
}
