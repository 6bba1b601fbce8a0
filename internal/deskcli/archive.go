package deskcli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/archive"
	"docket/internal/buildinfo"
	"docket/internal/config"
)

// archiving is what the flags of an archive or a restore say.
type archiving struct {
	day, older, where, operator string
	keep, dry, yes, verbose     bool
	all                         bool
}

const whereText = "a `directory`, or s3://bucket/prefix; default DOCKET_ARCHIVE_TO"

func (s *session) archive() *cobra.Command {
	var a archiving
	c := &cobra.Command{
		Use: "archive {--day DAY | --older-than DAYS} [flags]", Short: "Archive days of decisions, and drop them from the table once that is proved", DisableFlagsInUseLine: true,
		Long: "Archive days of decisions: each is written as gzip JSON lines with a manifest, read back from there whole, and dropped from\n" +
			"the table only when Postgres counts and hashes there what was read back. Killed at any point, it is run again.\n" +
			"Days before yesterday (UTC) can be archived. It needs a role that owns the table.",
		Example: `  docket archive --day 2026-08-01 --to /srv/docket-archive --keep
  docket archive --older-than 90d --dry-run
  docket archive --older-than 90d --operator mara
  docket archive list
  docket archive verify --day 2026-08-01`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&a.day, "day", "", "this `day` alone: YYYY-MM-DD, in UTC")
	f.StringVar(&a.older, "older-than", "", "all that ended so many `days` ago: 90d")
	f.StringVar(&a.where, "to", "", whereText)
	f.BoolVar(&a.keep, "keep", false, "write and verify, and leave the table as it is")
	f.BoolVar(&a.dry, "dry-run", false, "say what would be archived, and do nothing")
	f.BoolVar(&a.yes, "yes", false, "do not ask")
	f.BoolVar(&a.verbose, "verbose", false, "tell each step on standard error")
	f.StringVar(&a.operator, "operator", "", "`name` of who decides this; default DOCKET_OPERATOR")
	c.RunE = s.run(func([]string) (work, error) { return s.archiveDays(a) })
	c.AddCommand(s.archiveList(), s.archiveVerify())
	return c
}

func (s *session) restore() *cobra.Command {
	var a archiving
	c := &cobra.Command{
		Use: "restore --day DAY [flags]", Short: "Load an archived day into the table again", DisableFlagsInUseLine: true,
		Long: "Load all archives of a day into the table again: each is read and verified whole before its first row is stored, and\n" +
			"counted and hashed by Postgres afterwards. What is in the table stays; a row that is there with another payload is told\n" +
			"and fails the command. Killed at any point, it is run again. It needs a role that owns the table.",
		Example: "  docket restore --day 2026-08-01 --from s3://archive/docket --operator mara",
		Args:    noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&a.day, "day", "", "the `day`: YYYY-MM-DD, in UTC")
	f.StringVar(&a.where, "from", "", whereText)
	f.BoolVar(&a.verbose, "verbose", false, "tell each step on standard error")
	f.StringVar(&a.operator, "operator", "", "`name` of who decides this; default DOCKET_OPERATOR")
	c.RunE = s.run(func([]string) (work, error) { return s.restoreDay(a) })
	return c
}

// where is where archives lie, by a flag or by the settings.
func (s *session) where(flag, given string) (string, error) {
	if given == "" {
		given = config.Lookup(s.env.Program, s.env.Environ, "DOCKET_ARCHIVE_TO")
	}
	if given == "" {
		return "", misuse("where do archives lie? Give %s, or set DOCKET_ARCHIVE_TO", flag)
	}
	return given, nil
}

// shelf opens where archives lie; let is called at the end.
func (s *session) shelf(where string) (shelf archive.Shelf, let func(), err error) {
	if s.sys.Shelf == nil || s.sys.Days == nil {
		return nil, nil, misuse("this build has no archives")
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
		return archive.Day{}, misuse("--older-than is a number of days, such as 90d, and not %s", quoted(older))
	}
	return archive.Day{Time: archive.DayOf(s.now()).AddDate(0, 0, -n)}, nil
}

