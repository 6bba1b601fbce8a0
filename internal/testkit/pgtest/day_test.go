package pgtest

import (
	"testing"
	"time"
)

func TestUntilDay_NearMidnight(t *testing.T) {
	t.Parallel()
	tokyo := time.FixedZone("", 9*3600)
	for at, want := range map[time.Time]time.Duration{
		time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC):              0,
		time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC):             0,
		time.Date(2026, 11, 21, 23, 56, 59, 0, time.UTC):           0,
		time.Date(2026, 11, 21, 23, 57, 0, 0, time.UTC):            3 * time.Minute,
		time.Date(2026, 11, 21, 23, 59, 59, 999_999_999, time.UTC): 1,
		time.Date(2026, 11, 21, 8, 59, 30, 0, tokyo):               30 * time.Second,
		time.Date(2026, 11, 21, 23, 59, 30, 0, tokyo):              0,
	} {
		if got := untilDay(at); got != want {
			t.Errorf("at %v it waits for %v, want %v", at, got, want)
		}
	}
}
