package deskcli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/history/archive"
	"docket/internal/service/buildinfo"
	"docket/internal/service/config"
)

// archiving is what the flags of an archive or a restore say.
type archiving struct {
	day, older, where, operator string
	keep, dry, yes, verbose     bool
	all                         bool
	letters                     bool // dead letters, and not decisions
}

const whereText = "the archive, a `PLACE` (default DOCKET_ARCHIVE_TO)"

func (s *session) archive() *cobra.Command {
	var a archiving
	c := &cobra.Command{
		Use: "archive {--day DAY | --older-than DAYS | --dead-letters [--day DAY]} [flags]", Short: "Export whole days of decisions, then drop them from the table", DisableFlagsInUseLine: true,
		Long: "Export whole days of decisions, then drop them from the table.\n\n" +
			"A day is written as gzip JSON lines with a manifest and read back. It is dropped only if Postgres\n" +
			"counts and hashes the same rows. If the command is killed, run it again. Only days before yesterday\n" +
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
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&a.day, "day", "", "only this `DAY`: YYYY-MM-DD, in UTC")
	f.StringVar(&a.older, "older-than", "", "all days that ended at least `DAYS` ago: 90d (1d to 36500d)")
	f.StringVar(&a.where, "to", "", whereText)
	f.BoolVar(&a.letters, "dead-letters", false, "only dead letters that were closed, not decisions")
	f.BoolVar(&a.keep, "keep", false, "export and verify only; do not drop anything")
	f.BoolVar(&a.dry, "dry-run", false, "print what would be archived; change nothing; needs no operator and no archive")
	f.BoolVar(&a.yes, "yes", false, "do not ask for confirmation; it asks only on a terminal")
	f.BoolVar(&a.verbose, "verbose", false, "print each step to standard error")
	f.StringVar(&a.operator, "operator", "", operatorText)
	usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_ARCHIVE_TO"}, "all days are archived; or no day is that old; or you answered no", "at least one day failed, or the command failed")
	c.RunE = s.run(func([]string) (work, error) { return s.archiveDays(a) })
	c.AddCommand(s.archiveList(), s.archiveVerify())
	return c
}

func (s *session) restore() *cobra.Command {
	var a archiving
	c := &cobra.Command{
		Use: "restore --day DAY [--dead-letters] [flags]", Short: "Load an archived day back into the table", DisableFlagsInUseLine: true,
		Long: "Load an archived day back into the table.\n\n" +
			"Each archive of the day is verified before its first row is stored, and counted and hashed by Postgres\n" +
			"afterwards. Rows in the table are never changed: a row with another payload is reported. If the\n" +
			"command is killed, run it again. The database role must own the table.\n\n" +
			"With --dead-letters, the dead letters that were closed on that day are entered into the ledger again:\n" +
			"RESOLVED, and removed after DOCKET_DESK_KEEP_RESOLVED (default 168h) as before.",
		Example: "  docket restore --day 2026-08-01 --from s3://archive/docket --operator mara\n" +
			"  docket restore --day 2026-08-01 --dead-letters --operator mara",
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&a.day, "day", "", "the `DAY` to load: YYYY-MM-DD, in UTC")
	f.BoolVar(&a.letters, "dead-letters", false, "dead letters that were closed on that day, not decisions")
	f.StringVar(&a.where, "from", "", whereText)
	f.BoolVar(&a.verbose, "verbose", false, "print each step to standard error")
	f.StringVar(&a.operator, "operator", "", operatorText)
	usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_ARCHIVE_TO"}, "each row of the day is in the table", "a row in the table has another payload, or the command failed")
	c.RunE = s.run(func([]string) (work, error) { return s.restoreDay(a) })
	return c
}

// where is where archives lie, by a flag or by the settings.
func (s *session) where(flag, given string) (string, error) {
	if given == "" {
		given = config.Lookup(s.env.Program, s.env.Environ, "DOCKET_ARCHIVE_TO")
	}
	if given == "" {
		return "", misuse("no archive is named: give %s, or set DOCKET_ARCHIVE_TO", flag)
	}
	return given, nil
}

// shelf opens where archives lie; let is called at the end.
func (s *session) shelf(where string) (shelf archive.Shelf, let func(), err error) {
	if s.sys.Shelf == nil || s.sys.Days == nil || s.sys.Letters == nil {
		return nil, nil, misuse("this build cannot use archives")
	}
	if shelf, err = s.sys.Shelf(where); err != nil {
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
		return day, misuse("--day %s: %v", quoted(text), err)
	}
	return day, nil
}

