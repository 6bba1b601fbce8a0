package reader_test

import (
	"testing"
	"time"

	"docket/internal/history/reader"
)

func TestParseStep(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 20, 15, 3, 0, time.UTC)
	for text, want := range map[string]time.Duration{"5m": 5 * time.Minute, "1h": time.Hour, "1d": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "24h": 24 * time.Hour, "": time.Hour} {
		if got, err := reader.ParseStep(text, 24*time.Hour); got != want || err != nil {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"7m", "1s", "0d", "-1d", "1.5d", "367d", "36h", "x", "1d1", "99999999999999d", "5h"} {
		if got, err := reader.ParseStep(text, time.Hour); err == nil || !reader.IsWord(err) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	q, err := reader.NewStatsQuery(now.Add(-3*time.Hour), now, "1h", now)
	if err != nil || !q.Since.Equal(time.Date(2026, 11, 21, 17, 0, 0, 0, time.UTC)) || !q.Until.Equal(time.Date(2026, 11, 21, 21, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v", q, err)
	}
	if q, err = reader.NewStatsQuery(now.Add(-30*time.Minute), time.Time{}, "", now); err != nil || !q.Until.IsZero() || q.Step != 5*time.Minute {
		t.Errorf("%+v, %v", q, err)
	}
	for _, since := range []time.Time{now, now.Add(time.Hour), now.Add(-9000 * 24 * time.Hour)} {
		if q, err := reader.NewStatsQuery(since, time.Time{}, "1d", now); err == nil || !reader.IsWord(err) {
			t.Errorf("%+v, %v", q, err)
		}
	}
}

func TestDenyRate(t *testing.T) {
	t.Parallel()
	if r, known := reader.DenyRate(map[reader.Verdict]int64{reader.Denied: 1, reader.Allowed: 3, reader.Undefined: 100}); !known || r != 0.25 {
		t.Error(r, known)
	}
	if _, known := reader.DenyRate(map[reader.Verdict]int64{reader.Error: 1}); known {
		t.Error("there is a rate of none")
	}
}
