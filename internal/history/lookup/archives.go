package lookup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"docket/internal/history/archive"
	"docket/internal/record/envelope"
)

// archives names the archived days, and reads the archived dead letters.
func (s *search) archives(ctx context.Context, limits Limits) {
	where := s.look.Settings.ArchiveTo
	switch {
	case s.look.Shelf == nil:
		s.missed("archives", "this program does not read them: use `docket where-is`")
		return
	case where == "":
		s.missed("archives", "DOCKET_ARCHIVE_TO is not set")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Within)
	defer cancel()
	name := "archives in " + where
	shelf, err := s.look.Shelf(where)
	if err != nil {
		s.failed(name, err)
		return
	}
	if c, ok := shelf.(interface{ Close() }); ok {
		defer c.Close()
	}
	s.days(ctx, shelf, where)
	s.archivedLetters(ctx, shelf, where, limits)
}

// days names the archived days. Their rows are not read.
func (s *search) days(ctx context.Context, shelf archive.Shelf, where string) {
	name := "archived days in " + where
	switch days, err := archive.Days(ctx, shelf, s.look.Table); {
	case err != nil:
		s.failed(name, s.plainly(err))
	case len(days) == 0:
		s.looked(name, "there are none")
	case len(days) == 1:
		s.missed(name, fmt.Sprintf("%s was not looked into: docket restore --day %[1]s", days[0]))
	default:
		s.missed(name, fmt.Sprintf("%d days from %s to %s were not looked into: docket archive list, docket restore --day DAY", len(days), days[0], days[len(days)-1]))
	}
}

func (s *search) archivedLetters(ctx context.Context, shelf archive.Shelf, where string, limits Limits) {
	name := "archived dead letters in " + where
	read, err := archive.FindLetters(ctx, shelf, func(id string) bool { return s.answers[id] != nil }, limits.Bytes, archive.MostLine(s.mostRecord()))
	for i := range read.Found {
		l := &read.Found[i]
		f := Found{Where: Archived, Name: l.Archive, Partition: envelope.NoPlace, Offset: envelope.NoPlace, Day: l.Day, Time: l.Time, Kind: envelope.Kind(l.Kind), Code: l.Code,
			FailedAt: l.FailedAt, Letter: l.ID, Origin: envelope.Origin{Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Index: l.Index}}
		s.found(l.DecisionID, f, l.Value)
	}
	switch {
	case err != nil:
		s.failed(name, s.plainly(err))
	case read.Left > 0:
		s.missed(name, fmt.Sprintf("only the newest %d of %d archives were read, as the others hold too much", read.Archives, read.Archives+read.Left))
	case read.Archives == 0:
		s.looked(name, "there are none")
	default:
		s.looked(name, fmt.Sprintf("%d archives", read.Archives))
	}
}

// plainly explains a timeout.
func (s *search) plainly(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("it timed out after %v", s.look.Limits.withDefaults().Within.Round(time.Millisecond))
	}
	return err
}
