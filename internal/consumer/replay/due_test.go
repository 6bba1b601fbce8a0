package replay

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/record/envelope"
)

// TestDue_AsTheWindow: before a record is taken, the answer is the one that the window would give.
func TestDue_AsTheWindow(t *testing.T) {
	t.Parallel()
	keys, err := envelope.ParseKeys(strings.Repeat("a key of 8", 4))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		in     time.Duration // of the not-before
		ahead  time.Duration // of the clock when it was parked
		proven bool
		want   time.Duration
	}{
		"soon":              {20 * time.Minute, 0, true, 20 * time.Minute},
		"due":               {-time.Minute, 0, true, -time.Minute},
		"a year away":       {24 * 365 * time.Hour, 0, true, time.Hour},
		"a clock in a year": {24 * 365 * time.Hour, 24 * 365 * time.Hour, true, time.Hour},
		"of a stranger":     {20 * time.Minute, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := due(0, tc.in)
				r.Timestamp = time.Now().Add(tc.ahead)
				if tc.proven {
					keys.Sign(r)
				}
				at := Due(r, keys, time.Hour)
				if in := time.Until(at); tc.proven && in != tc.want || !tc.proven && !at.IsZero() {
					t.Errorf("due in %v, want %v", in, tc.want)
				}
				cfg, from := config(), time.Now()
				cfg.Keys = keys
				if _, err := New(cfg, newLog(r)).Fetch(t.Context()); err != nil || time.Since(from) != max(tc.want, 0) {
					t.Errorf("the window let it through after %v, %v", time.Since(from), err)
				}
			})
		})
	}
}
