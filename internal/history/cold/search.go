package cold

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
)

// Span is the question of a search to archived days.
type Span struct {
	Query
	// Until ends the range in the order of the search, its decision included; zero: there is no end.
	Until reader.Spot
	// By ends the reading: days that were not read by then are gaps. Zero: a search that runs out of time stops, and
	// can be continued.
	By time.Time
}

// Result is the answer of a search.
type Result struct {
	Decisions []reader.Decision // in the order of the search, at most Limit
	// Stop is how far the search came, if there may be more; zero: there is no more in the range.
	Stop reader.Spot
	// Late says that it stopped because its time was over.
	Late bool
	Gaps []reader.Gap
}

// times returns the range of times that the question needs.
func (s Span) times() (since, until time.Time) {
	since, until = s.Filter.Since, s.Filter.Until
	for _, at := range []struct {
		spot  reader.Spot
		lower bool
	}{{s.After, s.Oldest}, {s.Until, !s.Oldest}} {
		end := at.spot.Time
		if at.spot.ID != "" {
			end = end.Add(time.Microsecond) // others of that time may be in the range
		}
		switch {
		case at.spot.IsZero():
		case at.lower && at.spot.Time.After(since):
			since = at.spot.Time
		case !at.lower && (until.IsZero() || end.Before(until)):
			until = end
		}
	}
	return since, until
}

// Touches reports whether an archived day can be in the range, as only settled days are archived.
func (s Span) Touches(now time.Time) bool {
	since, until := s.times()
	if !until.IsZero() && !since.Before(until) {
		return false
	}
	return since.IsZero() || archive.DayOf(since).Settled(now)
}

// days chooses the days of the range, in the order of the search.
func (s Span) days(all []archive.Listed) []archive.Listed {
	since, until := s.times()
	var of []archive.Listed
	for _, one := range all {
		if (until.IsZero() || one.Before(until)) && (since.IsZero() || one.Next().After(since)) {
			of = append(of, one)
		}
	}
	if !s.Oldest {
		slices.Reverse(of)
	}
	return of
}

// edge is the place before a day in the order of the search.
func (s Span) edge(of archive.Day) reader.Spot {
	if s.Oldest {
		return reader.Spot{Time: of.Time}
	}
	return reader.Spot{Time: of.Next().Time}
}

// Search looks through the archived days of a range, one after another, and several at once if their archives have an
// index.
func (d *Days) Search(ctx context.Context, s Span) Result {
	stops := s.By.IsZero()
	ctx, cancel := d.limited(ctx, s.By)
	defer cancel()
	shelf, all, unknown, err := d.known(ctx)
	if err != nil {
		return Result{Gaps: []reader.Gap{{Name: d.name(), Why: d.unread(ctx, err)}}}
	}
	w := walk{days: d, span: s, shelf: shelf, stops: stops}
	w.through(ctx, s.days(all))
	w.result.Gaps = append(unknown, d.gaps(w.looked)...)
	return w.result
}

// limited ends the reading by a time, or after the patience. It ends before the question does, so that what was found
// is an answer.
func (d *Days) limited(ctx context.Context, by time.Time) (context.Context, context.CancelFunc) {
	if by.IsZero() {
		by = time.Now().Add(d.Patience)
	}
	if deadline, ok := ctx.Deadline(); ok {
		if early := deadline.Add(-time.Until(deadline) / 5); early.Before(by) {
			by = early
		}
	}
	return context.WithDeadline(ctx, by)
}

// walk is one search on its way through the days.
type walk struct {
	days   *Days
	span   Span
	shelf  archive.Shelf
	stops  bool // at the end of its time, to be continued
	looked []day
	result Result
}

