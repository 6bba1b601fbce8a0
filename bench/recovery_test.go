package bench

import (
	"testing"
	"time"
)

// course is a row count every 100 ms from the moment on.
func course(from time.Time, rows ...int64) (seen []progress) {
	for i, n := range rows {
		seen = append(seen, progress{from.Add(time.Duration(i) * 100 * time.Millisecond), n})
	}
	return seen
}

func TestRecovery_WholeWindow(t *testing.T) {
	t.Parallel()
	back := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// One burst after 300 ms, then nothing; from 600 ms on an even 100 rows in 100 ms.
	seen := course(back, 7, 7, 7, 107, 107, 107, 107, 207, 307, 407, 507, 607, 707)
	first, speed := recovery(seen, back.Add(50*time.Millisecond), back, 900)
	if first != 300*time.Millisecond || speed != 600*time.Millisecond {
		t.Errorf("first row after %v, rate after %v", first, speed)
	}
}

func TestRecovery_NotBeforeTheFirstRow(t *testing.T) {
	t.Parallel()
	back := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	seen := course(back, 0, 0, 0, 900, 1000, 1100, 1200, 1300, 1400, 1500)
	if first, speed := recovery(seen, back.Add(50*time.Millisecond), back, 900); first != 300*time.Millisecond || speed != first {
		t.Errorf("first row after %v, rate after %v", first, speed)
	}
}

func TestRecovery_UnseenRateIsZero(t *testing.T) {
	t.Parallel()
	back := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, seen := range map[string][]progress{
		"too slow":  course(back, 0, 10, 20, 30, 40, 50, 60, 70, 80),
		"too short": course(back, 0, 1000, 2000, 3000),
		"nothing":   nil,
	} {
		if _, speed := recovery(seen, back.Add(50*time.Millisecond), back, 5000); speed != 0 {
			t.Errorf("%s: after %v", name, speed)
		}
	}
}

func TestRecovery_FirstRow(t *testing.T) {
	t.Parallel()
	back := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if first, _ := recovery(course(back, 50, 50, 51), back.Add(50*time.Millisecond), back, 1e9); first != 200*time.Millisecond {
		t.Errorf("after %v", first)
	}
}

func TestRecovery_RowBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	seen := course(begin, 10, 20, 20, 30, 40) // killed after the second, started after the third, 30 comes before the own SELECT
	first, _ := recovery(seen, begin.Add(250*time.Millisecond), begin.Add(310*time.Millisecond), 1e9)
	if first != time.Nanosecond {
		t.Errorf("after %v", first)
	}
}
