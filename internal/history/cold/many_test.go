package cold_test

import (
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
)

// TestFind_TooManyOfAnID: an answer that leaves decisions of an id out says so. One that asks for identities has them all.
func TestFind_TooManyOfAnID(t *testing.T) {
	t.Parallel()
	for _, rows := range []int64{0, -5000} {
		const n = 1001
		var all []reader.Decision
		for i := range n {
			d := made(1, 0)
			d.Time = d.Time.Add(time.Duration(i) * time.Second)
			all = append(all, d)
		}
		shelf := archive.Dir(t.TempDir())
		write := func(all []reader.Decision) {
			_, err := archivetest.Write(t.Context(), shelf, rows, all...)
			check(t, err)
		}
		write(all[1:])
		d := days(shelf)
		if found := d.Find(t.Context(), []string{all[0].ID}); len(found.Decisions) != n-1 || len(found.Gaps) != 0 {
			t.Errorf("%d found, %v", len(found.Decisions), found.Gaps)
		}
		write(all)
		found := d.Find(t.Context(), []string{all[0].ID})
		if len(found.Decisions) < n-1 || found.Days != 0 || len(found.Gaps) != 1 || !strings.Contains(found.Gaps[0].String(), "archived day 2026-08-01") || !reader.Lacking(found.Gaps) {
			t.Errorf("%d found in %d days, %v", len(found.Decisions), found.Days, found.Gaps)
		}
		last := reader.SpotOf(all[n-1])
		if found := d.Having(t.Context(), []reader.Spot{last}); len(found.Decisions) != 1 || reader.SpotOf(found.Decisions[0]) != last || len(found.Gaps) != 0 {
			t.Errorf("%d with the identity, %v", len(found.Decisions), found.Gaps)
		}
	}
}
