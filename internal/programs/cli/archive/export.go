package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/history/archive"
	"docket/internal/history/archive/nightly"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/record/subject"
)

// export is docket archive.
type export struct {
	base
	day, older, operator    string
	format                  string
	keep, dry, yes, letters bool
	withoutStates           bool
}

// Command makes the command that archives days; it holds those that list and verify archives.
func Command(call, asking frame.Call) *cobra.Command {
	x := &export{base: base{Call: call}}
	c := &cobra.Command{
		Use: "archive {--day DAY | --older-than DAYS | --dead-letters [--day DAY]} [flags]", Short: "Export whole days of decisions, then drop them from the table", DisableFlagsInUseLine: true,
		Long: "Export whole days of decisions, then drop them from the table.\n\n" +
			"A day is written as Parquet with a manifest and read back. It is dropped only if the same rows are\n" +
			"in the table by count and hash. If the command is killed, run it again. Only days before yesterday\n" +
			"(UTC) can be archived. The database role must own the table. A day that fails does not stop the others.\n\n" +
			"Dead letters that were closed can be the only copy of a decision. --older-than (without --keep) and\n" +
			"--dead-letters export those closed before yesterday, whatever their age. The desk removes an exported\n" +
			"dead letter after DOCKET_DESK_KEEP_RESOLVED (default 168h); others stay in the ledger.",
		Example: `  docket archive --older-than 90d --dry-run
  docket archive --older-than 90d --to /srv/docket-archive --operator mara
  docket archive --day 2026-08-01 --to /srv/docket-archive --keep --operator mara
  docket archive --dead-letters --to /srv/docket-archive --operator mara
  docket archive list --from /srv/docket-archive
  docket archive verify --day 2026-08-01 --from /srv/docket-archive`,
		Args: frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&x.day, "day", "", "only this `DAY`: YYYY-MM-DD, in UTC")
	f.StringVar(&x.older, "older-than", "", "all days that ended at least `DAYS` ago: 90d (1d to 36500d)")
	f.StringVar(&x.place, "to", "", whereText)
	f.StringVar(&x.format, "format", formatParquet, "write decisions as parquet or jsonl: `FORMAT`; jsonl is gzip JSON lines, as earlier releases wrote")
	f.BoolVar(&x.letters, "dead-letters", false, "only dead letters that were closed, not decisions")
	f.BoolVar(&x.keep, "keep", false, "export and verify only; do not drop anything")
	f.BoolVar(&x.dry, "dry-run", false, "print what would be archived; change nothing; needs no operator and no archive")
	f.BoolVar(&x.yes, "yes", false, "do not ask for confirmation; it asks only on a terminal")
	f.BoolVar(&x.withoutStates, "without-states", false, "archive also days with decisions that no state of a subject has yet")
	f.BoolVar(&x.verbose, "verbose", false, "print each step to standard error")
	f.StringVar(&x.operator, "operator", "", frame.OperatorText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_ARCHIVE_TO"}, "all days are archived; or no day is that old; or you answered no", "at least one day failed, or the command failed")
	frame.Complete(c, map[string]frame.Completion{"format": frame.Fixed([]string{formatParquet, formatLines})})
	c.RunE = x.Run(x.check)
	c.AddCommand(listCommand(asking), daysCommand(asking), verifyCommand(asking), forgetCommand(asking))
	return c
}

// cut is the first day that is too young for --older-than.
func (x *export) cut(older string) (archive.Day, error) {
	n, err := nightly.ParseAge(older)
	if err != nil {
		return archive.Day{}, frame.Misuse("--older-than must be a number of days like 90d, not %s", term.Quoted(older))
	}
	return archive.Day{Time: archive.DayOf(x.Now()).AddDate(0, 0, -n)}, nil
}

// check looks at the flags.
func (x *export) check([]string) (frame.Work, error) {
	switch {
	case x.letters && x.older != "":
		return nil, frame.Misuse("--older-than archives dead letters, too: give one of the two")
	case x.format != formatParquet && x.format != formatLines:
		return nil, frame.Misuse("--format must be parquet or jsonl, not %s", term.Quoted(x.format))
	case x.letters && x.keep:
		return nil, frame.Misuse("--keep is for decisions: dead letters are never dropped by this command")
	case !x.letters && (x.day == "") == (x.older == ""):
		return nil, frame.Misuse("give --day, --older-than or --dead-letters, one of them")
	}
	chosen, err := x.chosen()
	if err != nil {
		return nil, err
	}
	if x.dry {
		return func(ctx context.Context) error {
			due, err := chosen(ctx)
			if err != nil {
				return err
			}
			return x.wouldArchive(due)
		}, nil
	}
	by, err := x.OperatorName(x.operator)
	if err != nil {
		return nil, err
	}
	if err = x.locate("--to"); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		due, err := chosen(ctx)
		if err != nil {
			return err
		}
		return x.archive(ctx, due, by)
	}, nil
}

