package tree

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"docket/internal/history/cold"
	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/testkit/completetest"
	"docket/internal/testkit/readertest"
)

// leftStore has days that left the table, which it counts by whole hours alone.
type leftStore struct{ *readertest.Store }

func (s leftStore) Stats(ctx context.Context, q reader.StatsQuery) ([]reader.Stats, error) {
	if q.Step < time.Hour {
		return nil, reader.Told(ctx, &reader.PartialError{Missed: []reader.Missed{{Place: "days that left", Err: errors.New("by the hour alone")}}})
	}
	return s.Store.Stats(ctx, q)
}

// TestStats_OfDaysThatLeft: without --step they are counted by the hour. With a shorter one the answer says that it lacks them.
func TestStats_OfDaysThatLeft(t *testing.T) {
	t.Parallel()
	w := &world{store: decisions(12), both: func(table *readertest.Store, _ *cold.Days) reader.Store { return leftStore{table} }}
	for _, c := range []struct {
		args    []string
		steps   string
		partial bool
	}{{nil, "in steps of 1h", false}, {[]string{"--step", "1h"}, "in steps of 1h", false}, {[]string{"--step", "5m"}, "no decisions match", true}} {
		args := append([]string{"stats", "--since", "30m"}, c.args...)
		r := w.call(args...)
		if r.code != 0 || !strings.Contains(r.out+r.err, c.steps) || strings.Contains(r.err, "PARTIAL: days that left: by the hour alone") != c.partial {
			t.Errorf("%v: exit %d\n%s%s", c.args, r.code, r.out, r.err)
		}
		var out struct {
			Freshness reader.Freshness
			NotRead   []string `json:"not_read"`
		}
		r = w.call(append(args, "--json")...)
		if err := json.Unmarshal([]byte(r.out), &out); err != nil || r.code != 0 || len(out.NotRead) > 0 != c.partial || (out.Freshness == reader.Partial) != c.partial {
			t.Errorf("%v: exit %d, %v\n%s%s", c.args, r.code, err, r.out, r.err)
		}
	}
}

// rangeBooks has a dead letter in each minute of the range.
type rangeBooks struct{}

func (rangeBooks) Waiting(_ context.Context, r complete.Range) (n int64, known, primary bool, err error) {
	until := r.Until
	if until.IsZero() {
		until = now
	}
	return int64(until.Sub(r.Since).Minutes()), true, true, nil
}

// TestStats_CompleteInTheirRange: the counts of what waits are of the range that the lines are of.
func TestStats_CompleteInTheirRange(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]bool{"all in the table": false, "days left": true} {
		w := &world{store: decisions(12), complete: completed(t, &completetest.Log{}, completetest.Books{})}
		w.complete.Books = rangeBooks{}
		if left {
			w.both = func(table *readertest.Store, _ *cold.Days) reader.Store { return leftStore{table} }
		}
		for _, step := range []string{"", "5m", "1h"} {
			args := []string{"stats", "--json", "--since", now.Add(-59 * time.Minute).Format(time.RFC3339), "--until", now.Add(-31 * time.Minute).Format(time.RFC3339)}
			if step != "" {
				args = append(args, "--step", step)
			}
			var out struct {
				Since, Until time.Time
				Step         int64  `json:"step_seconds"`
				Dead         *int64 `json:"dead_lettered"`
			}
			r := w.call(args...)
			if err := json.Unmarshal([]byte(r.out), &out); err != nil || r.code != 0 {
				t.Fatalf("%v: exit %d, %v\n%s%s", args, r.code, err, r.out, r.err)
			}
			if hourly := step == "1h" || left && step == ""; hourly != (out.Step == 3600) {
				t.Errorf("%s, %q: in steps of %d s", name, step, out.Step)
			}
			if partial := left && step == "5m"; partial && out.Dead == nil {
				continue // it lacks a part
			}
			if out.Dead == nil || time.Duration(*out.Dead)*time.Minute != out.Until.Sub(out.Since) {
				t.Errorf("%s, %q: from %s to %s:\n%s", name, step, out.Since, out.Until, r.out)
			}
		}
	}
}
