package letters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/pick"
	"docket/internal/programs/cli/term"
)

// retry is docket dlq retry.
type retry struct {
	mover
	dryRun bool
}

// Retry makes the command that retries dead letters.
func Retry(call frame.Call) *cobra.Command {
	t := &retry{mover: mover{Call: call}}
	c := &cobra.Command{
		Use: "retry {ID... | FILTER FLAGS} [flags]", Short: "Retry dead letters: publish them to their original topic again; --dry-run only tests", DisableFlagsInUseLine: true,
		Long: "Retry dead letters: publish them to their original topic again, where the consumer reads them.\n\n" +
			"Fix the cause first. Only PENDING and FAILED ones are retried. This command writes to the ledger; a\n" +
			"running desk publishes. With ids, they are sent at once and the results are shown. With filter flags, a\n" +
			"job sends one first, then more and more, and stops if the first ones fail in the same way. Ctrl-C does\n" +
			"not stop a job: `docket jobs stop` does.\n\n" +
			"--dry-run inserts each of them into the table, and rolls back.",
		Example: "  docket dlq retry 3f9a0c1e77b2 --operator mara\n" +
			"  docket dlq retry --code 23514 --path authz/allow --dry-run\n" +
			"  docket dlq retry --code 23514 --path authz/allow --rate 50 --operator mara --reason 'fixed'",
		ValidArgsFunction: CompleteIDs(call),
	}
	c.Flags().BoolVar(&t.dryRun, "dry-run", false, "test which would be stored now; change nothing; needs no operator and no reason")
	c.Flags().Float64Var(&t.rate, "rate", 0, "with filter flags: at most `N` per second (default: no limit)")
	c.Flags().StringVar(&t.Reason, "reason", "", "why you do this: `TEXT` for the audit log (required with filter flags; with ids, default \"retried by hand\")")
	t.mover.declare(c)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"},
		"all are stored; or none matches; with --detach, or while no desk runs: all will be sent; with --dry-run: all would be stored",
		"at least one was not stored, was refused, or would fail again; the job stopped; you answered no; or the command failed")
	c.RunE = t.Run(t.check)
	return c
}

// check looks at flags and arguments.
func (t *retry) check(args []string) (frame.Work, error) {
	bulk, err := t.bulk(args)
	switch {
	case err != nil:
		return nil, err
	case t.dryRun:
		return t.trial(args)
	case bulk:
		return t.job(ledger.Retried)
	}
	by, err := t.Actor(t.Signature, "retried by hand")
	return func(ctx context.Context) error { return t.decide(ctx, args, by, true) }, err
}

// trial tests what would be retried.
func (t *retry) trial(args []string) (frame.Work, error) {
	filter, err := t.choose.Filter(t.Now())
	if err == nil {
		filter, err = movable(filter)
	}
	return func(ctx context.Context) error { return t.try(ctx, args, filter) }, err
}

func (t *retry) try(ctx context.Context, args []string, filter ledger.Filter) error {
	if t.Sys.Trial == nil {
		return frame.Misuse("this build cannot do dry runs")
	}
	p := t.Progress("testing")
	told := func(done, total int64) { p.At(done, total, "") }
	var result worker.TrialResult
	var err error
	if len(args) > 0 {
		var ids []string
		for _, arg := range args {
			id, e := t.Whole(ctx, arg)
			if e != nil {
				return e
			}
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		result, err = t.Sys.Trial.RunIDs(ctx, ids, told)
	} else {
		result, err = t.Sys.Trial.Run(ctx, filter, t.limit, told)
	}
	p.End()
	if err != nil {
		return fmt.Errorf("dry run: %w", err)
	}
	err = Results{Call: t.Call}.Tried(result)
	if !t.AsJSON && result.Unwell == nil && result.Would+result.There > 0 {
		t.Tell("to retry them:\n  %s\n", term.Join("docket dlq retry", t.again(args, filter), t.OperatorFlag()))
	}
	return err
}

// again is the choice of a dry run, as words of a command.
func (t *retry) again(args []string, filter ledger.Filter) string {
	if len(args) > 0 {
		words := make([]string, len(args))
		for i, arg := range args {
			words[i] = term.ShellWord(term.Line(arg))
		}
		return strings.Join(words, " ")
	}
	text := pick.Chosen(filter)
	if t.limit > 0 {
		text += fmt.Sprintf(" --limit %d", t.limit)
	}
	return text + " --reason '...'"
}