// due are the days that the flags choose.
type due struct {
	days    []archive.Held
	letters []archive.LettersHeld
}

func (d due) nothing() bool { return len(d.days) == 0 && len(d.letters) == 0 }

// able counts the days that can be archived, each with a partition of its own.
func (d due) able() (n int64) {
	for _, h := range d.days {
		if h.Location != archive.Shared {
			n++
		}
	}
	return n
}

func (x *export) archive(ctx context.Context, d due, by string) error {
	shelf, let, err := x.shelf()
	if err != nil {
		return err
	}
	defer let()
	if d.nothing() {
		x.noneDue()
		if x.AsJSON {
			x.Print(frame.ListOf([]jsonArchived{}, "", func(t jsonArchived) jsonArchived { return t }))
		}
		return nil
	}
	if n := d.able(); n > 0 && !x.yes && !x.keep && x.Asks() {
		ok, err := x.Confirm(ctx, fmt.Sprintf("Archive %s to %s and drop what is verified?", term.Counted(n, "day"), term.Brief(shelf.String())), false)
		if err != nil || !ok {
			return err
		}
	}
	told, failed, err := x.archiveDecisions(ctx, shelf, d.days, by)
	if err == nil {
		var letters []jsonArchived
		var more int
		letters, more, err = x.archiveLetters(ctx, shelf, d.letters, by)
		told, failed = append(told, letters...), failed+more
	}
	if x.AsJSON && (err == nil || len(told) > 0) { // also where it was stopped: days before were dropped
		x.Print(frame.ListOf(told, "", func(t jsonArchived) jsonArchived { return t }))
	}
	if err != nil {
		return err
	}
	if failed > 0 {
		return frame.Exit(1)
	}
	return nil
}

// The formats of decisions. Dead letters are always lines.
const (
	formatParquet = "parquet"
	formatLines   = "jsonl"
)

// writing is the carrier with the format and the subject of the settings.
func (x *export) writing(shelf archive.Shelf, by string) (*archive.Carrier, error) {
	c := x.carrier(shelf, by)
	c.Lines, c.WithoutStates = x.format == formatLines, x.withoutStates
	var err error
	if c.Subject, err = subject.Parse(x.Settings.ReaderSubject); err != nil {
		return nil, frame.Misuse("DOCKET_READER_SUBJECT: %v", err)
	}
	return c, nil
}

func (x *export) noneDue() {
	if x.letters {
		x.Tell("no dead letters that were closed before yesterday (UTC) wait for an archive\n")
		return
	}
	x.Tell("no day is that old\n")
}

// archiveDecisions archives days of the table, and returns how many failed.
func (x *export) archiveDecisions(ctx context.Context, shelf archive.Shelf, days []archive.Held, by string) (told []jsonArchived, failed int, err error) {
	c, err := x.writing(shelf, by)
	if err != nil {
		return nil, 0, err
	}
	for _, held := range days {
		if held.Location == archive.Shared && x.day == "" {
			x.Tell("%s and before: not archived; these rows share one partition with other days (docs/archive.md, \"What has no day of its own\")\n", held.Day)
			continue
		}
		done, err := c.Archive(ctx, held.Day, x.keep)
		if err == nil && done.Archive == "" {
			err = x.notThere(ctx, shelf, &done)
		}
		told = append(told, archivedOf(done, err))
		switch {
		case err == nil && !x.AsJSON:
			x.Say("%s\n", archivedLine(done, x.keep))
		case errors.Is(err, context.Canceled):
			return told, failed, err
		case err != nil:
			failed++
			x.Failed(fmt.Errorf("%s: %w", held.Day, err))
		}
	}
	return told, failed, nil
}

// notThere handles a day that is not in the table: if it was archived before, done gets the numbers of its archives.
func (x *export) notThere(ctx context.Context, shelf archive.Shelf, done *archive.Archived) error {
	left, err := x.left(ctx, done.Day) // first, because a day leaves the table after its archive was written
	if err != nil {
		return err
	}
	all, err := archive.Whole(ctx, shelf, x.Sys.Days.Name(), &done.Day)
	if err != nil {
		return err
	}
	if left != nil {
		if lacks := left.Absent(all); lacks != nil {
			lacks.Archives = left.Lacks(all) // also if none is there
			return lacks
		}
	}
	superseded := archive.Superseded(all)
	for _, m := range all {
		if superseded[m.Name()] {
			continue
		}
		done.Archive, done.Reused = m.Name(), true
		done.Rows += m.Rows
		done.Bytes += m.Bytes()
		done.Files += len(m.Files)
	}
	return nil
}

