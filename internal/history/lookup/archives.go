package lookup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/record/envelope"
)

// archives reads the archived dead letters. The archived days come later.
func (s *search) archives(ctx context.Context, limits Limits) {
	where := s.look.Settings.ArchiveTo
	switch {
	case (s.look.Shelf == nil || where == "") && s.neverArchived(ctx):
		s.looked("archives", "nothing was archived")
		return
	case s.look.Shelf == nil:
		s.missed("archives", "this program does not read them: use `docket where-is`")
		return
	case where == "":
		why := "DOCKET_ARCHIVE_TO is not set"
		if s.look.Archived != nil {
			why += ", and days or dead letters may have been archived"
		}
		s.missed("archives", why)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Within)
	defer cancel()
	name := "archives in " + where
	shelf, let, err := s.shelf(where)
	if err != nil {
		s.failed(name, err)
		return
	}
	defer let()
	s.archivedLetters(ctx, shelf, where, limits)
}

// shelf returns the storage that the archived days keep open, or opens it. let closes it.
func (s *search) shelf(where string) (shelf archive.Shelf, let func(), err error) {
	if days := s.look.Days; !days.None() && days.Where == where {
		shelf, err = days.Open()
		return shelf, func() {}, err
	}
	if shelf, err = s.look.Shelf(where); err != nil {
		return nil, nil, err
	}
	return shelf, func() {
		if c, ok := shelf.(interface{ Close() }); ok {
			c.Close()
		}
	}, nil
}

// neverArchived reports whether it is certain that there are no archives.
func (s *search) neverArchived(ctx context.Context) bool {
	if s.look.Archived == nil {
		return false
	}
	maybe, err := s.look.Archived(ctx)
	return err == nil && !maybe
}

// days reads the archived days. A day that leaves the table has its archive by then, so it comes after the rows.
func (s *search) days(ctx context.Context, limits Limits) {
	if s.look.Days.None() || s.look.Shelf == nil {
		return // archives has said so
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Within)
	defer cancel()
	found := s.look.Days.Find(ctx, s.order)
	s.archived = found.Decisions
	for _, a := range s.answers {
		a.NotLooked = append(a.NotLooked, found.Gaps...)
	}
	name := "archived days in " + s.look.Settings.ArchiveTo
	if found.Days > 0 {
		s.shortened(name)
	}
	switch {
	case found.Days > 0:
		s.looked(name, days(found.Days))
	case len(found.Gaps) == 0:
		s.looked(name, "there are none")
	}
}

// shortened says of an id that nothing has that archived days would need the whole one. Nothing in an archive leads to ids by
// their first characters.
func (s *search) shortened(name string) {
	for id, a := range s.answers {
		if reader.Shortened(id) && a.Nowhere() && !slices.ContainsFunc(s.archived, func(d reader.Decision) bool { return d.ID == id }) {
			a.NotLooked = append(a.NotLooked, Gap{Name: name, Why: "if the id is shortened: give the whole id", Shortened: true})
		}
	}
}

// join adds archived decisions to an answer. One with the identity of a row is a record of that row, or claims its id.
func (s *search) join(a *Answer) {
	for _, d := range s.archived {
		if d.ID != a.ID {
			continue
		}
		if !slices.ContainsFunc(a.Rows, func(r reader.Decision) bool { return r.Time.Equal(d.Time) }) {
			a.Archived = append(a.Archived, d)
			continue
		}
		s.found(d.ID, InArchiveOf(d), d.Raw)
	}
}

// InArchiveOf tells of a decision of an archived day.
func InArchiveOf(d reader.Decision) Found {
	return Found{Where: InArchive, Name: d.Archived.File, Day: d.Archived.Day, Partition: envelope.NoPlace, Offset: envelope.NoPlace, Time: d.Time,
		Origin: envelope.Origin{Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, Index: d.Index}}
}

func (s *search) archivedLetters(ctx context.Context, shelf archive.Shelf, where string, limits Limits) {
	name := "archived dead letters in " + where
	noted, unknown := s.lettersNoted(ctx) // before the shelf, as an archive is noted after it was written
	read, err := archive.FindLetters(ctx, shelf, func(id string) bool { return s.answers[id] != nil }, limits.Bytes, archive.MostLine(s.mostRecord()))
	for i := range read.Found {
		l := &read.Found[i]
		f := Found{Where: Archived, Name: l.Archive, Partition: envelope.NoPlace, Offset: envelope.NoPlace, Day: l.Day, Time: l.Time, Kind: envelope.Kind(l.Kind), Code: l.Code,
			FailedAt: l.FailedAt, Letter: l.ID, Origin: envelope.Origin{Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Index: l.Index}}
		s.found(l.DecisionID, f, l.Value)
	}
	if unknown != nil {
		s.missed(name, "it is not known whether archives are missing: "+s.told(s.plainly(unknown)))
	}
	lacks := false
	if err == nil || len(read.There) > 0 { // it was listed
		lost, forgotten := archive.AbsentLetters(noted, read.There, archive.BrokenNames(err)...)
		if lacks = len(lost) > 0; lacks {
			s.missed(name, absent(lost))
		}
		if told := archive.GivenUp(forgotten); told != "" {
			s.lack(Gap{Name: name, Why: told, Forgotten: true})
		}
	}
	switch {
	case err != nil:
		s.failed(name, s.plainly(err))
	case unknown != nil, lacks:
	case read.Left > 0:
		s.missed(name, fmt.Sprintf("only the newest %d of %d archives were read, as the others hold too much", read.Archives, read.Archives+read.Left))
	case read.Archives == 0:
		s.looked(name, "there are none")
	default:
		s.looked(name, fmt.Sprintf("%d archives", read.Archives))
	}
}

// lettersNoted returns the archives that the ledger noted.
func (s *search) lettersNoted(ctx context.Context) ([]archive.Noted, error) {
	if s.look.Noted == nil {
		return nil, nil
	}
	return s.look.Noted(ctx)
}

// absent names archives that are missing, up to three of them.
func absent(lost []archive.Noted) string {
	const most = 3
	e := archive.AbsentError{Day: lost[0].Day()}
	for i := range lost {
		e.Archives = append(e.Archives, lost[i].Archive)
	}
	if n := len(e.Archives) - most; n > 0 {
		e.Archives = append(e.Archives[:most], fmt.Sprintf("and %d others", n))
	}
	return e.Error()
}

// plainly explains a timeout.
func (s *search) plainly(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("it timed out after %v", s.look.Limits.withDefaults().Within.Round(time.Millisecond))
	}
	return err
}

// days is a number of days in words.
func days(n int) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}
