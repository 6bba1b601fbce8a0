package letters

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/pick"
	"docket/internal/programs/cli/term"
)

// groups is docket dlq groups.
type groups struct {
	frame.Call
	choose pick.Flags
	awake
}

// Groups makes the command that groups dead letters by cause.
func Groups(call frame.Call) *cobra.Command {
	gs := &groups{Call: call}
	c := &cobra.Command{
		Use: "groups [flags]", Short: "Group dead letters by cause, largest group first", DisableFlagsInUseLine: true,
		Long: "Group dead letters by cause.\n\n" +
			"A group has one fingerprint: the same kind, code, constraint, column, and message without its numbers\n" +
			"and quoted names. One cause usually has one fingerprint.\n\n" + ledgerText,
		Example: "  docket dlq groups\n  docket dlq groups --state PENDING --state FAILED --since 1d",
		Args:    frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	gs.choose.Declare(call, c)
	gs.awake.declare(c)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_KAFKA_BROKERS"}, "listed, also if none matches", "")
	c.RunE = gs.Run(func([]string) (frame.Work, error) {
		filter, err := gs.choose.Filter(gs.Now())
		return func(ctx context.Context) error { return gs.grouped(ctx, filter) }, err
	})
	return c
}

func (gs *groups) grouped(ctx context.Context, filter ledger.Filter) error {
	beside := beside(ctx, gs.Call)
	groups, err := gs.Sys.Book.Groups(ctx, filter)
	if err != nil {
		beside(false)
		return err // it names the act
	}
	groups = gs.awake.of(groups)
	if !gs.AsJSON {
		gs.groupTable(groups)
	}
	l := beside(len(groups) == 0)
	if gs.AsJSON {
		gs.Print(struct {
			frame.List[jsonGroup]
			Ledger jsonLedger `json:"ledger"`
		}{frame.ListOf(groups, "", groupOf), l})
	}
	noteLedger(gs.Call, l)
	return gs.awake.told(ctx, gs.Call, gs.choose.Given())
}

func (gs *groups) groupTable(groups []ledger.Group) {
	if len(groups) == 0 {
		gs.Tell("no dead letters match\n")
		return
	}
	columns := []term.Column{
		{Title: "fingerprint"},
		{Title: "open", Right: true},
		{Title: "resolved", Right: true, Rank: 6},
		{Title: "kind", Rank: 2},
		{Title: "code"},
		{Title: "constraint", Rank: 5, Least: 24},
		{Title: "paths", Rank: 1, Least: 16},
		{Title: "oldest open", Rank: 4},
		{Title: "newest", Rank: 7},
		{Title: "message", Rank: 3, Least: 16},
	}
	now := gs.Now()
	var open int64
	var rows [][]term.Cell
	for _, g := range groups {
		open += g.Open()
		paths := term.Brief(strings.Join(g.Paths, " "))
		rows = append(rows, []term.Cell{
			{Full: term.Brief(g.Fingerprint), Brief: term.Cut(term.Brief(g.Fingerprint), 8)}, {Full: term.Grouped(g.Open())}, {Full: term.Grouped(g.Counts[ledger.Resolved])}, {Full: string(g.Kind)}, {Full: term.Brief(g.Code)},
			{Full: term.Brief(pick.Object(g))}, {Full: paths}, {Full: term.Moment(g.Oldest, now), Brief: term.Ago(g.Oldest, now)},
			{Full: term.Moment(g.Newest, now), Brief: term.Ago(g.Newest, now)}, {Full: term.Brief(g.Message)},
		})
	}
	gs.Table(columns, rows, "")
	gs.Tell("%s, %s open; list one: docket dlq list --fingerprint %s\n", term.Counted(int64(len(groups)), "group"), term.Grouped(open), term.Brief(groups[0].Fingerprint))
}
