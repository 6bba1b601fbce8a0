package edits

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/programs/cli/frame"
)

// reject is docket dlq reject.
type reject struct {
	view
	frame.Signature
}

// Reject makes the command that rejects a proposal.
func Reject(call frame.Call) *cobra.Command {
	v := &reject{view: view{call}}
	c := &cobra.Command{
		Use: "reject NUMBER [flags]", Short: "Reject an edit that was proposed, or withdraw your own", DisableFlagsInUseLine: true,
		Long:    "Reject an edit that was proposed, or withdraw your own. The dead letter is not changed.",
		Example: "  docket dlq reject 7 --operator oleg --reason 'the user is right as it is'",
		Args:    oneProposal, ValidArgsFunction: completeProposals(call),
	}
	v.Signature.Declare(c.Flags(), frame.ReasonText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "rejected", "it was approved or rejected before, or the command failed")
	c.RunE = v.Run(func(args []string) (frame.Work, error) {
		id, by, err := v.decides(args, v.Signature)
		return func(ctx context.Context) error {
			p, err := v.Sys.Book.Reject(ctx, id, by)
			if err != nil {
				return fmt.Errorf("proposal %d: %w", id, err)
			}
			v.told(p)
			return nil
		}, err
	})
	return c
}
