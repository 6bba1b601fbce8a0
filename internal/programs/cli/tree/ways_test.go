package tree

import (
	"strings"
	"testing"
)

// TestDesk_IDsThatAreWays: a desk finds ids that a path of a URL takes for ways in it.
func TestDesk_IDsThatAreWays(t *testing.T) {
	t.Parallel()
	for _, id := range []string{".", "..", "/", "//", "/why", "why/", "/.", "../", "%2F"} {
		w := &world{store: decisions(3)}
		if err := w.store.AddRaw([]byte(`{"decision_id":"` + id + `","timestamp":"2026-11-21T20:10:00Z","path":"of/dots","result":true}`)); err != nil {
			t.Fatal(err)
		}
		w = w.overDesk(t, "auditor")
		for _, act := range []string{"why", "logs"} {
			if r := w.call(act, id); r.code != 0 || !strings.Contains(r.out, "of/dots") {
				t.Errorf("%s %s: exit %d\n%s%s", act, id, r.code, r.out, r.err)
			}
		}
	}
}
