package historydb

import (
	"context"
	"time"

	"docket/internal/history/reader"
	"docket/internal/postgres/db"
)

// spot is a place between decisions: behind the one of a time and an id; with an empty id before all of that time. The
// zero value is where a search begins.
type spot struct {
	at  time.Time
	id  string
	set bool
}

func parseCursor(text string, oldest bool) (spot, error) {
	at, err := reader.ParseCursor(text, oldest)
	return spot{at: at.Time, id: at.ID, set: text != "" && err == nil}, err
}

// How a search walks: in windows of time, each begun where the last one ended.
const (
	firstWindow   = time.Minute            // of all decisions, of which any may fit
	indexedWindow = 24 * time.Hour         // of those that an index leads to
	belowWindow   = time.Hour              // of those of a service, which may have many paths
	gapWindow     = 30 * time.Minute       // beyond which it is asked first whether there is anything
	leastWindow   = time.Second            // is what a window shrinks to
	widestWindow  = 400 * 24 * time.Hour   // beyond it, all that is left is looked at in one
	quickWindow   = 30 * time.Millisecond  // within which the next may be much larger
	fairWindow    = 120 * time.Millisecond // within which it may be larger: on a busy server none is quick, and a month has 43,200 minutes
	slowWindow    = 300 * time.Millisecond // after which it is to be smaller
	growth        = 4
)

// search is one search on its way.
type search struct {
	r      *Reader
	source source
	filter reader.Filter
	oldest bool
	need   int // decisions, one more than the page has
	keys   []key
	at     spot
	end    time.Time // not beyond; zero: none
	window time.Duration
	now    time.Time // on the server's clock
	ways   ways
	inside bool // the last window was in days that have their indexes
	shrunk bool // the first windows there were too wide
	paces  paces

	exact    [][2]string // services and paths that are asked for
	below    []string    // services of which more than one path may be meant
	known    []spotKey   // those of exact
	services []int32     // the indexed values of below
}

// Search is that of [reader.Store].
func (r *Reader) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	after, err := parseCursor(p.After, p.Oldest)
	if err == nil {
		err = checkFilter(f)
	}
	if err != nil {
		return reader.Found{}, err
	}
	pg := page{Page: p, r: r, filter: f, after: after, limit: min(max(p.Limit, 1), reader.MaxLimit), total: r.patience(ctx)}
	began := time.Now()
	if pg.brief(ctx) {
		var found reader.Found
		pg.end(&found)
		return found, nil
	}
	pg.total = min(r.patience(ctx), pg.total-time.Since(began))
	return pg.windows(ctx)
}

// windows searches for the page in the table, and in each day that is being archived.
func (p *page) windows(ctx context.Context) (found reader.Found, err error) {
	missed, err := p.r.whole(ctx, span{p.filter.Since, p.filter.Until}, p.begin, func(s source) error { return p.walk(ctx, s) })
	if err != nil {
		return reader.Found{}, db.Clean("search decisions", err)
	}
	p.end(&found)
	var parts reader.Parts
	_ = parts.Pass(missed) // it takes it
	found.NotLooked = parts.NotRead()
	return found, nil
}

// walk looks through window after window until the page is full, the time is over, which more says, or there is nothing left.
// A window that takes too long is made smaller, so that something is looked through however little time there is.
func (s *search) walk(ctx context.Context, deadline time.Time) (more bool, err error) {
	if err := s.begin(ctx, time.Until(deadline)); err != nil {
		return false, err
	}
	for looked := false; ; {
		to, last, indexed := s.next()
		if s.window > gapWindow && s.at.set && !last && !indexed {
			skipped, err := s.skip(ctx, deadline, to)
			if err != nil {
				return false, err
			}
			if skipped {
				s.window, s.paces = firstWindow, paces{} // an empty window says nothing of others
				to, last, indexed = s.next()
			}
		}
		began := time.Now()
		left := deadline.Sub(began)
		if left <= 0 && looked {
			return true, nil
		}
		share := left
		if s.window > leastWindow {
			share = left / 2
		}
		way := s.way(indexed)
		keys, err := s.look(ctx, share, to, way)
		took := time.Since(began)
		if err != nil {
			s.noted(way, to, took)
			switch {
			case !outOfTime(ctx, err) || s.window <= leastWindow && !looked:
				return false, err
			case s.window <= leastWindow:
				return true, nil
			}
			s.window, s.shrunk = max(min(s.window, widestWindow)/(growth*growth), leastWindow), true
			continue
		}
		looked = true
		s.keys = append(s.keys, keys...)
		if len(s.keys) >= s.need || last {
			return false, nil
		}
		s.noted(way, to, took)
		s.at = spot{at: to, set: true}
		switch {
		case took < quickWindow:
			s.window *= growth
		case took < fairWindow:
			s.window *= 2
		case took > slowWindow:
			s.window, s.shrunk = max(s.window/growth, leastWindow), true
		}
	}
}

// next is where the next window ends, whether it is the last one, and whether it is in days that have their indexes.
func (s *search) next() (to time.Time, last, indexed bool) {
	indexed, edge := s.indexed()
	if indexed != s.inside {
		if s.inside = indexed; !indexed {
			s.window = firstWindow
		}
	}
	if indexed {
		least := indexedWindow
		if len(s.below) > 0 {
			least = belowWindow
		}
		if !s.shrunk {
			s.window = max(s.window, least)
		}
	}
	switch {
	case s.window > widestWindow:
		to, last = s.end, true
	case s.oldest:
		to = s.at.at.Add(s.window)
		last = !s.end.IsZero() && !to.Before(s.end)
	default:
		// The time to come is a window of its own, unless that takes too long.
		if to = s.now; s.at.set && (s.shrunk || !s.at.at.After(s.now)) {
			to = s.at.at.Add(-s.window)
		}
		last = !s.end.IsZero() && !to.After(s.end)
	}
	if last {
		to = s.end
	}
	if !edge.IsZero() && (to.IsZero() || s.oldest && to.After(edge) || !s.oldest && to.Before(edge)) {
		return edge, false, indexed
	}
	return to, last, indexed
}
