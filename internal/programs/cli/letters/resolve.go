package letters

import (
	"context"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
)

// resolve is docket dlq resolve.
type resolve struct{ mover }

// Resolve makes the command that closes dead letters.
func Resolve(call frame.Call) *cobra.Command {
	m := &resolve{mover{Call: call}}
	c := &cobra.Command{
		Use: "resolve {ID... | FILTER FLAGS} [flags]", Short: "Close dead letters for good, with a note", DisableFlagsInUseLine: true,
		Long: "Close dead letters for good, with a note.\n\n" +
			"Use it for records that will never be stored. Only PENDING and FAILED ones are closed. This cannot be\n" +
			"undone. Your name and note stay in the audit log forever. The record in Kafka is not changed; the ledger\n" +
			"keeps its copy for DOCKET_DESK_KEEP_RESOLVED (default 168h). With ids, they are closed at once, without a\n" +
			"question. With filter flags, a job of a running desk closes them.",
		Example: "  docket dlq resolve 3f9a0c1e77b2 --operator mara --note 'a test of the staging producer'\n" +
			"  docket dlq resolve --fingerprint 8d0e3f21 --until yesterday --operator mara --note 'ticket 812'",
		ValidArgsFunction: CompleteIDs(call),
	}
	c.Flags().StringVar(&m.Reason, "note", "", "why nothing is left to do: `TEXT` for the audit log (required)")
	m.declare(c)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "all are RESOLVED; or none matches; with --detach, or while no desk runs: the job is created",
		"at least one was not closed; the job stopped; you answered no; or the command failed")
	c.RunE = m.Run(m.check)
	return c
}

// check looks at flags and arguments.
func (m *resolve) check(args []string) (frame.Work, error) {
	bulk, err := m.bulk(args)
	if err != nil {
		return nil, err
	}
	if m.Reason == "" {
		return nil, frame.Misuse("no note: give --note 'TEXT'; it stays in the audit log")
	}
	if bulk {
		return m.job(ledger.Closed)
	}
	by, err := m.Actor(m.Signature, "")
	return func(ctx context.Context) error { return m.decide(ctx, args, by, false) }, err
}
