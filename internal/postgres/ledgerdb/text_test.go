package ledgerdb

import (
	"testing"
	"time"
)

// An answer counts open letters by their decisions' times. A time that the ledger cannot keep stays behind each span that
// somebody can ask for, up to the last microsecond of the year 9999.
func TestDecisionTime_LastMoments(t *testing.T) {
	t.Parallel()
	last := time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
	for _, at := range []time.Time{last, last.Add(-time.Millisecond), time.Date(10000, 1, 1, 4, 59, 59, 0, time.UTC)} {
		kept := *timeOrNull(at)
		if kept.Year() > 9999 {
			t.Errorf("%v is kept as %v, which JSON does not take", at, kept)
		}
		if since := min(at.UnixMicro(), last.UnixMicro()); kept.UnixMicro() < since {
			t.Errorf("%v is kept as %v, and is not counted since then", at, kept)
		}
	}
}
