package deskcli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"docket/internal/history/archive"
	"docket/internal/service/buildinfo"
)

func (s *session) lettersCarrier(shelf archive.Shelf, a archiving, by string) *archive.LettersCarrier {
	c := &archive.LettersCarrier{Table: s.sys.Letters, Shelf: shelf, By: by, Docket: buildinfo.String(), Now: s.o.Now,
		LineBytes: archive.MostLine(int64(s.settings.MaxRecordBytes))}
	if a.verbose {
		c.Told = func(step archive.Step) { s.tell("step %s\n", step) }
	}
	return c
}

// lettersDue are the days whose closed dead letters can be archived: all that are over for long enough.
func (s *session) lettersDue(ctx context.Context) ([]archive.LettersHeld, error) {
	return s.sys.Letters.Days(ctx, archive.Day{Time: archive.DayOf(s.now()).AddDate(0, 0, -1)})
}

// archiveLetters archives the closed dead letters of days, and says how many days failed.
func (s *session) archiveLetters(ctx context.Context, shelf archive.Shelf, a archiving, days []archive.LettersHeld, by string) (told []jsonArchived, failed int, err error) {
	c := s.lettersCarrier(shelf, a, by)
	for _, held := range days {
		done, err := c.Archive(ctx, held.Day)
		told = append(told, lettersArchivedOf(done, err))
		switch {
		case errors.Is(err, context.Canceled):
			return told, failed, err
		case err != nil:
			failed++
			s.failed(fmt.Errorf("dead letters of %s: %w", held.Day, err))
		case !s.asJSON:
			s.say("%s\n", lettersArchivedLine(done))
		}
	}
	return told, failed, nil
}

func lettersArchivedOf(d archive.LettersArchived, err error) jsonArchived {
	j := jsonArchived{
		Table: archive.LettersName, Day: d.Day.String(), Archive: strings.Join(d.Archives, " "), Rows: d.Letters, Bytes: d.Bytes, Files: d.Files, Reused: d.Reused,
		Seconds: d.Duration.Seconds(),
	}
	if err != nil {
		j.Error = err.Error()
	}
	return j
}

func lettersArchivedLine(d archive.LettersArchived) string {
	switch {
	case len(d.Archives) == 0:
		return fmt.Sprintf("%s: no closed dead letters without an archive", d.Day)
	case d.Reused:
		return fmt.Sprintf("%s: %s in %s, %s, verified; an archive existed already", d.Day, counted(d.Letters, "dead letter"), counted(int64(d.Files), "file"), sized(d.Bytes))
	}
	return fmt.Sprintf("%s: %s in %s, %s, verified", d.Day, counted(d.Letters, "dead letter"), counted(int64(d.Files), "file"), sized(d.Bytes))
}

func (s *session) restoredLetters(ctx context.Context, a archiving, day archive.Day, by string) error {
	shelf, let, err := s.shelf(a.where)
	if err != nil {
		return err
	}
	defer let()
	done, err := s.lettersCarrier(shelf, a, by).Restore(ctx, day)
	if err != nil {
		return fmt.Errorf("dead letters of %s: %w", day, err)
	}
	if s.asJSON {
		s.print(jsonRestored{
			Table: archive.LettersName, Day: done.Day.String(), Archives: done.Archives, Lines: done.Lines, Stored: done.Stored, Equal: done.Equal, Differs: done.Differs,
			Conflicts: append([]string{}, done.Conflicts...), Seconds: done.Duration.Seconds(),
		})
	} else {
		s.say("%s: %s stored, %s already there, verified\n", day, counted(done.Stored, "dead letter"), grouped(done.Equal))
	}
	if done.Differs > 0 {
		s.tell("%s differ from those in the ledger with the same id. The ledger's were kept: %s\n", counted(done.Differs, "dead letter"), strings.Join(done.Conflicts, ", "))
		return endError(1)
	}
	return nil
}
