package frame

import (
	"testing"
	"time"
)

func TestPoint_Times(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 20, 15, 3, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2h": now.Add(-2 * time.Hour), "3d": now.Add(-72 * time.Hour), "1.5d": now.Add(-36 * time.Hour), "2026-11-20": time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
		"2026-11-20T10:00:00+02:00": time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), "": {}, "yesterday": time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
	} {
		if got, err := point("--since", text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"-2h", "x", "d", "2", "-1d"} {
		if _, err := point("--since", text, now); err == nil {
			t.Errorf("%q is a time", text)
		}
	}
}
