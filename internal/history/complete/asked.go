package complete

import (
	"context"
	"time"

	"docket/internal/history/reader"
)

// beginAsked asks another process. Without its answer nothing is known.
func (a *Answers) beginAsked(ctx context.Context, r Range) Begun {
	given, err := a.Asked(ctx, r)
	if err != nil {
		return Begun{r: r}
	}
	now := a.Now
	if now == nil {
		now = time.Now
	}
	return Begun{r: r, given: &given, status: Status{now: now}}
}

// endAsked joins what another process knew before the rows were read with what they are.
func (b Begun) endAsked(f Facts) reader.Completeness {
	c := *b.given
	switch {
	case f.Partly:
		c.Freshness = reader.Partial
	case c.Freshness == reader.Partial, c.Freshness == reader.Holding, c.Freshness == reader.CatchingUp:
	case f.Archived:
		c.Freshness = reader.Archived
	case !f.Found:
		c.Freshness = reader.NotFound
	}
	if f.RowsLack {
		c.CompleteUntil = nil
	}
	return c
}
