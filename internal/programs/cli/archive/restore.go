package archive

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/history/archive"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// restore is docket restore.
type restore struct {
	base
	day, operator string
	letters       bool
	incomplete    bool
}

// Restore makes the command that loads an archived day.
func Restore(call frame.Call) *cobra.Command {
	r := &restore{base: base{Call: call}}
	c := &cobra.Command{
		Use: "restore --day DAY [--dead-letters] [flags]", Short: "Load an archived day back into the table", DisableFlagsInUseLine: true,
		Long: "Load an archived day back into the table.\n\n" +
			"Each archive of the day is verified before its first row is stored, and counted and hashed by Postgres\n" +
			"afterwards. Rows in the table are never changed: a row with another payload is reported. If the\n" +
			"command is killed, run it again. A day of which an archive is missing is refused, unless you give\n" +
			"--incomplete. The database role must own the table.\n\n" +
			"With --dead-letters, the dead letters that were closed on that day are entered into the ledger again:\n" +
			"RESOLVED, and removed after DOCKET_DESK_KEEP_RESOLVED (default 168h) as before.",
		Example: "  docket restore --day 2026-08-01 --from s3://archive/docket --operator mara\n" +
			"  docket restore --day 2026-08-01 --dead-letters --operator mara",
		Args: frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&r.day, "day", "", "the `DAY` to load: YYYY-MM-DD, in UTC")
	f.BoolVar(&r.letters, "dead-letters", false, "dead letters that were closed on that day, not decisions")
	f.StringVar(&r.place, "from", "", whereText)
	f.BoolVar(&r.incomplete, "incomplete", false, "load what there is, although an archive of the day is missing")
	f.BoolVar(&r.verbose, "verbose", false, "print each step to standard error")
	f.StringVar(&r.operator, "operator", "", frame.OperatorText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_ARCHIVE_TO"}, "each row of the day is in the table", "a row in the table has another payload, or the command failed")
	c.RunE = r.Run(r.check)
	return c
}

// check looks at the flags.
func (r *restore) check([]string) (frame.Work, error) {
	if r.day == "" {
		return nil, frame.Misuse("give --day")
	}
	day, err := oneDay(r.day)
	if err != nil {
		return nil, err
	}
	if r.letters && r.incomplete {
		return nil, frame.Misuse("--incomplete is for decisions, not for --dead-letters")
	}
	by, err := r.OperatorName(r.operator)
	if err != nil {
		return nil, err
	}
	if err = r.locate("--from"); err != nil {
		return nil, err
	}
	if r.letters {
		return func(ctx context.Context) error { return r.restoredLetters(ctx, day, by) }, nil
	}
	return func(ctx context.Context) error { return r.restored(ctx, day, by) }, nil
}

func (r *restore) restored(ctx context.Context, day archive.Day, by string) error {
	shelf, let, err := r.shelf()
	if err != nil {
		return err
	}
	defer let()
	carrier := r.carrier(shelf, by)
	carrier.Incomplete = r.incomplete
	p := r.pulse(day.String(), "waiting for the day; another docket process may work on it")
	if r.Sys.RestoreLimit != nil {
		limit, err := r.Sys.RestoreLimit()
		if err != nil {
			return err
		}
		if limit != nil {
			defer limit.Close()
			carrier.Take, p.waiting = limit.Take, limit.Waiting
		}
	}
	p.beat()
	told := carrier.Told
	carrier.Told = func(step archive.Step) { p.reach(step, told) }
	done, err := carrier.Restore(ctx, day)
	p.end()
	if err != nil {
		return fmt.Errorf("%s: %w", day, err)
	}
	if len(done.Missing) > 0 {
		r.Tell("incomplete: %s\n", &archive.AbsentError{Day: done.Day, Archives: done.Missing})
	}
	if r.AsJSON {
		r.Print(restoredOf(done))
	} else {
		r.Say("%s: %s stored, %s already there, verified\n", day, term.Counted(done.Stored, "row"), term.Grouped(done.Equal))
		if done.Again > 0 {
			r.Say("%s already there with the same payload, delivered again since; the table's rows were kept\n", term.Grouped(done.Again))
		}
	}
	if done.Differs > 0 {
		r.Tell("%s differ from the row in the table with the same decision_id and ts. The table's rows were kept: %s\n",
			term.Counted(done.Differs, "row"), strings.Join(done.Conflicts, ", "))
		return frame.Exit(1)
	}
	return nil
}

func (r *restore) restoredLetters(ctx context.Context, day archive.Day, by string) error {
	shelf, let, err := r.shelf()
	if err != nil {
		return err
	}
	defer let()
	done, err := r.lettersCarrier(shelf, by).Restore(ctx, day)
	if err != nil {
		return fmt.Errorf("dead letters of %s: %w", day, err)
	}
	if r.AsJSON {
		r.Print(jsonRestored{
			Table: archive.LettersName, Day: done.Day.String(), Archives: done.Archives, Lines: done.Lines, Stored: done.Stored, Equal: done.Equal, Differs: done.Differs,
			Conflicts: append([]string{}, done.Conflicts...), Seconds: done.Duration.Seconds(),
		})
	} else {
		r.Say("%s: %s stored, %s already there, verified\n", day, term.Counted(done.Stored, "dead letter"), term.Grouped(done.Equal))
	}
	if done.Differs > 0 {
		r.Tell("%s differ from those in the ledger with the same id. The ledger's were kept: %s\n", term.Counted(done.Differs, "dead letter"), strings.Join(done.Conflicts, ", "))
		return frame.Exit(1)
	}
	return nil
}
