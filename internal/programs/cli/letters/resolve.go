package letters

import (
	"context"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
)

// resolve is docket dlq resolve.
type resolve struct {
	mover
	group string
}

// Resolve makes the command that closes dead letters.
func Resolve(call frame.Call) *cobra.Command {
	m := &resolve{mover: mover{Call: call}}
	c := &cobra.Command{
		Use: "resolve {ID... | --group FINGERPRINT | FILTER FLAGS} [flags]", Short: "Close dead letters for good, with a note", DisableFlagsInUseLine: true,
		Long: "Close dead letters for good, with a note.\n\n" +
			"Use it for records that will never be stored. Only PENDING and FAILED ones are closed. This cannot be\n" +
			"undone. Your name and note stay in the audit log forever. The record in Kafka is not changed; the ledger\n" +
			"keeps its copy for DOCKET_DESK_KEEP_RESOLVED (default 168h). With ids, they are closed at once, without a\n" +
			"question. With --group or filter flags, a job of a running desk closes them. --group takes what failed before\n" +
			"now, and no more than it counted. With DOCKET_DESK_FOUR_EYES a job waits for a second person:\n" +
			"`docket jobs approve`.",
		Example: "  docket dlq resolve 3f9a0c1e77b2 --operator mara --note 'a test of the staging producer'\n" +
			"  docket dlq resolve --group 8d0e3f21 --operator mara --note 'ticket 812'\n" +
			"  docket dlq resolve --fingerprint 8d0e3f21 --until yesterday --operator mara --note 'ticket 812'",
		ValidArgsFunction: CompleteIDs(call),
	}
	c.Flags().StringVar(&m.Reason, "note", "", "why nothing is left to do: `TEXT` for the audit log (required)")
	c.Flags().StringVar(&m.group, "group", "", "all PENDING and FAILED of one group that are there now: its `FINGERPRINT`, or the first 4 or more characters")
	m.declare(c)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "all are RESOLVED; or none matches; with --detach, or while no desk runs: the job is created. A job that waits for a second person exits with 1 without --detach",
		"at least one was not closed; the job stopped; you answered no; or the command failed")
	c.RunE = m.Run(m.check)
	return c
}

// check looks at flags and arguments.
func (m *resolve) check(args []string) (frame.Work, error) {
	if m.group != "" {
		return m.ofGroup(args)
	}
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

// ofGroup closes a group: the filter is frozen at this moment.
func (m *resolve) ofGroup(args []string) (frame.Work, error) {
	switch {
	case len(args) > 0 || m.all || m.choose.Given():
		return nil, frame.Misuse("--group contradicts ids, --all and filter flags; give one of them")
	case m.Reason == "":
		return nil, frame.Misuse("no note: give --note 'TEXT'; it stays in the audit log")
	}
	if err := m.bounded(); err != nil {
		return nil, err
	}
	by, err := m.Actor(m.Signature, "")
	now := m.Now()
	return func(ctx context.Context) error {
		fingerprint, err := WholeFingerprint(ctx, m.Call, m.group)
		if err != nil {
			return err
		}
		return m.makeJob(ctx, ledger.Closed, ledger.Filter{Fingerprint: fingerprint, States: []ledger.State{ledger.Pending, ledger.Failed}, To: now}, by)
	}, err
}