// cut is the first day that is too young for --older-than.
func (s *session) cut(older string) (archive.Day, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(older, "d"))
	if err != nil || !strings.HasSuffix(older, "d") || n < 1 || n > 36500 {
		return archive.Day{}, misuse("--older-than must be a number of days like 90d, not %s", quoted(older))
	}
	return archive.Day{Time: archive.DayOf(s.now()).AddDate(0, 0, -n)}, nil
}

func (s *session) carrier(shelf archive.Shelf, a archiving, by string) *archive.Carrier {
	c := &archive.Carrier{Table: s.sys.Days, Shelf: shelf, By: by, Docket: buildinfo.String(), Now: s.o.Now,
		LineBytes: archive.MostLine(int64(s.settings.MaxRecordBytes))}
	if a.verbose {
		c.Told = func(step archive.Step) { s.tell("step %s\n", step) }
	}
	return c
}

func (s *session) archiveDays(a archiving) (work, error) {
	switch {
	case a.letters && a.older != "":
		return nil, misuse("--older-than archives dead letters, too: give one of the two")
	case a.letters && a.keep:
		return nil, misuse("--keep is for decisions: dead letters are never dropped by this command")
	case !a.letters && (a.day == "") == (a.older == ""):
		return nil, misuse("give --day, --older-than or --dead-letters, one of them")
	}
	chosen, err := s.chosen(a)
	if err != nil {
		return nil, err
	}
	if a.dry {
		return func(ctx context.Context) error {
			due, err := chosen(ctx)
			if err != nil {
				return err
			}
			return s.wouldArchive(a, due)
		}, nil
	}
	by, err := s.operator(a.operator)
	if err != nil {
		return nil, err
	}
	if a.where, err = s.where("--to", a.where); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		due, err := chosen(ctx)
		if err != nil {
			return err
		}
		return s.archiveChosen(ctx, a, due, by)
	}, nil
}

// due is what the flags mean.
type due struct {
	days    []archive.Held
	letters []archive.LettersHeld
}

func (d due) nothing() bool { return len(d.days) == 0 && len(d.letters) == 0 }

func (s *session) archiveChosen(ctx context.Context, a archiving, d due, by string) error {
	shelf, let, err := s.shelf(a.where)
	if err != nil {
		return err
	}
	defer let()
	if d.nothing() {
		s.noneDue(a)
		if s.asJSON {
			s.print(listOf([]jsonArchived{}, "", func(t jsonArchived) jsonArchived { return t }))
		}
		return nil
	}
	if len(d.days) > 0 && !a.yes && !a.keep && s.asks() {
		ok, err := s.yes(ctx, fmt.Sprintf("Archive %s to %s and drop what is verified?", counted(int64(len(d.days)), "day"), plain(shelf.String())), false)
		if err != nil || !ok {
			return err
		}
	}
	told, failed, err := s.archiveDecisions(ctx, shelf, a, d.days, by)
	if err != nil {
		return err
	}
	letters, more, err := s.archiveLetters(ctx, shelf, a, d.letters, by)
	if err != nil {
		return err
	}
	if s.asJSON {
		s.print(listOf(append(told, letters...), "", func(t jsonArchived) jsonArchived { return t }))
	}
	if failed+more > 0 {
		return endError(1)
	}
	return nil
}

func (s *session) noneDue(a archiving) {
	if a.letters {
		s.tell("no dead letters that were closed before yesterday (UTC) wait for an archive\n")
		return
	}
	s.tell("no day is that old\n")
}

// archiveDecisions archives days of the table, and says how many failed.
func (s *session) archiveDecisions(ctx context.Context, shelf archive.Shelf, a archiving, days []archive.Held, by string) (told []jsonArchived, failed int, err error) {
	c := s.carrier(shelf, a, by)
	for _, held := range days {
		if held.Place == archive.Shared && a.day == "" {
			s.tell("%s and before: not archived; they share one partition\n", held.Day)
			continue
		}
		done, err := c.Archive(ctx, held.Day, a.keep)
		if err == nil && done.Archive == "" {
			err = s.notThere(ctx, shelf, &done)
		}
		told = append(told, archivedOf(done, err))
		switch {
		case err == nil && !s.asJSON:
			s.say("%s\n", archivedLine(done, a.keep))
		case errors.Is(err, context.Canceled):
			return told, failed, err
		case err != nil:
			failed++
			s.failed(fmt.Errorf("%s: %w", held.Day, err))
		}
	}
	return told, failed, nil
}