// left returns the day if an archive took it out of the table; nil: none did, or it is not known.
func (x *export) left(ctx context.Context, day archive.Day) (*archive.Left, error) {
	if x.Sys.Left == nil {
		return nil, nil
	}
	all, err := x.Sys.Left(ctx)
	if n := slices.IndexFunc(all, func(l archive.Left) bool { return l.Day == day }); n >= 0 {
		return &all[n], err
	}
	if errors.Is(err, archive.ErrLeftUnread) { // a login without that right may archive
		return nil, nil
	}
	return nil, err
}

// chosen makes a function that finds the days that the flags choose.
func (x *export) chosen() (func(context.Context) (due, error), error) {
	if x.day != "" {
		day, err := oneDay(x.day)
		one := due{days: []archive.Held{{Day: day, Rows: -1}}}
		if x.letters {
			one = due{letters: []archive.LettersHeld{{Day: day, Letters: -1}}}
		}
		return func(context.Context) (due, error) { return one, nil }, err
	}
	if x.letters {
		return func(ctx context.Context) (d due, err error) {
			d.letters, err = x.lettersDue(ctx)
			return d, err
		}, nil
	}
	cut, err := x.cut(x.older)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (d due, err error) {
		if d.days, err = x.olderThan(ctx, cut); err == nil && !x.keep {
			d.letters, err = x.lettersDue(ctx)
		}
		return d, err
	}, nil
}

func (x *export) olderThan(ctx context.Context, cut archive.Day) ([]archive.Held, error) {
	held, err := x.Sys.Days.Days(ctx, cut)
	return archive.Once(held), err
}

func archivedLine(d archive.Archived, keep bool) string {
	text := fmt.Sprintf("%s: %s in %s, %s, verified", d.Day, term.Counted(d.Rows, "row"), term.Counted(int64(d.Files), "file"), sized(d.Bytes))
	switch {
	case d.Archive == "":
		return fmt.Sprintf("%s: no rows in the table and no archive", d.Day)
	case d.Dropped && d.Late:
		text += " and dropped; exported again because new rows arrived meanwhile"
	case d.Dropped && d.Reused:
		text += " again and dropped; the archive existed already"
	case d.Dropped:
		text += " and dropped"
	case keep:
		text += "; still in the table (--keep)"
	default:
		text = fmt.Sprintf("%s: not in the table; already archived, %s", d.Day, term.Counted(d.Rows, "row"))
	}
	if len(d.LeftOut) > 0 {
		var names []string
		for _, c := range d.LeftOut {
			names = append(names, term.Brief(c.Name))
		}
		text += "; without generated columns: " + strings.Join(names, ", ")
	}
	return text
}

// wouldArchive is the dry run.
func (x *export) wouldArchive(d due) error {
	if x.AsJSON {
		all := make([]jsonHeld, 0, len(d.days)+len(d.letters))
		for _, h := range d.days {
			all = append(all, heldOf(h))
		}
		for _, h := range d.letters {
			all = append(all, jsonHeld{Table: archive.LettersName, Day: h.Day.String(), Location: "ledger", Rows: h.Letters, Bytes: h.Bytes})
		}
		x.Print(frame.ListOf(all, "", func(h jsonHeld) jsonHeld { return h }))
		return nil
	}
	if d.nothing() {
		x.noneDue()
		return nil
	}
	var rows [][]term.Cell
	for _, h := range d.days {
		about := "unknown"
		if h.Rows >= 0 {
			about = term.Grouped(h.Rows)
		}
		rows = append(rows, term.Cells(h.Day.String(), about, sized(h.Bytes), would(h)))
	}
	for _, h := range d.letters {
		about, size := "unknown", ""
		if h.Letters >= 0 {
			about, size = term.Grouped(h.Letters), sized(h.Bytes)
		}
		rows = append(rows, term.Cells(h.Day.String(), about, size, "archive dead letters; the desk removes them later"))
	}
	x.Table([]term.Column{{Title: "day"}, {Title: "rows (estimate)", Right: true}, {Title: "size in the table", Right: true}, {Title: "action"}}, rows, "")
	return nil
}

func would(h archive.Held) string {
	switch {
	case h.Location == archive.Shared:
		return "none: shares a partition with other days"
	case h.Location == archive.Leaving:
		return "finish the archive that was interrupted"
	case h.Location == archive.Strays:
		return "move out of the default partition, archive, drop"
	}
	return "archive, drop"
}
