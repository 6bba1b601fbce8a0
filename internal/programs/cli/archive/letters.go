package archive

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"docket/internal/history/archive"
	"docket/internal/programs/cli/term"
	"docket/internal/service/buildinfo"
)

func (b *base) lettersCarrier(shelf archive.Shelf, by string) *archive.LettersCarrier {
	c := &archive.LettersCarrier{Table: b.Sys.Letters, Shelf: shelf, By: by, Docket: buildinfo.String(), Now: b.Clock,
		LineBytes: archive.MostLine(int64(b.Settings.MaxRecordBytes))}
	if b.verbose {
		c.Told = func(step archive.Step) { b.Tell("step %s\n", step) }
	}
	return c
}

// lettersDue are the days whose closed dead letters can be archived: those before yesterday.
func (x *export) lettersDue(ctx context.Context) ([]archive.LettersHeld, error) {
	return x.Sys.Letters.Days(ctx, archive.Day{Time: archive.DayOf(x.Now()).AddDate(0, 0, -1)})
}

// archiveLetters archives the closed dead letters of days, and returns how many days failed.
func (x *export) archiveLetters(ctx context.Context, shelf archive.Shelf, days []archive.LettersHeld, by string) (told []jsonArchived, failed int, err error) {
	c := x.lettersCarrier(shelf, by)
	for _, held := range days {
		done, err := c.Archive(ctx, held.Day)
		told = append(told, lettersArchivedOf(done, err))
		switch {
		case errors.Is(err, context.Canceled):
			return told, failed, err
		case err != nil:
			failed++
			x.Failed(fmt.Errorf("dead letters of %s: %w", held.Day, err))
		case !x.AsJSON:
			x.Say("%s\n", lettersArchivedLine(done))
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
		return fmt.Sprintf("%s: %s in %s, %s, verified; an archive existed already", d.Day, term.Counted(d.Letters, "dead letter"), term.Counted(int64(d.Files), "file"), sized(d.Bytes))
	}
	return fmt.Sprintf("%s: %s in %s, %s, verified", d.Day, term.Counted(d.Letters, "dead letter"), term.Counted(int64(d.Files), "file"), sized(d.Bytes))
}