// notThere says that a day is not in the table because it was archived before; done has that then.
func (s *session) notThere(ctx context.Context, shelf archive.Shelf, done *archive.Archived) error {
	all, err := archive.Whole(ctx, shelf, s.sys.Days.Name(), &done.Day)
	if err != nil {
		return err
	}
	for _, m := range all {
		done.Archive, done.Reused = m.Name(), true
		done.Rows += m.Rows
		done.Bytes += m.Bytes()
		done.Files += len(m.Files)
	}
	return nil
}

// chosen finds what the flags mean.
func (s *session) chosen(a archiving) (func(context.Context) (due, error), error) {
	if a.day != "" {
		day, err := oneDay(a.day)
		one := due{days: []archive.Held{{Day: day, Rows: -1}}}
		if a.letters {
			one = due{letters: []archive.LettersHeld{{Day: day, Letters: -1}}}
		}
		return func(context.Context) (due, error) { return one, nil }, err
	}
	if a.letters {
		return func(ctx context.Context) (d due, err error) {
			d.letters, err = s.lettersDue(ctx)
			return d, err
		}, nil
	}
	cut, err := s.cut(a.older)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (d due, err error) {
		if d.days, err = s.olderThan(ctx, cut); err == nil && !a.keep {
			d.letters, err = s.lettersDue(ctx)
		}
		return d, err
	}, nil
}

func (s *session) olderThan(ctx context.Context, cut archive.Day) ([]archive.Held, error) {
	held, err := s.sys.Days.Days(ctx, cut)
	if err != nil {
		return nil, err
	}
	// What was left off comes first, then each day once: what is in the default partition of a day that has one of its own cannot be.
	var days []archive.Held
	seen := map[archive.Day]bool{}
	for _, h := range held {
		if !seen[h.Day] {
			days = append(days, h)
		}
		seen[h.Day] = true
	}
	return days, nil
}

func archivedLine(d archive.Archived, keep bool) string {
	text := fmt.Sprintf("%s: %s in %s, %s, verified", d.Day, counted(d.Rows, "row"), counted(int64(d.Files), "file"), sized(d.Bytes))
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
		text = fmt.Sprintf("%s: not in the table; already archived, %s", d.Day, counted(d.Rows, "row"))
	}
	if len(d.LeftOut) > 0 {
		var names []string
		for _, c := range d.LeftOut {
			names = append(names, plain(c.Name))
		}
		text += "; without generated columns: " + strings.Join(names, ", ")
	}
	return text
}

func (s *session) restoreDay(a archiving) (work, error) {
	if a.day == "" {
		return nil, misuse("give --day")
	}
	day, err := oneDay(a.day)
	if err != nil {
		return nil, err
	}
	by, err := s.operator(a.operator)
	if err != nil {
		return nil, err
	}
	if a.where, err = s.where("--from", a.where); err != nil {
		return nil, err
	}
	if a.letters {
		return func(ctx context.Context) error { return s.restoredLetters(ctx, a, day, by) }, nil
	}
	return func(ctx context.Context) error { return s.restored(ctx, a, day, by) }, nil
}

func (s *session) restored(ctx context.Context, a archiving, day archive.Day, by string) error {
	shelf, let, err := s.shelf(a.where)
	if err != nil {
		return err
	}
	defer let()
	done, err := s.carrier(shelf, a, by).Restore(ctx, day)
	if err != nil {
		return fmt.Errorf("%s: %w", day, err)
	}
	if s.asJSON {
		s.print(restoredOf(done))
	} else {
		s.say("%s: %s stored, %s already there, verified\n", day, counted(done.Stored, "row"), grouped(done.Equal))
		if done.Again > 0 {
			s.say("%s already there with the same payload, delivered again since; the table's rows were kept\n", grouped(done.Again))
		}
	}
	if done.Differs > 0 {
		s.tell("%s differ from the row in the table with the same decision_id and ts. The table's rows were kept: %s\n",
			counted(done.Differs, "row"), plainAll(strings.Join(done.Conflicts, ", ")))
		return endError(1)
	}
	return nil
}

// sized is a number of bytes as people have it.
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
