package edits

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/letters"
	"docket/internal/programs/cli/term"
)

// approve is docket dlq approve.
type approve struct {
	view
	frame.Signature
	letters.Waiting
	yes bool
}

// Approve makes the command that approves a proposal.
func Approve(call frame.Call) *cobra.Command {
	v := &approve{view: view{call}}
	c := &cobra.Command{
		Use: "approve NUMBER [flags]", Short: "Approve an edit that somebody else proposed, and make it", DisableFlagsInUseLine: true,
		Long: "Approve an edit that somebody else proposed, and make it.\n\n" +
			"You see the diff and are asked. The edit, your approval and the retry are one step. The database refuses\n" +
			"the name and the login that proposed it, so each person needs a login of their own. A proposal of the\n" +
			"API is approved by the API.",
		Example: "  docket dlq approve 7 --operator oleg --reason 'the path is the one of the policy'",
		Args:    oneProposal, ValidArgsFunction: completeProposals(call),
	}
	flags := c.Flags()
	v.Waiting.Declare(c)
	flags.BoolVar(&v.yes, "yes", false, "do not ask for confirmation; required without a terminal")
	c.MarkFlagsMutuallyExclusive("wait", "detach")
	v.Signature.Declare(flags, frame.ReasonText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "the payload is edited; and stored, if the proposal retries it; with --detach, or while no desk runs: it will be sent",
		"it was not approved; or the retry failed again or was refused; you answered no; or the command failed")
	c.RunE = v.Run(func(args []string) (frame.Work, error) {
		id, by, err := v.decides(args, v.Signature)
		if err == nil && !v.yes && !v.Asks() {
			err = frame.Misuse("cannot ask for confirmation without a terminal: give --yes")
		}
		return func(ctx context.Context) error { return v.approved(ctx, id, by) }, err
	})
	return c
}

// approved shows a proposal, asks, and makes the edit.
func (v *approve) approved(ctx context.Context, id int64, by ledger.Actor) error {
	p, diff, err := v.find(ctx, id)
	if err != nil {
		return err
	}
	if p.State != ledger.ProposalOpen {
		because := map[ledger.ProposalState]ledger.Because{ledger.ProposalExpired: ledger.BecauseExpired, ledger.ProposalVoid: ledger.BecauseVoid}[p.State]
		if because == "" {
			because = ledger.BecauseEnded
		}
		return &ledger.ProposalError{ID: id, Because: because}
	}
	if v.AsJSON {
		v.Tell("%s\n", term.Lines(strings.TrimSuffix(diff, "\n")))
	} else {
		v.Say("%s\n", v.Diff(diff))
	}
	if !v.yes {
		ok, err := v.Confirm(ctx, fmt.Sprintf("Approve this edit of %s by %s?", term.Cut(p.LetterID, frame.ShortID), term.Brief(p.By)), false)
		if err != nil || !ok {
			v.Tell("nothing was changed\n")
			return errors.Join(err, frame.Exit(cli.Failed))
		}
	}
	p, err = v.Sys.Book.Approve(ctx, id, diff, v.Settings.DeskLease, by)
	if err != nil {
		return frame.Unchanged(err)
	}
	if !v.AsJSON {
		v.told(p)
	}
	if !p.Retry {
		e, err := v.Entry(ctx, p.LetterID)
		if err != nil {
			return err
		}
		return letters.Results{Call: v.Call}.Show([]letters.Fate{{ID: p.LetterID, Result: "edited", State: string(e.State), Ended: true}})
	}
	return letters.Results{Call: v.Call}.Follow(ctx, []letters.Fate{{ID: p.LetterID, Result: "retried", State: string(ledger.Processing)}}, v.Waiting)
}
