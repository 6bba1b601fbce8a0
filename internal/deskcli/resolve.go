package deskcli

import (
	"context"

	"github.com/spf13/cobra"

	"docket/internal/ledger"
)

func (s *session) resolve() *cobra.Command {
	var d deciding
	c := &cobra.Command{
		Use: "resolve ID... | [filter flags]", Short: "Close dead letters for good, with a note", DisableFlagsInUseLine: true,
		Long: "Close dead letters that will never be stored. Who did it and the note stay in the audit for ever, and there is no\n" +
			"way back. The record itself is untouched. By filter flags a job does it.",
		Example: "  docket dlq resolve 3f9a0c1e77b2 --operator mara --note 'a test of the staging producer'\n" +
			"  docket dlq resolve --fingerprint 8d0e3f21 --until 2026-11-20T00:00:00Z --operator mara --note 'see ticket 812'",
		ValidArgsFunction: s.completeIDs,
	}
	d.declare(s, c)
	c.Flags().StringVar(&d.reason, "note", "", "`why`, for ever in the audit; required")
	c.RunE = s.run(func(args []string) (work, error) {
		bulk, err := d.bulk(args)
		if err != nil {
			return nil, err
		}
		if d.reason == "" {
			return nil, misuse("why is nothing left to do about it? Give --note 'TEXT'; it stays in the audit for ever")
		}
		if bulk {
			return s.bulk(ledger.Closed, &d)
		}
		by, err := s.actor(&d, "")
		return func(ctx context.Context) error { return s.decide(ctx, args, order{by: by}) }, err
	})
	return c
}
