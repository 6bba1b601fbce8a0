package reader

import (
	"context"
	"time"

	"docket/internal/history/state"
)

// AheadTolerance is how far a decision's clock may be ahead without a note. States leave the same decisions out.
const AheadTolerance = state.MostAhead

// aheadPatience limits the search for decisions with later times.
const aheadPatience = time.Second

// Ahead returns how much later a decision's time is than its storing; 0 within [AheadTolerance]. Either a clock was
// wrong, or the time was made up. A decision that was stored late may hide that it was ahead.
func (r Row) Ahead() time.Duration {
	if ahead := r.Time.Sub(r.StoredAt); ahead > AheadTolerance {
		return ahead
	}
	return 0
}

// Bound changes a search for the newest decisions without an end. It begins at most [AheadTolerance] from now.
// Otherwise decisions of the year 9999 would head every page. later is that beginning, zero if nothing was left out.
func Bound(f Filter, oldest bool, now time.Time) (bounded Filter, later time.Time) {
	end := now.UTC().Truncate(time.Second).Add(AheadTolerance)
	if oldest || !f.Until.IsZero() || f.Since.After(now) {
		return f, time.Time{}
	}
	f.Until = end
	return f, end
}

// Later reports whether matching decisions have later times. It is also true if a second was not enough to find out.
func Later(ctx context.Context, store Store, f Filter, later time.Time) bool {
	if later.IsZero() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, aheadPatience)
	defer cancel()
	f.Since, f.Until = later, time.Time{}
	found, err := store.Search(ctx, f, Page{Limit: 1, Oldest: true})
	return err != nil || len(found.Decisions) > 0 || found.Next != ""
}
