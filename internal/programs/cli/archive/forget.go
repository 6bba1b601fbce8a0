package archive

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// forget is docket archive forget.
type forget struct {
	base
	frame.Signature
	dry, yes bool
}

func forgetCommand(call frame.Call) *cobra.Command {
	g := &forget{base: base{Call: call}}
	c := &cobra.Command{
		Use: "forget DAY --reason TEXT [flags]", Short: "Note that a day which no archive has is given up on purpose", DisableFlagsInUseLine: true,
		Long: "Note that a day which left the table, and which no archive has any more, is given up on purpose.\n\n" +
			"DAY is YYYY-MM-DD, in UTC. Answers that need it are PARTIAL before. Afterwards they are complete, and\n" +
			"say that the day was forgotten, by whom and why. A day in the table, or with a file in the archive, is\n" +
			"refused. So is each day if the archive cannot be asked. No decision is deleted. If an archive of the\n" +
			"day comes back, answers read it as before. The database role must own the table. With --server, the desk\n" +
			"looks into its own archive. That needs the role admin.",
		Example: "  docket archive forget 2026-08-01 --dry-run\n" +
			"  docket archive forget 2026-08-01 --operator mara --reason 'we keep decisions for 90 days'",
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&g.place, "from", "", whereText)
	f.BoolVar(&g.dry, "dry-run", false, "say whether the day would be forgotten; change nothing; needs no operator and no reason")
	f.BoolVar(&g.yes, "yes", false, "do not ask for confirmation; it asks only on a terminal")
	g.Declare(f, "why the day is given up: `TEXT` that answers show (required)")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_ARCHIVE_TO"}, "the day is forgotten, or was before; or you answered no", "the day was refused, or the command failed")
	c.RunE = g.Run(g.check)
	return c
}

// check looks at the flags.
func (g *forget) check(args []string) (frame.Work, error) {
	if len(args) != 1 {
		return nil, frame.Misuse("give one day, like 2026-08-01")
	}
	day, err := archive.ParseDay(args[0])
	if err != nil {
		return nil, frame.Misuse("%s: %v", term.Quoted(args[0]), err)
	}
	by, reason := "", ""
	if !g.dry {
		actor, err := g.Actor(g.Signature, "")
		if err != nil {
			return nil, err
		}
		by, reason = actor.Name, actor.Why
	}
	return func(ctx context.Context) error { return g.forgotten(ctx, day, by, reason) }, g.locateOrDesk("--from")
}

// jsonForgotten is a day that was forgotten, or would be.
type jsonForgotten struct {
	Day    string `json:"day"`
	Result string `json:"result"` // forgotten, forgotten before, or would be forgotten
	Note   string `json:"note,omitempty"`
}

func (g *forget) forgotten(ctx context.Context, day archive.Day, by, reason string) error {
	forget, let, err := g.act(by)
	if err != nil {
		return err
	}
	defer let()
	earlier, where, err := forget(ctx, day, reason, true)
	done := jsonForgotten{Day: day.String(), Result: "would be forgotten"}
	if err == nil && earlier == nil && !g.dry {
		if !g.yes && g.Asks() {
			ok, err := g.Confirm(ctx, fmt.Sprintf("Forget %s, which is not in %s any more?", day, term.Brief(where)), false)
			if err != nil || !ok {
				return err
			}
		}
		done.Result = "forgotten"
		earlier, _, err = forget(ctx, day, reason, false)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", day, err)
	}
	if earlier != nil {
		done.Result, done.Note = "forgotten before", earlier.String()
	}
	switch {
	case g.AsJSON:
		g.Print(done)
	case earlier != nil:
		g.Say("%s: nothing was changed; it was %s\n", day, term.Brief(done.Note))
	default:
		g.Say("%s: %s\n", day, done.Result)
	}
	return nil
}

// act returns how a day is forgotten: by the desk, if one is chosen, or here. let closes it.
func (g *forget) act(by string) (forget func(ctx context.Context, day archive.Day, reason string, dry bool) (*archive.Forgotten, string, error), let func(), err error) {
	if g.Sys.Desk != nil {
		return func(ctx context.Context, day archive.Day, reason string, dry bool) (*archive.Forgotten, string, error) {
			return g.Sys.Forget(ctx, day, ledger.Actor{Name: by, Why: reason}, dry)
		}, func() {}, nil
	}
	shelf, let, err := g.shelf()
	if err != nil {
		return nil, nil, err
	}
	c := g.carrier(shelf, by)
	return func(ctx context.Context, day archive.Day, reason string, dry bool) (*archive.Forgotten, string, error) {
		earlier, err := c.Forget(ctx, day, reason, dry)
		return earlier, shelf.String(), err
	}, let, nil
}
