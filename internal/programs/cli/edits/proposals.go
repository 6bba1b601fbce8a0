package edits

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// mostProposals is how many proposals are listed at most.
const mostProposals = 1000

// proposals is docket dlq proposals.
type proposals struct {
	view
	all   bool
	limit int
	after string
}

// Proposals makes the command that lists proposals, or shows one.
func Proposals(call frame.Call) *cobra.Command {
	v := &proposals{view: view{call}}
	c := &cobra.Command{
		Use: "proposals [NUMBER] [flags]", Short: "List edits that wait for a second person, or show one with its diff", DisableFlagsInUseLine: true,
		Long: "List edits that wait for a second person, or show one with its diff.\n\n" +
			"An edit that changes decision_id, timestamp, path, result or input is a proposal. A second person approves\n" +
			"it within 7 days. The diff can hold personal data, so only one proposal shows it.",
		Example: "  docket dlq proposals\n  docket dlq proposals 7\n  docket dlq proposals --all --json",
		Args:    atMostOneProposal, ValidArgsFunction: completeProposals(call),
	}
	c.Flags().BoolVar(&v.all, "all", false, "also list those that were approved or rejected, have expired or are void")
	c.Flags().IntVar(&v.limit, "limit", mostProposals, fmt.Sprintf("list at most `N` proposals, 1 to %d", mostProposals))
	c.Flags().StringVar(&v.after, "after", "", "continue after `CURSOR`, printed as next by the page before")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "listed or shown, also if there are none", "no such proposal, or the command failed")
	c.RunE = v.Run(v.check)
	return c
}

// check looks at flags and arguments.
func (v *proposals) check(args []string) (frame.Work, error) {
	if v.limit < 1 || v.limit > mostProposals {
		return nil, frame.Misuse("--limit must be 1 to %d", mostProposals)
	}
	if len(args) == 0 {
		before, err := frame.NumberAfter(v.after)
		return func(ctx context.Context) error { return v.listed(ctx, before) }, err
	}
	id, err := proposalID(args)
	if err == nil && v.all {
		err = frame.Misuse("--all lists; it needs no number")
	}
	if err == nil && v.after != "" {
		err = frame.Misuse("--after lists; it needs no number")
	}
	return func(ctx context.Context) error {
		p, diff, err := v.find(ctx, id)
		if err != nil {
			return err
		}
		v.show(p, diff)
		return nil
	}, err
}

func oneProposal(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return frame.Misuse("give one number, as `docket dlq proposals` prints it")
	}
	return nil
}

func atMostOneProposal(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return oneProposal(c, args)
}

func proposalID(args []string) (int64, error) {
	id, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || id < 1 {
		return 0, frame.Misuse("%s is not the number of a proposal", term.Quoted(args[0]))
	}
	return id, nil
}

func (v *proposals) listed(ctx context.Context, before int64) error {
	list, next, err := frame.Numbered(func(before int64, n int) ([]ledger.Proposal, error) {
		return v.Sys.Book.ListProposals(ctx, ledger.ProposalQuery{All: v.all, Before: before}, n)
	}, before, v.limit, func(p ledger.Proposal) int64 { return p.ID })
	if err != nil {
		return err // it names the act
	}
	switch {
	case v.AsJSON:
		v.Print(frame.ListOf(list, next, proposalOf))
		return nil
	case len(list) == 0 && before > 0:
		v.Tell("no older proposals\n")
		return nil
	case len(list) == 0:
		v.Tell("no edit waits for a second person\n")
		return nil
	}
	now := v.Now()
	var rows [][]term.Cell
	for _, p := range list {
		rows = append(rows, []term.Cell{
			{Full: fmt.Sprint(p.ID)}, {Full: string(p.State)}, {Full: v.ID(p.LetterID)}, {Full: strings.Join(p.Members, ", ")}, {Full: term.Brief(p.By)}, {Full: term.Brief(p.Login)},
			{Full: term.Moment(p.CreatedAt, now), Brief: term.Ago(p.CreatedAt, now)}, {Full: term.Moment(p.ExpiresAt, now), Brief: term.Ago(p.ExpiresAt, now)}, {Full: term.Brief(p.Why)}, {Full: term.Brief(p.Decided.By)},
		})
	}
	columns := []term.Column{
		{Title: "proposal", Right: true}, {Title: "state", Paint: v.PaintState}, {Title: "dead letter"}, {Title: "changes", Rank: 3, Least: 10}, {Title: "by", Rank: 1, Least: 8}, {Title: "login", Rank: 6, Least: 8},
		{Title: "proposed", Rank: 4}, {Title: "expires", Rank: 2}, {Title: "reason", Rank: 5, Least: 12}, {Title: "decided by", Rank: 7, Least: 8},
	}
	v.Table(columns, rows, "")
	v.NextPage(len(list), next)
	return nil
}

// completeProposals suggests the numbers of open proposals.
func completeProposals(call frame.Call) frame.Completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		return call.Suggest(func(ctx context.Context, _ string) ([]string, error) {
			if len(args) > 0 {
				return nil, nil
			}
			list, err := call.Sys.Book.ListProposals(ctx, ledger.ProposalQuery{}, frame.Suggested)
			var out []string
			for _, p := range list {
				out = append(out, fmt.Sprintf("%d\t%s", p.ID, term.Brief(term.Cut(p.LetterID, frame.ShortID)+" "+strings.Join(p.Members, ", ")+" by "+p.By)))
			}
			return out, err
		})(c, args, begun)
	}
}
