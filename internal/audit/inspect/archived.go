package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"docket/internal/audit/verify"
	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
)

// archivedRows adds the rows of decisions that the table lacks: from days that are being archived, and from archives. It tells of
// places that could not be read, because their decisions count as lost.
func (s *System) archivedRows(ctx context.Context, lacks []*verify.Decision, ev *verify.Evidence, add func(of *verify.Decision, row verify.Row, equal bool), told func(string)) error {
	if len(lacks) == 0 {
		return nil
	}
	of := make([]reader.Spot, len(lacks))
	by := make(map[reader.Spot][]*verify.Decision, len(lacks))
	for i, d := range lacks {
		of[i] = reader.Spot{Time: d.Time, ID: d.ID}
		by[of[i]] = append(by[of[i]], d)
	}
	asking, parts := reader.WithParts(ctx)
	table := historydb.NewReader(s.db.DB)
	found, err := table.Having(asking, of)
	if err != nil {
		return err
	}
	gaps := parts.NotRead()
	of = slices.DeleteFunc(of, func(at reader.Spot) bool {
		return slices.ContainsFunc(found, func(d reader.Decision) bool { return reader.SpotOf(d) == at })
	})
	if len(of) > 0 && s.days.None() {
		// Without the place of the archives the notes say which days nobody needs. A login that may not read them has none.
		if left, err := table.Left(ctx); err == nil {
			days, told := givenUp(left, of)
			gaps, ev.Forgotten = append(gaps, told...), append(ev.Forgotten, forgotten(lacks, found, days)...)
			of = slices.DeleteFunc(of, func(at reader.Spot) bool { _, is := days[archive.DayOf(at.Time)]; return is })
		} else if ctx.Err() != nil {
			return err
		}
	}
	if len(of) > 0 && s.days.None() {
		if maybe, err := table.MayBeArchived(ctx); err != nil || maybe {
			gaps = append(gaps, reader.Gap{Name: "archives", Why: "DOCKET_ARCHIVE_TO is not set, and days were archived or removed"})
		}
	} else if len(of) > 0 {
		cold := s.days.Having(ctx, of)
		found, gaps = append(found, cold.Decisions...), append(gaps, cold.Gaps...)
		ev.Forgotten = append(ev.Forgotten, forgotten(lacks, found, cold.Forgotten)...)
	}
	blind := false
	for _, d := range found {
		row := verify.Row{Place: verify.Place{Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, Index: d.Index}, ID: d.ID, Time: d.Time, StoredAt: d.StoredAt}
		for _, of := range by[reader.SpotOf(d)] {
			odd := len(d.Unfaithful) > 0 || d.Unreadable
			blind = blind || odd && of.Body != nil
			add(of, row, odd || of.Body == nil || verify.SameJSON(d.Raw, of.Body))
		}
	}
	if blind {
		told("archived payloads that jsonb cannot hold: their exact bytes are not compared")
	}
	for _, g := range gaps {
		if g.Forgotten || s.standby() { // of a standby nothing counts as lost
			told(g.String())
			continue
		}
		told(g.String() + ": its decisions count as lost")
	}
	return nil
}

// givenUp returns the days of decisions that were given up on purpose, and says so. A day that was archived again needs that
// archive, and is not among them.
func givenUp(left []archive.Left, of []reader.Spot) (days map[archive.Day]time.Time, told []reader.Gap) {
	sought := map[archive.Day]bool{}
	for _, at := range of {
		sought[archive.DayOf(at.Time)] = true
	}
	days = map[archive.Day]time.Time{}
	for _, l := range left { // in order
		if f := l.Forgotten; f != nil && len(l.Archives) == 0 && sought[l.Day] {
			days[l.Day] = f.At
			told = append(told, reader.Gap{Name: "archives", Why: l.String() + " was " + f.String(), Forgotten: true})
		}
	}
	if n := len(told); n > 1 {
		told = []reader.Gap{{Name: "archives", Why: fmt.Sprintf("%d days were forgotten on purpose: docket archive days says by whom, and why", n), Forgotten: true}}
	}
	return days, told
}

// forgotten returns the decisions that were not found and are of days that were given up on purpose. One whose record came
// only afterwards has to be somewhere.
func forgotten(lacks []*verify.Decision, found []reader.Decision, days map[archive.Day]time.Time) (of []verify.Place) {
	has := map[reader.Spot]bool{}
	for _, d := range found {
		has[reader.SpotOf(d)] = true
	}
	for _, d := range lacks {
		if at, is := days[archive.DayOf(d.Time)]; is && !d.Stamp.After(at) && !has[reader.Spot{Time: d.Time, ID: d.ID}] {
			of = append(of, d.Place)
		}
	}
	return of
}