func (s *session) carrier(shelf archive.Shelf, a archiving, by string) *archive.Carrier {
	c := &archive.Carrier{Table: s.sys.Days, Shelf: shelf, By: by, Docket: buildinfo.String(), Now: s.o.Now}
	if a.verbose {
		c.Told = func(step archive.Step) { s.tell("step %s\n", step) }
	}
	return c
}

func (s *session) archiveDays(a archiving) (work, error) {
	if (a.day == "") == (a.older == "") {
		return nil, misuse("give either --day or --older-than")
	}
	chosen, err := s.chosen(a)
	if err != nil {
		return nil, err
	}
	if a.dry {
		return func(ctx context.Context) error {
			days, err := chosen(ctx)
			if err != nil {
				return err
			}
			return s.wouldArchive(days)
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
		days, err := chosen(ctx)
		if err != nil {
			return err
		}
		return s.archiveChosen(ctx, a, days, by)
	}, nil
}

func (s *session) archiveChosen(ctx context.Context, a archiving, days []archive.Held, by string) error {
	shelf, let, err := s.shelf(a.where)
	if err != nil {
		return err
	}
	defer let()
	if len(days) == 0 {
		s.tell("nothing is that old\n")
		if s.asJSON {
			s.print(listOf([]jsonArchived{}, "", func(t jsonArchived) jsonArchived { return t }))
		}
		return nil
	}
	if !a.yes && !a.keep && s.asks() {
		ok, err := s.yes(ctx, fmt.Sprintf("Archive %s to %s and drop what is proved?", counted(int64(len(days)), "day"), plain(shelf.String())), false)
		if err != nil || !ok {
			return err
		}
	}
	c := s.carrier(shelf, a, by)
	failed := 0
	var told []jsonArchived
	for _, held := range days {
		if held.Place == archive.Shared && a.day == "" {
			s.tell("%s and before: left, in a partition of several days\n", held.Day)
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
			return err
		case err != nil:
			failed++
			s.failed(fmt.Errorf("%s: %w", held.Day, err))
		}
	}
	if s.asJSON {
		s.print(listOf(told, "", func(t jsonArchived) jsonArchived { return t }))
	}
	if failed > 0 {
		return endError(1)
	}
	return nil
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

// chosen finds the days that the flags mean.
func (s *session) chosen(a archiving) (func(context.Context) ([]archive.Held, error), error) {
	if a.day != "" {
		day, err := oneDay(a.day)
		return func(context.Context) ([]archive.Held, error) { return []archive.Held{{Day: day, Rows: -1}}, nil }, err
	}
	cut, err := s.cut(a.older)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]archive.Held, error) { return s.olderThan(ctx, cut) }, nil
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
		return fmt.Sprintf("%s: there is nothing of that day, in the table or on the shelf", d.Day)
	case d.Dropped && d.Late:
		text += " and dropped; rows came while it was written, so it was written again"
	case d.Dropped && d.Reused:
		text += " again and dropped; it was there already"
	case d.Dropped:
		text += " and dropped"
	case keep:
		text += "; kept in the table"
	default:
		text = fmt.Sprintf("%s: not in the table; archived before: %s", d.Day, counted(d.Rows, "row"))
	}
	if len(d.LeftOut) > 0 {
		var names []string
		for _, c := range d.LeftOut {
			names = append(names, plain(c.Name))
		}
		text += "; computed columns were left out: " + strings.Join(names, ", ")
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
		s.say("%s: %s stored, %s there already, verified\n", day, counted(done.Stored, "row"), grouped(done.Equal))
		if done.Again > 0 {
			s.say("%s there with an equal payload, delivered again since; the table's were kept\n", grouped(done.Again))
		}
	}
	if done.Differs > 0 {
		s.tell("%s of an identity that the table has with another payload: the table's were kept, the archive has the others: %s\n",
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
