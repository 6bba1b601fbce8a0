package archive

import (
	"fmt"

	"docket/internal/history/archive"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/service/buildinfo"
)

// base is the part that all commands on archives share.
type base struct {
	frame.Call
	place   string // the archive, by --to or --from; empty: that of the settings
	verbose bool
}

const whereText = "the archive, a `PLACE` (default DOCKET_ARCHIVE_TO)"

// locate refuses a command for which neither a flag nor the settings name the place of archives.
func (b *base) locate(flag string) error {
	if b.place == "" && b.Setting("DOCKET_ARCHIVE_TO") == "" {
		return frame.Misuse("no archive is named: give %s, or set DOCKET_ARCHIVE_TO", flag)
	}
	return nil
}

// locateOrDesk is locate for a command that a desk can do. The desk has a place of its own, so a flag cannot name one.
func (b *base) locateOrDesk(flag string) error {
	target, err := b.Target()
	switch {
	case err != nil:
		return err
	case target == nil:
		return b.locate(flag)
	case b.place != "":
		return frame.Misuse("a desk has its own archive, that of its DOCKET_ARCHIVE_TO: leave away %s, or ask the database and set DOCKET_DATABASE_URL", flag)
	}
	return nil
}

// shelf opens the place of archives; let closes it.
func (b *base) shelf() (shelf archive.Shelf, let func(), err error) {
	if b.Sys.Shelf == nil || b.Sys.Days == nil || b.Sys.Letters == nil {
		return nil, nil, frame.Misuse("this build cannot use archives")
	}
	place := b.place
	if place == "" {
		place = b.Settings.ArchiveTo // in a shard with its name behind it, where answers look
	}
	if shelf, err = b.Sys.Shelf(place); err != nil {
		return nil, nil, err
	}
	let = func() {
		if c, ok := shelf.(interface{ Close() }); ok {
			c.Close()
		}
	}
	return shelf, let, nil
}

func oneDay(text string) (archive.Day, error) {
	day, err := archive.ParseDay(text)
	if err != nil {
		return day, frame.Misuse("--day %s: %v", term.Quoted(text), err)
	}
	return day, nil
}

func (b *base) carrier(shelf archive.Shelf, by string) *archive.Carrier {
	c := &archive.Carrier{Table: b.Sys.Days, Shelf: shelf, By: by, Docket: buildinfo.String(), Now: b.Clock,
		LineBytes: archive.MostLine(int64(b.Settings.MaxRecordBytes))}
	if b.verbose {
		c.Told = func(step archive.Step) { b.Tell("step %s\n", step) }
	}
	return c
}

// sized is a number of bytes in its largest unit.
func sized(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
