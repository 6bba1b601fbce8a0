package pipeline

import (
	"context"
	"time"

	"docket/internal/errclass"
)

// Foresee applies the table's func foresee, whatever the constraint.
func (t *table) Foresee(ctx context.Context, rows []Row, constraint string) ([]int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looks = append(t.looks, constraint)
	var at []int
	for i, r := range rows {
		if t.foresee != nil && t.foresee(r.Log.ID) {
			at = append(at, i)
		}
	}
	return at, ctx.Err()
}

func (t *table) Refusals(ctx context.Context, rows []Row, probe time.Time) ([]error, error) {
	again := !probe.IsZero()
	refused, err := t.hear(ctx, rows, again)
	if err == nil && again {
		if err := t.Probe(ctx, probe); err != nil {
			return nil, &Unwell{err}
		}
	}
	return refused, err
}

func (t *table) hear(ctx context.Context, rows []Row, again bool) ([]error, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.Log.ID
	}
	t.asked = append(t.asked, ids)
	if t.asks != nil {
		if err := t.asks(ids, again); err != nil {
			return nil, err
		}
	}
	if t.away != nil {
		if err := t.away(); err != nil {
			return nil, err
		}
	}
	refused := make([]error, len(rows))
	for i, id := range ids {
		if t.refuse == nil {
			continue
		}
		if err := t.refuse(id); err != nil {
			if errclass.Classify(err).Class != errclass.Data {
				return nil, err
			}
			refused[i] = err
		}
	}
	return refused, ctx.Err()
}
