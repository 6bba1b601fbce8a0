package bench

import (
	"context"
	"slices"
	"time"

	"docket/internal/desk/ledger"
)

// DeskGoal is how long a look into the ledger may take at the 95th percentile.
const DeskGoal = 200 * time.Millisecond

// Shape is one way to look into the ledger. Ask is given the number of the call, so that no two ask for quite the same.
type Shape struct {
	Name string
	Ask  func(ctx context.Context, book ledger.Reader, i int) error
}

// DeskShapes are the ways to look into a ledger of dead letters that failed in the days before now. The fingerprints come
// with the most frequent first. Retried and resolved letters are among them.
func DeskShapes(now time.Time, days int, fingerprints, paths []string, ids []string) []Shape {
	const partitions = 12
	state := func(states ...ledger.State) ledger.Filter { return ledger.Filter{States: states} }
	common := func(i int) string { return fingerprints[i%5] }
	rare := func(i int) string { return fingerprints[len(fingerprints)-1-i%5] }
	path := func(i int) string { return paths[i%len(paths)] }
	between := func(i int, width time.Duration) (f ledger.Filter) {
		f.From = now.Add(-time.Duration(days)*24*time.Hour + time.Duration(i*13%(days*20))*time.Hour)
		f.To = f.From.Add(width)
		return f
	}
	partition := func(f ledger.Filter, i int) ledger.Filter {
		p := int32(i % partitions)
		f.Partition = &p
		return f
	}
	day, week, month := 24*time.Hour, 7*24*time.Hour, time.Duration(days+1)*24*time.Hour
	filters := []struct {
		name string
		of   func(i int) ledger.Filter
	}{
		{"all", func(int) ledger.Filter { return ledger.Filter{} }},
		{"one state", func(i int) ledger.Filter { return state(ledger.States()[i%4]) }},
		{"fingerprint, common", func(i int) ledger.Filter { return ledger.Filter{Fingerprint: common(i)} }},
		{"fingerprint, rare, and state", func(i int) ledger.Filter {
			return ledger.Filter{Fingerprint: rare(i), States: []ledger.State{ledger.Pending, ledger.Failed}}
		}},
		{"kind and code", func(int) ledger.Filter { return ledger.Filter{Kind: "data", Code: "23514"} }},
		{"path", func(i int) ledger.Filter { return ledger.Filter{Path: path(i)} }},
		{"path, kind and state", func(i int) ledger.Filter {
			return ledger.Filter{Path: path(i), Kind: "conflict", States: []ledger.State{ledger.Failed}}
		}},
		{"partition", func(i int) ledger.Filter { return partition(ledger.Filter{}, i) }},
		{"fingerprint and partition", func(i int) ledger.Filter { return partition(ledger.Filter{Fingerprint: common(i)}, i) }},
		{"a day", func(i int) ledger.Filter { return between(i, day) }},
		{"a week", func(i int) ledger.Filter { return between(i, week) }},
		{"the month but some hours", func(i int) ledger.Filter { return between(i%3, month) }},
		{"a week and path", func(i int) ledger.Filter { f := between(i, week); f.Path = path(i); return f }},
		{"the month, partition and state", func(i int) ledger.Filter {
			f := partition(between(i%3, month), i)
			f.States = []ledger.State{ledger.Pending}
			return f
		}},
		{"a week, kind and partition", func(i int) ledger.Filter { f := partition(between(i, week), i); f.Kind = "transient"; return f }},
	}
	var shapes []Shape
	for _, f := range filters {
		shapes = append(shapes,
			Shape{"list: " + f.name, func(ctx context.Context, book ledger.Reader, i int) error {
				_, err := book.List(ctx, f.of(i), ledger.Page{})
				return err
			}},
			Shape{"groups: " + f.name, func(ctx context.Context, book ledger.Reader, i int) error {
				_, err := book.Groups(ctx, f.of(i))
				return err
			}},
			Shape{"counts: " + f.name, func(ctx context.Context, book ledger.Reader, i int) error {
				_, err := book.Counts(ctx, f.of(i))
				return err
			}})
	}
	return append(shapes,
		Shape{"list: 1000 of a fingerprint", func(ctx context.Context, book ledger.Reader, i int) error {
			_, err := book.List(ctx, ledger.Filter{Fingerprint: common(i)}, ledger.Page{Limit: ledger.MaxPage})
			return err
		}},
		Shape{"list: a page from the middle", func(ctx context.Context, book ledger.Reader, i int) error {
			list, err := book.List(ctx, ledger.Filter{To: now.Add(-time.Duration(1+i%days) * day), Path: path(i)}, ledger.Page{Limit: 1})
			if err == nil && list.Next != "" {
				_, err = book.List(ctx, ledger.Filter{Path: path(i)}, ledger.Page{After: list.Next})
			}
			return err
		}},
		Shape{"show", func(ctx context.Context, book ledger.Reader, i int) error {
			_, err := book.Show(ctx, ids[i%len(ids)][:16])
			return err
		}},
		Shape{"history", func(ctx context.Context, book ledger.Reader, i int) error {
			_, _, err := book.History(ctx, ids[i%len(ids)])
			return err
		}},
		Shape{"report", func(ctx context.Context, book ledger.Reader, _ int) error {
			_, err := book.Report(ctx)
			return err
		}},
		Shape{"oldest found", func(ctx context.Context, book ledger.Reader, _ int) error {
			_, err := book.OldestFound(ctx)
			return err
		}})
}

// Looked is how long a shape took.
type Looked struct {
	P50, P95 time.Duration
}

// Look asks so often for a shape and says how long that took. The first call is left out: it reads what later ones find in memory.
func (s Shape) Look(ctx context.Context, book ledger.Reader, calls int) (Looked, error) {
	took := make([]time.Duration, 0, calls)
	for i := range calls + 1 {
		began := time.Now()
		if err := s.Ask(ctx, book, i); err != nil {
			return Looked{}, err
		}
		if i > 0 {
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	return Looked{took[len(took)/2], took[(len(took)*95+99)/100-1]}, nil
}
