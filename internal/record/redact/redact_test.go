package redact

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rules are those of words: "-/pointer" drops, "/pointer" masks.
func rulesOf(t testing.TB, words string) Rules {
	t.Helper()
	var drop, mask []string
	for _, word := range strings.Fields(words) {
		if pointer, ok := strings.CutPrefix(word, "-"); ok {
			drop = append(drop, pointer)
		} else {
			mask = append(mask, word)
		}
	}
	rules, err := Parse(drop, mask)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func TestApply_Rules(t *testing.T) {
	t.Parallel()
	const id = `"decision_id":"d"`
	for _, c := range []struct{ rules, log, want string }{
		{"/a", `{"b":1}`, "same"},
		{"", `{"b":1}`, "same"},
		{"-/a", `{"a":1}`, `{"erased":["/a"]}`},
		{"-/a -/b /c", `{ "a":1 , "b":2, "c" : [3] }`, `{ "c" : "**REDACTED**" ,"erased":["/a","/b"],"masked":["/c"]}`},
		{"-/a", `{` + id + ` , "a" : 1 , "b":2}`, `{` + id + ` , "b":2,"erased":["/a"]}`},
		{"-/a", `{ "a":1 ,` + id + `}`, `{ ` + id + `,"erased":["/a"]}`},
		{"-/a -/b", `{` + id + `,"a":1,"b":{"c":[]}, "d":0}`, `{` + id + `, "d":0,"erased":["/a","/b"]}`},
		{"-/a/b", `{"a":{"b":1}}`, `{"a":{},"erased":["/a/b"]}`},
		{"-/a/b", `{"a":{"b":1,"b":2,"c":3,"\u0062":4},"a":{"b":5}}`, `{"a":{"c":3},"a":{},"erased":["/a/b"]}`},
		{"/a", `{"a":1,"a":{"x":1},"\u0061":"\""}`, `{"a":"**REDACTED**","a":"**REDACTED**","\u0061":"**REDACTED**","masked":["/a"]}`},
		{"-/a/1 -/a/2 /a/0", `{"a":["x","y","z","w"]}`, `{"a":["**REDACTED**","w"],"erased":["/a/1","/a/2"],"masked":["/a/0"]}`},
		{"-/a/0 -/a/1", `{"a":[ {"b":1} , [2] ]}`, `{"a":[  ],"erased":["/a/0","/a/1"]}`},
		{"-/a/0 -/a/2", `{"a":[0,1,2]}`, `{"a":[1],"erased":["/a/0","/a/2"]}`},
		{"-/a/1", `{"a":{"1":"x","01":"y"},"b":["q"]}`, `{"a":{"01":"y"},"b":["q"],"erased":["/a/1"]}`},
		{"-/a/01 -/a/- -/a/-1 -/a/9", `{"a":["x"]}`, "same"},
		{"/a/*/b", `{"a":[{"b":1},{"c":2},3,{"b":{"b":4}}]}`, `{"a":[{"b":"**REDACTED**"},{"c":2},3,{"b":"**REDACTED**"}],"masked":["/a/*/b"]}`},
		{"-/a/*", `{"a":{"x":1,"y":2}}`, `{"a":{},"erased":["/a/*"]}`},
		{"-/a/*", `{"a":[]}`, "same"},
		{"-/a/*/0", `{"a":{"x":["k",2],"y":{"0":3},"z":[]}}`, `{"a":{"x":[2],"y":{},"z":[]},"erased":["/a/*/0"]}`},
		{"-/a/* /a/b", `{"a":{"b":1}}`, `{"a":{},"erased":["/a/*"]}`},
		{"/a -/a/b", `{"a":{"b":1}}`, `{"a":"**REDACTED**","masked":["/a"]}`},
		{"-/a /a/b", `{"a":{"b":1}}`, `{"erased":["/a"]}`},
		{"/a/b/c -/a/d", `{"a":{"b":{"c":1},"d":2}}`, `{"a":{"b":{"c":"**REDACTED**"}},"erased":["/a/d"],"masked":["/a/b/c"]}`},
		{"/a~1b/~01 /~0", `{"a/b":{"~1":1,"~01":2},"~":3}`, `{"a/b":{"~1":"**REDACTED**","~01":2},"~":"**REDACTED**","masked":["/a~1b/~01","/~0"]}`},
		{`/a"b`, `{"a\"b":1}`, `{"a\"b":"**REDACTED**","masked":["/a\"b"]}`},
		{"/é", `{"\u00e9":1}`, `{"\u00e9":"**REDACTED**","masked":["/é"]}`},
		{"/a/b", `{"a":null}`, "same"},
		{"/a/b", `{"a":"b"}`, "same"},
		{"/a", `{"a":null}`, `{"a":"**REDACTED**","masked":["/a"]}`},
		{"/A", `{"a":1}`, "same"},
		// Listed before.
		{"-/a /b", `{"erased":["/x", "/a"],"a":1,"b":2,"masked":[]}`, `{"erased":["/x", "/a"],"b":"**REDACTED**","masked":["/b"]}`},
		{"-/a /b", `{"a":1,"erased":[ "/x" ],"b":2,"masked":["/b"]}`, `{"erased":[ "/x" ,"/a"],"b":"**REDACTED**","masked":["/b"]}`},
		{"/a", `{"a":"**REDACTED**","masked":["\/a"]}`, "same"},
		{"/a", `{"a":"**REDACTED**"}`, `{"a":"**REDACTED**","masked":["/a"]}`},
		{"/a -/b", `{"a":1,"masked":null,"b":2,"erased":{"x":[1]}}`, `{"a":"**REDACTED**","masked":["/a"],"erased":[{"x":[1]},"/b"]}`},
		{"/a", `{"masked":"x","a":1}`, `{"masked":["x","/a"],"a":"**REDACTED**"}`},
		{"-/a /b", `{"a":1,"b":2,"masked":3}`, `{"b":"**REDACTED**","masked":[3,"/b"],"erased":["/a"]}`},
		{"/a", "{\n\t\"a\": 1\n}\n", "{\n\t\"a\": \"**REDACTED**\"\n,\"masked\":[\"/a\"]}\n"},
	} {
		rules := rulesOf(t, c.rules)
		want := c.want
		if want == "same" {
			want = c.log
		}
		got, err := rules.Apply([]byte(c.log))
		if err != nil || string(got) != want {
			t.Errorf("%s of %s: %v\n got %s\nwant %s", c.rules, c.log, err, got, want)
			continue
		}
		if again, err := rules.Apply(got); strings.Contains(c.rules, "/0 ") || strings.Contains(c.rules, "*/0") || strings.Contains(c.rules, "/1 ") {
			continue // the next element has the index now
		} else if err != nil || string(again) != want {
			t.Errorf("%s a second time: %v\n got %s\nwant %s", c.rules, err, again, want)
		}
	}
}

func TestApply_NothingToRedact(t *testing.T) {
	t.Parallel()
	log := []byte(`{"decision_id":"d","input":{"user":"u"}}`)
	got, err := rulesOf(t, "-/input/password /result/token").Apply(log)
	if err != nil || &got[0] != &log[0] || len(got) != len(log) {
		t.Errorf("got %s, %v, in other memory: %v", got, err, &got[0] != &log[0])
	}
	before := string(log)
	if _, err := rulesOf(t, "-/input/user").Apply(log); err != nil || string(log) != before {
		t.Errorf("%v; the decision that was given became %s", err, log)
	}
}

func TestApply_NoObject(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, "-/a /b/c")
	for _, log := range []string{"", " ", "null", "7", `"a"`, `[{"a":1}]`, "[]", "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{"a":1}x`, `{"a":1}{"a":1}`, `{"b":{"c":1}`, `{"b":{"c" 1}}`, `{"b":{"c":1,}}`, `{"x":"`, `{"x":"\`} {
		if got, err := rules.Apply([]byte(log)); !errors.Is(err, ErrNoObject) || got != nil {
			t.Errorf("%s: got %s, %v", log, got, err)
		}
	}
	if got, err := (Rules{}).Apply([]byte("{")); err != nil || string(got) != "{" {
		t.Errorf("without rules: %s, %v", got, err)
	}
}

func TestParse_RefusesPointers(t *testing.T) {
	t.Parallel()
	for _, pointer := range []string{"", "/", "input", "input/password", "/input/", "/input//a", "//", "/a~", "/a~2", "/a/~", "/*", "/*/a", "/decision_id", "/timestamp", "/erased", "/masked", "/masked/0", "/erased/*", "/a\n", "/\x00", "/\xff", "$.input", "#/input", " /input"} {
		for _, lists := range [][2][]string{{{"/ok", pointer}, nil}, {nil, {pointer, "/ok"}}} {
			rules, err := Parse(lists[0], lists[1])
			if err == nil || !strings.Contains(err.Error(), strconv.Quote(pointer)) || strings.Contains(err.Error(), `"/ok"`) || !rules.Empty() {
				t.Errorf("%q: %v", pointer, err)
			}
		}
	}
	for _, pointer := range []string{"/labels", "/bundles", "/req_id"} {
		if _, err := Parse(nil, []string{pointer}); err == nil {
			t.Errorf("%s may be masked", pointer)
		}
		if _, err := Parse([]string{pointer}, []string{pointer + "/x"}); err != nil {
			t.Error(err)
		}
	}
	_, err := Parse([]string{"one"}, []string{"two", "/fine"})
	if err == nil || !strings.Contains(err.Error(), `drop "one"`) || !strings.Contains(err.Error(), `mask "two"`) {
		t.Errorf("not all are named: %v", err)
	}
	if rules, err := Parse(nil, nil); err != nil || !rules.Empty() {
		t.Errorf("%v, %v", rules, err)
	}
	if rules, err := Parse([]string{"/a", "/a"}, []string{"/a", "/b"}); err != nil || rules.Empty() || len(rules.rules) != 2 || !rules.rules[0].drop {
		t.Errorf("%v, %v", rules, err)
	}
}
