package tree

import (
	"strings"
	"testing"
	"time"

	"docket/internal/testkit/readertest"
)

// TestYears_OutsideOfJSON: an offset moves a timestamp to the year 10000 or before the year 0 in UTC. It is shown in every
// format, also by a desk.
func TestYears_OutsideOfJSON(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		w := &world{store: decisions(3)}
		late := time.Date(10000, 1, 1, 0, 59, 59, 0, time.UTC)
		w.store.Add(readertest.Decision(98, late), readertest.Decision(99, time.Date(-1, 12, 31, 23, 0, 0, 0, time.UTC)))
		if remote {
			w = w.overDesk(t, "auditor")
		}
		id := readertest.Decision(98, late).ID
		for args, want := range map[string]int{
			"logs --oldest --json": 5, "logs --oldest --lines": 5, "logs " + id + " --json": 1, "logs " + id + " --lines": 1, "why " + id + " --json": 1,
		} {
			r := w.call(strings.Fields(args)...)
			if n := strings.Count(r.out, `"decision_id"`); r.code != 0 || n < want || strings.Contains(r.err, "year") {
				t.Errorf("desk %v, %s: exit %d, %d decisions\n%s%s", remote, args, r.code, n, r.out, r.err)
			}
		}
		for _, args := range []string{"logs --oldest", "why " + id, "logs " + id} {
			if r := w.call(strings.Fields(args)...); r.code != 0 || !strings.Contains(r.out, "10000-01-01 00:59:59.000") {
				t.Errorf("desk %v, %s: exit %d\n%s%s", remote, args, r.code, r.out, r.err)
			}
		}
	}
}