// through looks into days until the page is full or the time is over.
func (w *walk) through(ctx context.Context, of []archive.Listed) {
	for begun := false; len(of) > 0; begun = true {
		if ctx.Err() != nil && w.stops && begun {
			w.late(of[0].Day)
			return
		}
		part := w.days.loadAll(ctx, w.shelf, of[:min(w.days.Parallel, len(of))])
		if n := slices.IndexFunc(part, func(it day) bool { return !it.fast() }); n >= 0 {
			part = part[:max(n, 1)] // a day without an index has the time for itself
		}
		answers := w.ask(ctx, part)
		for i := range part {
			if w.stops && (begun || i > 0) && slices.Contains(part[i].gaps, errLate) {
				w.late(part[i].Day)
				return
			}
			w.looked = append(w.looked, part[i])
			if full := w.take(answers[i]); full {
				return
			}
		}
		of = of[len(part):]
	}
}

// late stops the search before a day.
func (w *walk) late(before archive.Day) {
	w.result.Stop, w.result.Late = w.span.edge(before), true
}

// take adds the decisions of a day. It reports whether the page is full.
func (w *walk) take(found answer) bool {
	all, end := found.decisions, found.end
	if room := w.span.Limit - len(w.result.Decisions); len(all) >= room {
		all = all[:room]
		end = reader.SpotOf(all[room-1])
	}
	w.result.Decisions = append(w.result.Decisions, all...)
	w.result.Stop = end
	return !end.IsZero()
}

// answer is that of a day. Behind end there may be decisions that are not in it; zero: there are none.
type answer struct {
	decisions []reader.Decision
	end       reader.Spot
}

// ask asks several days at once.
func (w *walk) ask(ctx context.Context, part []day) []answer {
	answers := make([]answer, len(part))
	var work errgroup.Group
	work.SetLimit(w.days.Parallel)
	for i := range part {
		work.Go(func() error {
			answers[i] = w.days.searchDay(ctx, &part[i], w.span)
			return nil
		})
	}
	_ = work.Wait() // the gaps have the errors
	return answers
}

// searchDay asks all archives of a day. A decision counts as the latest archive has it, whether that fits or not.
func (d *Days) searchDay(ctx context.Context, it *day, s Span) answer {
	var a answer
	seen := map[reader.Spot]bool{}
	for i, p := range it.archives {
		found, more, err := d.ahead.search(ctx, p, s.Query, it.Day)
		if err == nil && more && len(found) > 0 {
			if last := reader.SpotOf(found[len(found)-1]); a.end.IsZero() || earlier(last, a.end, s.Oldest) {
				a.end = last
			}
		}
		if err == nil && i > 0 {
			found, err = fresh(ctx, found, it.archives[:i])
		}
		if err != nil {
			it.gaps = append(it.gaps, d.unread(ctx, err))
			continue
		}
		for _, one := range found {
			if at := reader.SpotOf(one); !seen[at] {
				seen[at] = true
				a.decisions = append(a.decisions, one)
			}
		}
	}
	inOrder(a.decisions, s.Oldest)
	a.decisions = slices.DeleteFunc(a.decisions, func(one reader.Decision) bool {
		return !a.end.IsZero() && earlier(a.end, reader.SpotOf(one), s.Oldest)
	})
	return a
}

// earlier reports whether a search comes to a before it comes to b.
func earlier(a, b reader.Spot, oldest bool) bool {
	if oldest {
		return a.Compare(b) < 0
	}
	return a.Compare(b) > 0
}

// fresh leaves out decisions that a later archive of the day has in another form.
func fresh(ctx context.Context, found []reader.Decision, later []part) ([]reader.Decision, error) {
	if len(found) == 0 {
		return nil, nil
	}
	of := make(Sought, len(found))
	for i := range found {
		of[i] = reader.SpotOf(found[i])
	}
	has := map[reader.Spot]bool{}
	for _, p := range later {
		all, _, err := p.Find(ctx, of) // a file has each identity once
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			has[reader.SpotOf(one)] = true
		}
	}
	return slices.DeleteFunc(found, func(one reader.Decision) bool { return has[reader.SpotOf(one)] }), nil
}
