package historydb

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/reader"
)

// page is a page of a search, made of the pages of several tables.
type page struct {
	reader.Page
	r      *Reader
	filter reader.Filter
	after  spot
	limit  int
	total  time.Duration // for all of it

	share     time.Duration // of one table
	decisions []reader.Decision
	stop      reader.Spot // where the first table ended that has more
	more      bool        // there is such a table
	late      bool        // it ran out of time there
}

func (p *page) begin(tables int) {
	p.share, p.decisions, p.stop, p.more, p.late = p.total/time.Duration(tables), nil, reader.Spot{}, false, false
}

// walk adds what a table has.
func (p *page) walk(ctx context.Context, from source) error {
	s := &search{r: p.r, source: from, filter: p.filter, oldest: p.Oldest, need: p.limit + 1, at: p.after, window: firstWindow}
	if from.leaving() && !p.narrow(s) {
		return nil
	}
	deadline := time.Now().Add(p.share * 9 / 10)
	more, err := s.walk(ctx, deadline)
	if err != nil {
		return err
	}
	if len(s.keys) > p.limit {
		s.keys = s.keys[:p.limit]
		last := s.keys[p.limit-1]
		p.stopAt(reader.Spot{Time: last.ts, ID: last.id}, false)
	} else if more {
		p.stopAt(reader.Spot{Time: s.at.at, ID: s.at.id}, true)
	}
	if len(s.keys) == 0 {
		return nil
	}
	return p.r.look(ctx, max(time.Until(deadline), p.share/10), func(ctx context.Context, tx pgx.Tx) error {
		found, err := p.r.decisions(ctx, tx, from.name, s.keys, p.Payload)
		p.decisions = append(p.decisions, found...)
		return err
	})
}

// narrow limits the search of a day that was taken out to that day, and to the end of the page so far. It returns false if nothing
// is left to search.
func (p *page) narrow(s *search) bool {
	f, day := &s.filter, s.source.day
	f.Since = later(f.Since, day.from)
	if f.Until.IsZero() || f.Until.After(day.to) {
		f.Until = day.to
	}
	if p.Oldest {
		if s.at.set && s.at.at.Before(f.Since) {
			s.at = spot{}
		}
		if p.more && !p.stop.Time.After(f.Until) {
			f.Until = p.stop.Time.Add(time.Microsecond)
		}
		return f.Since.Before(f.Until) && (!s.at.set || s.at.at.Before(f.Until))
	}
	if s.at.set && s.at.at.After(f.Until) {
		s.at = spot{}
	}
	if p.more {
		f.Since = later(f.Since, p.stop.Time)
	}
	return f.Since.Before(f.Until) && (!s.at.set || !s.at.at.Before(f.Since))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// stopAt notes that a table has more behind a place.
func (p *page) stopAt(at reader.Spot, late bool) {
	if !p.more || p.beyond(p.stop, at) {
		p.stop, p.late = at, late
	}
	p.more = true
}

// beyond reports whether a place comes behind another in the order of the page.
func (p *page) beyond(a, b reader.Spot) bool {
	if p.Oldest {
		return a.Compare(b) > 0
	}
	return a.Compare(b) < 0
}

// end puts the page together: as far as each table was read.
func (p *page) end(found *reader.Found) {
	all := p.decisions
	slices.SortStableFunc(all, func(a, b reader.Decision) int {
		if p.Oldest {
			return reader.SpotOf(a).Compare(reader.SpotOf(b))
		}
		return reader.SpotOf(b).Compare(reader.SpotOf(a))
	})
	all = slices.CompactFunc(all, func(a, b reader.Decision) bool { return a.ID == b.ID && a.Time.Equal(b.Time) })
	all = slices.DeleteFunc(all, func(d reader.Decision) bool { return p.more && p.beyond(reader.SpotOf(d), p.stop) })
	switch {
	case len(all) > p.limit:
		all = all[:p.limit]
		found.Next = reader.SpotOf(all[p.limit-1]).Cursor(p.Oldest)
	case p.more:
		found.Next = p.stop.Cursor(p.Oldest)
		if p.late {
			found.Reached = p.stop.Time
		}
	}
	found.Decisions = all
}
