package cold

import (
	"context"
	"slices"
	"time"

	"docket/internal/history/reader"
)

// Table is the part of the table that a search needs.
type Table interface {
	Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error)
	// Having returns the decisions of the table with one of the identities, with their payload. Their order does not
	// matter.
	Having(ctx context.Context, of []reader.Spot) ([]reader.Decision, error)
}

// Store searches the table and the archived days as one.
type Store struct {
	Table Table
	Days  *Days
}

// Search is that of [reader.Store]. It asks the table first, because a day that leaves it has its archive by then. A
// decision of an archive that the table has, too, counts as the table has it.
func (s *Store) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	if s.Days.None() {
		return s.hotAlone(ctx, f, p)
	}
	after, err := reader.ParseCursor(p.After, p.Oldest)
	if err != nil {
		return reader.Found{}, err
	}
	found, err := s.hot(ctx, f, p)
	if err != nil {
		return reader.Found{}, err
	}
	until, err := reader.ParseCursor(found.Next, p.Oldest)
	if err != nil {
		return reader.Found{}, err
	}
	limit := min(max(p.Limit, 1), reader.MaxLimit)
	span := Span{Query: Query{Filter: f, After: after, Oldest: p.Oldest, Limit: limit, Payload: p.Payload}, Until: until, By: p.ArchiveBy}
	if !span.Touches(s.Days.Now()) {
		return found, nil
	}
	cold := s.Days.Search(ctx, span)
	if ctx.Err() != nil {
		return reader.Found{}, ctx.Err()
	}
	asking, parts := reader.WithParts(ctx)
	if cold.Decisions, err = s.onlyThere(asking, f, p, cold.Decisions, found.Decisions); err != nil {
		return reader.Found{}, err
	}
	for _, g := range parts.NotRead() {
		if !slices.Contains(found.NotLooked, g) {
			found.NotLooked = append(found.NotLooked, g)
		}
	}
	return join(found, cold, until, p, limit), nil
}

// Gone tells whether days may have left the table.
type Gone interface {
	// Gone reports whether days of a range may have been archived or removed, and are not in the table. Zero times are open.
	Gone(ctx context.Context, since, until time.Time) (bool, error)
}

// hotAlone asks the table where no archives are known. If the page reaches into days that left the table, it says so.
func (s *Store) hotAlone(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	found, err := s.Table.Search(ctx, f, p)
	of, tells := s.Table.(Gone)
	if err != nil || !tells {
		return found, err
	}
	after, err := reader.ParseCursor(p.After, p.Oldest)
	if err != nil {
		return found, err
	}
	until, err := reader.ParseCursor(found.Next, p.Oldest)
	if err != nil {
		return found, err
	}
	span := Span{Query: Query{Filter: f, After: after, Oldest: p.Oldest}, Until: until}
	now := time.Now
	if s.Days != nil {
		now = s.Days.Now
	}
	if !span.Touches(now()) {
		return found, nil
	}
	gap := reader.Gap{Name: "archived days", Why: "DOCKET_ARCHIVE_TO is not set, and days of that time were archived or removed"}
	switch gone, err := of.Gone(ctx, span.since(), span.until()); {
	case ctx.Err() != nil:
		return reader.Found{}, ctx.Err()
	case err != nil:
		gap.Why = "DOCKET_ARCHIVE_TO is not set, and it is not known whether days of that time were archived"
	case !gone:
		return found, nil
	}
	found.NotLooked = append(found.NotLooked, gap)
	return found, nil
}

func (s Span) since() time.Time { since, _ := s.times(); return since }
func (s Span) until() time.Time { _, until := s.times(); return until }

// hot asks the table. It leaves half of the time for the archives.
func (s *Store) hot(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	return s.Table.Search(ctx, f, p)
}

// onlyThere leaves out decisions that the page of the table has. It replaces those that the table has otherwise by
// the table's, if that fits.
func (s *Store) onlyThere(ctx context.Context, f reader.Filter, p reader.Page, cold, hot []reader.Decision) ([]reader.Decision, error) {
	known := map[reader.Spot]bool{}
	for _, d := range hot {
		known[reader.SpotOf(d)] = true
	}
	cold = slices.DeleteFunc(cold, func(d reader.Decision) bool { return known[reader.SpotOf(d)] })
	if len(cold) == 0 {
		return nil, nil
	}
	of := make([]reader.Spot, len(cold))
	for i, d := range cold {
		of[i] = reader.SpotOf(d)
	}
	rows, err := s.Table.Having(ctx, of)
	if err != nil {
		return nil, err
	}
	have := map[reader.Spot]reader.Decision{}
	for _, d := range rows {
		have[reader.SpotOf(d)] = d
	}
	var only []reader.Decision
	for _, d := range cold {
		if row, ok := have[reader.SpotOf(d)]; ok {
			if !f.Fits(row) {
				continue
			}
			if d = row; !p.Payload {
				d.Raw = nil
			}
		}
		only = append(only, d)
	}
	return only, nil
}

// join merges the two parts of a page. It ends where the first of both ended.
func join(hot reader.Found, cold Result, until reader.Spot, p reader.Page, limit int) reader.Found {
	all := append(slices.Clone(hot.Decisions), cold.Decisions...)
	inOrder(all, p.Oldest)
	end, late := until, !hot.Reached.IsZero()
	if stop := cold.Stop; !stop.IsZero() && (end.IsZero() || earlier(stop, end, p.Oldest)) {
		end, late = stop, cold.Late
	}
	all = slices.DeleteFunc(all, func(d reader.Decision) bool {
		return !end.IsZero() && earlier(end, reader.SpotOf(d), p.Oldest)
	})
	found := reader.Found{Archives: true, NotLooked: slices.Concat(hot.NotLooked, cold.Gaps)}
	switch {
	case len(all) > limit:
		all = all[:limit]
		found.Next = reader.SpotOf(all[limit-1]).Cursor(p.Oldest)
	case !end.IsZero():
		found.Next = end.Cursor(p.Oldest)
		if late && len(all) < limit {
			found.Reached = end.Time
		}
	}
	found.Decisions = all
	return found
}
