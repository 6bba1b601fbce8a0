package tree

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"docket/internal/history/cold"
	"docket/internal/history/reader"
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
