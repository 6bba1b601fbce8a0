package reader_test

import (
	"context"
	"errors"
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

func TestStatsQuery_Hourly(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time {
		return time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(minutes) * time.Minute)
	}
	for name, c := range map[string]struct {
		since, until, wantSince, wantUntil time.Time
		step                               time.Duration
		ok                                 bool
	}{
		"widened":     {at(5), at(65), at(0), at(120), 5 * time.Minute, true},
		"whole hours": {at(0), at(60), at(0), at(60), time.Minute, true},
		"until now":   {at(15), time.Time{}, at(0), time.Time{}, 15 * time.Minute, true},
		"an hour":     {at(0), at(60), at(0), at(60), time.Hour, false},
		"90 minutes":  {at(30), at(120), at(30), at(120), 90 * time.Minute, false},
	} {
		got, ok := reader.StatsQuery{Since: c.since, Until: c.until, Step: c.step, ByPath: true}.Hourly()
		want := c.step
		if c.ok {
			want = time.Hour
		}
		if ok != c.ok || got.Step != want || !got.Since.Equal(c.wantSince) || !got.Until.Equal(c.wantUntil) || !got.ByPath {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
}

// leftDays is a store whose steps below an hour lack days that left the table.
type leftDays struct {
	reader.Store
	asked []time.Duration
	hours error // of steps of an hour
}

func (l *leftDays) Stats(ctx context.Context, q reader.StatsQuery) ([]reader.Stats, error) {
	l.asked = append(l.asked, q.Step)
	if q.Step < time.Hour {
		return nil, reader.Told(ctx, &reader.PartialError{Missed: []reader.Missed{{Place: "days", Err: errors.New("by the hour alone")}}})
	}
	return []reader.Stats{{From: q.Since, Name: "a", Counts: map[reader.Verdict]int64{reader.Denied: 7}}}, reader.Told(ctx, l.hours)
}

// Counts of days that left the table come by the hour, unless the step was chosen.
func TestCountStats_ByTheHour(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 8, 1, 10, 5, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		step    time.Duration
		chosen  bool
		hours   error
		lines   int
		by      time.Duration
		partial bool
		asked   int
	}{
		"no step":         {5 * time.Minute, false, nil, 1, time.Hour, false, 2},
		"a chosen step":   {5 * time.Minute, true, nil, 0, 5 * time.Minute, true, 1},
		"hours":           {time.Hour, false, nil, 1, time.Hour, false, 1},
		"hours that fail": {5 * time.Minute, false, errors.New("away"), 0, 5 * time.Minute, true, 2},
		"hours that lack as much": {5 * time.Minute, false, &reader.PartialError{Missed: []reader.Missed{{Place: "days", Err: errors.New("no right")}}}, 0,
			5 * time.Minute, true, 2},
	} {
		store := &leftDays{hours: c.hours}
		var begun []time.Duration
		begin := func(q reader.StatsQuery) time.Duration {
			if begun = append(begun, q.Step); len(begun) != len(store.asked)+1 {
				t.Errorf("%s: began %v, asked %v", name, begun, store.asked)
			}
			return q.Step
		}
		got, err := reader.CountStats(t.Context(), store, reader.StatsQuery{Since: since, Until: since.Add(time.Hour), Step: c.step}, c.chosen, begin)
		if len(got.Lines) != c.lines || got.Query.Step != c.by || got.Begun != c.by || (reader.AsPartial(err) != nil) != c.partial || err != nil && !c.partial || len(store.asked) != c.asked {
			t.Errorf("%s: %+v, asked %v, %v", name, got, store.asked, err)
		}
		ctx, parts := reader.WithParts(t.Context())
		if _, err := reader.CountStats(ctx, store, reader.StatsQuery{Since: since, Step: c.step}, c.chosen, begin); err != nil || (parts.Err() != nil) != c.partial {
			t.Errorf("%s: for a caller that collects: %v, %v", name, parts.Err(), err)
		}
	}
}
