package deskcli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
)

func (s *session) groups() *cobra.Command {
	var f filterFlags
	c := &cobra.Command{
		Use: "groups [flags]", Short: "Group dead letters by cause, largest group first", DisableFlagsInUseLine: true,
		Long: "Group dead letters by cause.\n\n" +
			"A group has one fingerprint: the same kind, code, constraint, column, and message without its numbers\n" +
			"and quoted names. One cause usually has one fingerprint.\n\n" + ledgerText,
		Example: "  docket dlq groups\n  docket dlq groups --state PENDING --state FAILED --since 1d",
		Args:    noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.declare(s, c)
	usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_KAFKA_BROKERS"}, "listed, also if none matches", "")
	c.RunE = s.run(func([]string) (work, error) {
		filter, err := f.filter(s.now())
		return func(ctx context.Context) error { return s.grouped(ctx, filter) }, err
	})
	return c
}

func (s *session) grouped(ctx context.Context, filter ledger.Filter) error {
	beside := s.beside(ctx)
	groups, err := s.sys.Book.Groups(ctx, filter)
	if err != nil {
		beside(false)
		return err // it names the act
	}
	if !s.asJSON {
		s.groupTable(groups)
	}
	l := beside(len(groups) == 0)
	if s.asJSON {
		s.print(struct {
			jsonList[jsonGroup]
			Ledger jsonLedger `json:"ledger"`
		}{listOf(groups, "", groupOf), l})
	}
	s.noteLedger(l)
	return nil
}

func (s *session) groupTable(groups []ledger.Group) {
	if len(groups) == 0 {
		s.tell("no dead letters match\n")
		return
	}
	columns := []column{
		{title: "fingerprint"},
		{title: "open", right: true},
		{title: "resolved", right: true, rank: 6},
		{title: "kind", rank: 2},
		{title: "code"},
		{title: "constraint", rank: 5, least: 24},
		{title: "paths", rank: 1, least: 16},
		{title: "oldest open", rank: 4},
		{title: "newest", rank: 7},
		{title: "message", rank: 3, least: 16},
	}
	now := s.now()
	var open int64
	var rows [][]cell
	for _, g := range groups {
		open += g.Open()
		paths := plain(strings.Join(g.Paths, " "))
		rows = append(rows, []cell{
			{full: plain(g.Fingerprint), brief: short(plain(g.Fingerprint), 8)}, {full: cli.Grouped(g.Open())}, {full: cli.Grouped(g.Counts[ledger.Resolved])}, {full: string(g.Kind)}, {full: plain(g.Code)},
			{full: plain(where(g))}, {full: paths}, {full: moment(g.Oldest, now), brief: ago(g.Oldest, now)},
			{full: moment(g.Newest, now), brief: ago(g.Newest, now)}, {full: plain(g.Message)},
		})
	}
	s.table(columns, rows, "")
	s.tell("%s, %s open; list one: docket dlq list --fingerprint %s\n", counted(int64(len(groups)), "group"), cli.Grouped(open), plain(groups[0].Fingerprint))
}

// where is what the database named, the most telling of it.
func where(g ledger.Group) string {
	switch {
	case g.Constraint != "":
		return g.Constraint
	case g.Column != "":
		return "column " + g.Column
	}
	return g.Table
}
