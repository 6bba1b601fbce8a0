package store

import (
	"context"

	"docket/internal/consumer/pipeline"
	"docket/internal/record/decision"
)

// Compare says of each decision whether it has its row: [pipeline.Present] with an equal payload or one that came in the same
// bytes, [pipeline.Conflicting] with another, 0 where there is none. It looks as [Store.Lookup] does and changes nothing.
func (st *Store) Compare(ctx context.Context, logs []*decision.Log) ([]pipeline.Outcome, error) {
	sought := make([]Sought, len(logs))
	for i, l := range logs {
		sought[i] = Sought{ID: l.ID, Time: l.Time, Raw: l.Came(), Came: true}
	}
	found, err := st.Lookup(ctx, sought)
	if err != nil {
		return nil, err
	}
	outcomes := make([]pipeline.Outcome, len(logs))
	for _, f := range found {
		outcomes[f.N] = pipeline.Conflicting
		if f.Equal {
			outcomes[f.N] = pipeline.Present
		}
	}
	return outcomes, nil
}
