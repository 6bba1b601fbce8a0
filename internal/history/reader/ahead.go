package reader

import (
	"context"
	"time"
)

// AheadTolerance is how far the clock of whoever decided may be ahead of ours without a word.
const AheadTolerance = time.Hour

// aheadPatience is how long it is looked for decisions that are dated later.
const aheadPatience = time.Second

// Ahead is how much later a decision's time is than when it was stored; 0 within [AheadTolerance]. Either a clock was wrong, or the time was made
// up. One that was stored late can hide that it was ahead when it came.
func (r Row) Ahead() time.Duration {
	if ahead := r.Time.Sub(r.StoredAt); ahead > AheadTolerance {
		return ahead
	}
	return 0
}

// Bound has a search that begins with the newest and asks for no end, nor for what is to come, begin with what is dated at most [AheadTolerance] from now, so that no decision
// of the year 9999 heads every page. later is where it begins then; zero where nothing was left out.
func Bound(f Filter, oldest bool, now time.Time) (bounded Filter, later time.Time) {
	end := now.UTC().Truncate(time.Second).Add(AheadTolerance)
	if oldest || !f.Until.IsZero() || f.Since.After(now) {
		return f, time.Time{}
	}
	f.Until = end
	return f, end
}

// Later says whether decisions that fit are dated from there on, or may be where that could not be found out in a second.
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
