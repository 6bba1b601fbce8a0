package reader_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"docket/internal/history/reader"
)

func told(d reader.Differences) string {
	var out []string
	for _, c := range d.Changes {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s>%s", c.Kind, c.Pointer, c.Old, c.New)))
	}
	if d.More > 0 {
		out = append(out, fmt.Sprintf("and %d more", d.More))
	}
	return strings.Join(out, "; ")
}

func TestDiff_Changes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b, want string
		all        bool
	}{
		{a: `{"a":1}`, b: `{"a":1.0}`},
		{a: `{"a":1e2}`, b: `{"a":100}`},
		{a: `{"a":-0.0}`, b: `{"a":0}`},
		{a: `{"a":0.10}`, b: `{"a":1e-1}`},
		{a: `{"a":12345678901234567890123456789}`, b: `{"a":12345678901234567890123456788}`, want: "changed /a 12345678901234567890123456789>12345678901234567890123456788"},
		{a: `{"a":1e300}`, b: `{"a":` + "1" + strings.Repeat("0", 299) + `}`, want: "changed /a 1e300>1e299"},
		{a: `{"a":1}`, b: `{"a":"1"}`, want: `changed /a 1>"1"`},
		{a: `{"a":true}`, b: `{"a":"true"}`, want: `changed /a true>"true"`},
		{a: `{"a":null}`, b: `{}`, want: "removed /a null>"},
		{a: `{}`, b: `{"a":[]}`, want: "added /a >[]"},
		{a: `{"a":[]}`, b: `{"a":{}}`, want: "changed /a []>{}"},
		{a: `{"b":1,"a":2}`, b: `{"a":2,"b":1}`},
		{a: `["a","b","c","d"]`, b: `["b","c","d"]`, want: `removed /0 "a">`},
		{a: `["b","c"]`, b: `["a","b","x","c"]`, want: `added /0 >"a"; added /2 >"x"`},
		{a: `["k","b","m","y"]`, b: `["x","k","m"]`, want: `added /0 >"x"; removed /1 "b">; removed /3 "y">`},
		{a: `[1,2]`, b: `[2,1]`, want: "removed /0 1>; added /1 >1"},
		{a: `[{"n":1,"v":1},{"n":2}]`, b: `[{"n":1,"v":2},{"n":2}]`, want: "changed /0/v 1>2"},
		{a: `{"a~/b":{"":1}}`, b: `{"a~/b":{"":2}}`, want: "changed /a~0~1b/ 1>2"},
		{a: `1`, b: `2`, want: "changed  1>2"},
		{a: `{"decision_id":"a","timestamp":"x","req_id":1,"metrics":{"m":1},"trace_id":"t","requested_by":"10.0.0.7:1"}`, b: `{"decision_id":"b","timestamp":"y","req_id":2,"requested_by":"10.0.0.7:2"}`},
		{a: `{"requested_by":"10.0.0.7:1"}`, b: `{"requested_by":"10.0.0.8:1"}`, want: `changed /requested_by "10.0.0.7:1">"10.0.0.8:1"`},
		{a: `{"requested_by":"10.0.0.7:1","req_id":1}`, b: `{"requested_by":"10.0.0.7:2","req_id":2}`, all: true, want: `changed /req_id 1>2; changed /requested_by "10.0.0.7:1">"10.0.0.7:2"`},
		{a: `{"input":{"timestamp":1}}`, b: `{"input":{"timestamp":2}}`, want: "changed /input/timestamp 1>2"},
	} {
		d, err := reader.Diff(json.RawMessage(c.a), json.RawMessage(c.b), reader.DiffOptions{All: c.all})
		if err != nil || told(d) != c.want {
			t.Errorf("%s and %s: %s (%v); want %s", c.a, c.b, told(d), err, c.want)
		}
	}
	for _, bad := range []string{"", "{", "1 2", "nul"} {
		if _, err := reader.Diff(json.RawMessage(bad), json.RawMessage("1"), reader.DiffOptions{}); !errors.Is(err, reader.ErrNotJSON) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestDiff_Limits(t *testing.T) {
	t.Parallel()
	var a, b []string
	for i := range 5000 {
		a, b = append(a, fmt.Sprint(i)), append(b, fmt.Sprint(-1-i))
	}
	list := func(s []string) json.RawMessage { return json.RawMessage("[" + strings.Join(s, ",") + "]") }
	d, err := reader.Diff(list(a), list(b), reader.DiffOptions{Most: 7})
	if err != nil || len(d.Changes) != 7 || d.More != 4993 {
		t.Errorf("%d and %d more, %v", len(d.Changes), d.More, err)
	}
	long, err := json.Marshal(strings.Repeat("é", 5000))
	if err != nil {
		t.Fatal(err)
	}
	d, err = reader.Diff(json.RawMessage("1"), long, reader.DiffOptions{})
	if err != nil || d.Changes[0].New != nil || len(d.Changes[0].NewCut) > reader.MaxValueBytes || !strings.HasPrefix(d.Changes[0].NewCut, `"éé`) {
		t.Errorf("%+v, %v", d, err)
	}
}

// patched returns a with the changes applied, for values without lists.
func patched(t *testing.T, a any, d reader.Differences) any {
	t.Helper()
	for _, c := range d.Changes {
		steps, err := reader.ParsePointer(c.Pointer)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if c.New != nil {
			if err := json.Unmarshal(c.New, &v); err != nil {
				t.Fatal(err)
			}
		}
		if len(steps) == 0 {
			return v
		}
		at, ok := a.(map[string]any)
		for _, step := range steps[:len(steps)-1] {
			at, ok = at[step].(map[string]any)
		}
		if !ok {
			t.Fatalf("%s leads nowhere", c.Pointer)
		}
		if last := steps[len(steps)-1]; c.Kind == reader.Removed {
			delete(at, last)
		} else {
			at[last] = v
		}
	}
	return a
}

// FuzzDiff: equal values have no changes, the changes make the old value the new one (lists aside), and the result is
// bounded.
func FuzzDiff(f *testing.F) {
	f.Add(`{"a":[1,2],"b":{"c":null}}`, `{"a":[2],"b":{"c":1e5}}`)
	f.Add(`{"requested_by":"a:1"}`, `[]`)
	f.Add(`"\u001b[31m"`, `{"\u0000":"\ud800"}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		d, err := reader.Diff(json.RawMessage(a), json.RawMessage(b), reader.DiffOptions{All: true})
		if valid := json.Valid([]byte(a)) && json.Valid([]byte(b)); err != nil || !valid {
			if valid || err == nil {
				t.Fatalf("valid %t, %v", valid, err)
			}
			return
		}
		if len(d.Changes) > reader.MaxChanges {
			t.Fatalf("%d changes", len(d.Changes))
		}
		for _, c := range d.Changes {
			if len(c.Old) > reader.MaxValueBytes || len(c.New) > reader.MaxValueBytes || len(c.OldCut) > reader.MaxValueBytes || len(c.NewCut) > reader.MaxValueBytes {
				t.Fatal("a value is not cut")
			}
		}
		if equal, err := reader.Diff(json.RawMessage(b), json.RawMessage(b), reader.DiffOptions{All: true}); err != nil || len(equal.Changes) > 0 {
			t.Fatalf("%v, %v", equal, err)
		}
		whole := d.More == 0 && len(a)+len(b) < reader.MaxValueBytes && !strings.ContainsAny(a+b, "[")
		var was any
		if !whole || json.Unmarshal([]byte(a), &was) != nil {
			return
		}
		text, err := json.Marshal(patched(t, was, d))
		if err != nil {
			t.Fatal(err)
		}
		if left, err := reader.Diff(text, json.RawMessage(b), reader.DiffOptions{All: true}); err == nil && len(left.Changes) > 0 && exact(a+b) {
			t.Fatalf("%s and %s: %s are not all", a, b, told(d))
		}
	})
}

// exact reports whether float64 holds the numbers exactly.
func exact(text string) bool {
	return !strings.ContainsAny(text, "eE.") && !strings.Contains(text, "00000") && len(text) < 15
}
