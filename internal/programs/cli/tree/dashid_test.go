package tree

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/testkit/readertest"
)

// TestAdvice_IDLikeAFlag: a command that an answer suggests works as it is pasted, also for an id that looks like a flag.
func TestAdvice_IDLikeAFlag(t *testing.T) {
	t.Parallel()
	s := &readertest.Store{Now: func() time.Time { return now }}
	for i, id := range []string{"-x first", "--json"} {
		raw := fmt.Sprintf(`{"decision_id":%q,"timestamp":%q,"path":"shop/authz","requested_by":"10.0.0.7:1","result":%v}`,
			id, now.Add(time.Duration(i-9)*time.Minute).Format(time.RFC3339), i == 0)
		if err := s.AddRaw([]byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	var advised []string
	for _, asked := range [][]string{{"why", "--", "--json"}, {"logs", "--", "--json"}} {
		r := (&world{store: s}).call(asked...)
		if r.code != 0 {
			t.Fatalf("%q: exit %d\n%s", asked, r.code, r.err)
		}
		for line := range strings.Lines(r.out) {
			if _, command, is := strings.Cut(strings.TrimSpace(line), "docket "); is {
				advised = append(advised, command)
			}
		}
	}
	if len(advised) != 5 {
		t.Errorf("%q", advised)
	}
	for _, command := range advised {
		r := (&world{store: s}).call(unshell(t, command)...)
		if r.code != 0 || !strings.Contains(r.out, "--json") && !strings.Contains(command, "stats") {
			t.Errorf("%s: exit %d\n%s%s", command, r.code, r.out, r.err)
		}
	}
	r := (&world{store: s}).call("why", "--", "-absent")
	if r.code != 1 || !strings.Contains(r.err, "docket where-is -- -absent\n") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
}
