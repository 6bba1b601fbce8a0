package complete_test

import (
	"testing"
	"time"

	"docket/internal/history/complete"
	"docket/internal/history/reader"
)

func TestPaged_WorstOfPages(t *testing.T) {
	t.Parallel()
	early, late, two, nine := noon.Add(-time.Minute), noon, int64(2), int64(9)
	page := func(f reader.Freshness, until *time.Time, parked *int64) reader.Completeness {
		return reader.Completeness{Freshness: f, CompleteUntil: until, Parked: parked}
	}
	for name, c := range map[string]struct {
		first, next, want reader.Completeness
	}{
		"both fresh":         {page(reader.Fresh, &early, &two), page(reader.Fresh, &late, &nine), page(reader.Fresh, &early, &two)},
		"the time goes back": {page(reader.Fresh, &late, nil), page(reader.Fresh, &early, nil), page(reader.Fresh, &early, nil)},
		"a place missed":     {page(reader.Fresh, &early, nil), page(reader.Partial, nil, nil), page(reader.Partial, nil, nil)},
		"missed at first":    {page(reader.Partial, nil, nil), page(reader.Fresh, &late, nil), page(reader.Partial, nil, nil)},
		"one holds":          {page(reader.CatchingUp, &early, nil), page(reader.Holding, &early, nil), page(reader.Holding, &early, nil)},
		"an archived page":   {page(reader.Fresh, &early, nil), page(reader.Archived, &early, nil), page(reader.Archived, &early, nil)},
		"an empty end":       {page(reader.Fresh, &early, nil), page(reader.NotFound, &early, nil), page(reader.Fresh, &early, nil)},
		"an empty begin":     {page(reader.NotFound, &early, nil), page(reader.Archived, &early, nil), page(reader.Archived, &early, nil)},
		"nothing found":      {page(reader.NotFound, &early, nil), page(reader.NotFound, &early, nil), page(reader.NotFound, &early, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := complete.Paged(c.first, c.next); got != c.want {
				t.Errorf("it says %+v, want %+v", got, c.want)
			}
		})
	}
}
