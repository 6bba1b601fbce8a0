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
	dry, yes, letters bool
}

func forgetCommand(call frame.Call) *cobra.Command {
	g := &forget{base: base{Call: call}}
	c := &cobra.Command{
		Use: "forget DAY --reason TEXT [flags]", Short: "Note that archives which are gone are given up on purpose", DisableFlagsInUseLine: true,
		Long: "Note that a day which left the table, and which no archive has any more, is given up on purpose.\n\n" +
			"DAY is YYYY-MM-DD, in UTC. Answers that need it are PARTIAL before. Afterwards they are complete, and\n" +
			"say that the day was forgotten, by whom and why. A day in the table, or with a file in the archive, is\n" +
			"refused. So is each day if the archive cannot be asked. No decision is deleted. If an archive of the\n" +
			"day comes back, answers read it as before. The database role must own the table. With --server, the desk\n" +
			"looks into its own archive. That needs the role admin.\n\n" +
			"With --dead-letters, the archives of dead letters of the day that are missing are given up, and no decisions.\n" +
			"One that has a file is refused. Letters of theirs that are still in the ledger are archived again.",
		Example: "  docket archive forget 2026-08-01 --dry-run\n" +
			"  docket archive forget 2026-08-01 --operator mara --reason 'we keep decisions for 90 days'\n" +
			"  docket archive forget 2026-08-01 --dead-letters --operator mara --reason 'bucket deleted'",
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&g.place, "from", "", whereText)
	f.BoolVar(&g.letters, "dead-letters", false, "give up missing archives of dead letters of the day, and no decisions")
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
	// Archives are those of dead letters; empty of decisions.
	Archives []string `json:"archives,omitempty"`
}

// forgetting forgets, or says whether it would.
type forgetting func(ctx context.Context, day archive.Day, reason string, dry bool) (done archive.LettersForgotten, where string, err error)

func (g *forget) forgotten(ctx context.Context, day archive.Day, by, reason string) error {
	forget, let, err := g.act(by)
	if err != nil {
		return err
	}
	defer let()
	found, where, err := forget(ctx, day, reason, true)
	done := jsonForgotten{Day: day.String(), Result: "would be forgotten"}
	if err == nil && found.Earlier == nil && !g.dry {
		if !g.yes && g.Asks() {
			ok, err := g.Confirm(ctx, fmt.Sprintf("Forget %s, which is not in %s any more?", g.of(day, found.Archives), term.Brief(where)), false)
			if err != nil || !ok {
				return err
			}
		}
		done.Result = "forgotten"
		found, _, err = forget(ctx, day, reason, false)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", day, err)
	}
	if found.Earlier != nil {
		done.Result, done.Note = "forgotten before", found.Earlier.String()
	}
	done.Archives = found.Archives
	switch {
	case g.AsJSON:
		g.Print(done)
	case found.Earlier != nil:
		g.Say("%s: nothing was changed; it was %s\n", day, term.Brief(done.Note))
	case g.letters:
		for _, name := range found.Archives {
			g.Say("%s: %s %s\n", day, name, done.Result)
		}
	default:
		g.Say("%s: %s\n", day, done.Result)
	}
	return nil
}

// of names what is forgotten: a day, or archives of its dead letters.
func (g *forget) of(day archive.Day, archives []string) string {
	switch n := len(archives); {
	case !g.letters:
		return day.String()
	case n == 1:
		return archives[0]
	default:
		return fmt.Sprintf("%d archives of dead letters of %s", n, day)
	}
}

// act returns how a day is forgotten: by the desk, if one is chosen, or here. let closes it.
func (g *forget) act(by string) (forget forgetting, let func(), err error) {
	if g.Sys.Desk != nil {
		return func(ctx context.Context, day archive.Day, reason string, dry bool) (done archive.LettersForgotten, where string, err error) {
			actor := ledger.Actor{Name: by, Why: reason}
			if g.letters {
				return g.Sys.ForgetLetters(ctx, day, actor, dry)
			}
			done.Earlier, where, err = g.Sys.Forget(ctx, day, actor, dry)
			return done, where, err
		}, func() {}, nil
	}
	shelf, let, err := g.shelf()
	if err != nil {
		return nil, nil, err
	}
	days, letters := g.carrier(shelf, by), g.lettersCarrier(shelf, by)
	return func(ctx context.Context, day archive.Day, reason string, dry bool) (done archive.LettersForgotten, where string, err error) {
		if g.letters {
			done, err = letters.Forget(ctx, day, reason, dry)
		} else {
			done.Earlier, err = days.Forget(ctx, day, reason, dry)
		}
		return done, shelf.String(), err
	}, let, nil
}
