package term

import (
	"testing"
	"time"
)

func TestAgo_Units(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 20, 15, 3, 0, time.UTC)
	for d, want := range map[time.Duration]string{0: "just now", 12 * time.Second: "12s ago", 5 * time.Minute: "5m ago", 3 * time.Hour: "3h ago", 47 * time.Hour: "47h ago", 72 * time.Hour: "3d ago", -9 * time.Minute: "in 9m"} {
		if got := Ago(now.Add(-d), now); got != want {
			t.Errorf("%v is %q", d, got)
		}
	}
}

func TestGrouped_Thousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12034567: "12,034,567", -1234: "-1,234", -123: "-123"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
}
