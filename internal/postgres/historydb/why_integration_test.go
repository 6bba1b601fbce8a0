//go:build integration

package historydb_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/record/subject"
)

// everywhere is a reader of the table and of the archived days.
type everywhere struct{ asked }

func (e everywhere) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	both := cold.Store{Table: e.table, Days: e.days}
	return both.Search(ctx, f, p)
}

func (e everywhere) ByID(ctx context.Context, id string) ([]reader.Decision, error) {
	return e.table.ByID(ctx, id)
}

func (e everywhere) Begins(ctx context.Context, prefix string, limit int) ([]reader.Decision, error) {
	return e.table.Begins(ctx, prefix, limit)
}

func (e everywhere) Follow(ctx context.Context, f reader.Filter, t reader.Tail, limit int, payload bool) ([]reader.Decision, reader.Tail, error) {
	return e.table.Follow(ctx, f, t, limit, payload)
}

func (e everywhere) Stats(ctx context.Context, q reader.StatsQuery) ([]reader.Stats, error) {
	return e.table.Stats(ctx, q)
}

// TestWhy_SameTimeAtEachStep: decisions of one time are explained in the order of their ids. Their day is in the table, is taken
// out of it, and is archived. Two of the times are the borders of the day.
func TestWhy_SameTimeAtEachStep(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]bool{"Parquet": false, "lines": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := old(t)
			a.c.Lines = lines
			a.settle()
			e := everywhere{a.asked(t, a.URL)}
			var all []reader.Decision
			for i, after := range []time.Duration{0, 12 * time.Hour, 24 * time.Hour} {
				for k, id := range []string{"B", "a", "c", "d", "é"} {
					id, at, allowed := fmt.Sprint(id, i), a.day.Time.Add(after), (k*k+i)%3 > 0
					a.Exec(t, `INSERT INTO decision_logs (decision_id, ts, path, requested_by, allowed, raw, source_topic, source_partition, source_offset, source_index)
						VALUES ($1, $2, 'p', '10.0.0.7:1', $3, jsonb_build_object('decision_id', $1::text, 'path', 'p', 'requested_by', '10.0.0.7:1', 'result', $3::boolean), 't', 0, $4, 0)`, id, at, allowed, 100*i+k)
					found, err := e.ByID(t.Context(), id)
					check(t, err)
					all = append(all, found...)
				}
			}
			slices.SortFunc(all, func(a, b reader.Decision) int { return reader.SpotOf(a).Compare(reader.SpotOf(b)) })
			asked := 0
			explain := func(when string) {
				asked++
				for i, d := range all {
					for neighbours := range 3 {
						x, err := reader.Why(t.Context(), e, d, reader.Question{Subject: subject.Spec{Kind: subject.RequestedByHost}, Neighbours: neighbours})
						check(t, err)
						got := []string{idsOf(x.Before), idsOf(x.After), "", x.Since.FirstID}
						if x.Since.Otherwise != nil {
							got[2] = x.Since.Otherwise.DecisionID
						}
						if want := aroundOne(all, i, neighbours); !slices.Equal(got, want) || x.Incomplete {
							t.Errorf("%s: %s with %d neighbours: %q, want %q, %q", when, d.ID, neighbours, got, want, x.Notes)
						}
					}
				}
			}
			explain("before")
			a.c.Told = func(s archive.Step) {
				if s == archive.StepWritten || s == archive.StepDetached {
					explain(string(s))
				}
			}
			if done := a.archive(false); !done.Dropped || done.Rows != 10 {
				t.Errorf("%+v", done)
			}
			explain("archived")
			if asked < 4 {
				t.Errorf("only %d steps", asked)
			}
		})
	}
}

func idsOf(all []reader.Neighbour) string {
	var ids []string
	for _, n := range all {
		ids = append(ids, n.DecisionID)
	}
	return strings.Join(ids, " ")
}

// aroundOne returns the neighbours of a decision, the last before it with another verdict, and the first that ended as it did.
func aroundOne(all []reader.Decision, of, neighbours int) []string {
	var before, after []string
	for i := of - 1; i >= max(0, of-neighbours); i-- {
		before = append(before, all[i].ID)
	}
	for i := of + 1; i <= min(len(all)-1, of+neighbours); i++ {
		after = append(after, all[i].ID)
	}
	otherwise, first := "", all[of].ID
	for i := of - 1; i >= 0; i-- {
		if all[i].Verdict != all[of].Verdict {
			otherwise = all[i].ID
			break
		}
		first = all[i].ID
	}
	return []string{strings.Join(before, " "), strings.Join(after, " "), otherwise, first}
}
