package cold

import (
	"context"
	"errors"

	"docket/internal/history/reader"
)

// Counts is the part of the table that counts decisions.
type Counts interface {
	// StatsLate is [reader.Store]'s Stats with the decisions that were stored after their day was archived. A
	// [reader.PartialError] comes with an answer.
	StatsLate(ctx context.Context, q reader.StatsQuery) ([]reader.Stats, reader.Lates, error)
}

var (
	errNoPlace  = errors.New("DOCKET_ARCHIVE_TO is not set")
	errTooMany  = errors.New("they are too many to look for each in the archives; docket archive --day DAY counts them")
	errNotFound = errors.New("not all of their archives could be read")
)

// Stats counts each decision once: a late one that an archive has was counted before the archive dropped it. If the archives
// do not tell, the decision is counted, and the answer says how many of these there are.
func (s *Store) Stats(ctx context.Context, of Counts, q reader.StatsQuery) ([]reader.Stats, error) {
	lines, late, err := of.StatsLate(ctx, q)
	var parts reader.Parts
	if err := parts.Pass(err); err != nil {
		return nil, err
	}
	doubt := func(n int, why error) {
		_ = parts.Pass(&reader.PartialError{Missed: []reader.Missed{reader.LateGap(int64(n), why.Error())}})
	}
	switch {
	case late.All == 0:
	case s.Days.None():
		doubt(int(late.All), errNoPlace)
	case late.All > int64(len(late.Some)):
		doubt(int(late.All), errTooMany)
	default:
		unknown := s.once(ctx, lines, late.Some)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if unknown > 0 {
			doubt(unknown, errNotFound)
		}
	}
	return withoutEmpty(lines), reader.Told(ctx, parts.Err())
}

// once takes late decisions that an archive has out of the lines. It returns how many may be in an archive that was not read.
func (s *Store) once(ctx context.Context, lines []reader.Stats, late []reader.Late) (unknown int) {
	spots := make([]reader.Spot, len(late))
	for i, l := range late {
		spots[i] = l.Spot
	}
	found := s.Days.copies(ctx, spots, true)
	again := map[reader.Spot]bool{}
	stored := make(map[reader.Spot]reader.Late, len(late))
	for _, l := range late {
		stored[l.Spot] = l
	}
	for _, d := range found.Decisions {
		// An archive of the row itself was made before it is counted.
		if l, ok := stored[reader.SpotOf(d)]; ok && !d.StoredAt.Equal(l.StoredAt) {
			again[l.Spot] = true
		}
	}
	for _, l := range late {
		if !again[l.Spot] {
			if len(found.Gaps) > 0 {
				unknown++
			}
			continue
		}
		for i := range lines {
			if lines[i].Name == l.Name && lines[i].From.Equal(l.From) {
				lines[i].Counts[l.Verdict]--
			}
		}
	}
	return unknown
}

// withoutEmpty removes verdicts and lines that count nothing.
func withoutEmpty(lines []reader.Stats) []reader.Stats {
	kept := lines[:0]
	for _, l := range lines {
		for v, n := range l.Counts {
			if n == 0 {
				delete(l.Counts, v)
			}
		}
		if len(l.Counts) > 0 {
			kept = append(kept, l)
		}
	}
	return kept
}
