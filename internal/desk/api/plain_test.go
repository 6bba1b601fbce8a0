package api

import (
	"fmt"
	"strings"
	"testing"
)

func TestAmbiguousJSON(t *testing.T) {
	t.Parallel()
	for body, wrong := range map[string]bool{
		`{"a":1,"b":{"a":[1,{"a":2},{"a":"a"}]},"c":"b"}`: false, `{"a":{},"b":[],"c":1}`: false, `["a","a"]`: false, `{"a":"a","b":"a"}`: false, ``: false, `{"a"`: false,
		`{"a":1,"a":1}`: true, `{"a":{"b":1,"b":2}}`: true, `[{"a":[],"a":1}]`: true, `{"a":{},"a":1}`: true, "{\"a\":1,\"\\u0061\":2}": true,
		`null`: true, `[null]`: true, `{"a":null}`: true, `{"a":[1,{"b":null}]}`: true, `{"null":"null"}`: false,
	} {
		if got := ambiguousJSON([]byte(body)); (got != "") != wrong {
			t.Errorf("%s: %q", body, got)
		}
	}
}

func TestAmbiguousJSON_StopsAtTooManyLevels(t *testing.T) {
	t.Parallel()
	names := make([]string, 2*maxNames)
	for i := range names {
		names[i] = fmt.Sprintf(`"n%d":1`, i)
	}
	for what, body := range map[string]string{
		"levels": strings.Repeat("[", 1<<20), "names": "{" + strings.Join(names, ",") + "}",
		"objects": "[" + strings.Repeat(`{"a":1},`, 2*maxNames) + "1]", "objects in objects": strings.Repeat(`{"a":`, 1<<10),
	} {
		if got := ambiguousJSON([]byte(body)); got == "" {
			t.Errorf("%s are taken", what)
		}
	}
	if got := ambiguousJSON([]byte(strings.Repeat("[", maxLevels) + strings.Repeat("]", maxLevels))); got != "" {
		t.Error(got)
	}
}
