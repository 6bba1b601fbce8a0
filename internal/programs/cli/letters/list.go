package letters

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/pick"
	"docket/internal/programs/cli/term"
	"docket/internal/record/envelope"
	"docket/internal/record/escape"
)

// ledgerText is the help of each list of dead letters.
const ledgerText = "It shows what a desk has entered into the ledger. It asks Kafka for 3 s at most how many dead letters are missing\n" +
	"there, and says so on standard error; with --json, in ledger."

const (
	defaultList = 50
	mostList    = 1000
)

// list is docket dlq list.
type list struct {
	frame.Call
	choose pick.Flags
	limit  int
	after  string
	all    bool
	awake
}

// List makes the command that lists dead letters.
func List(call frame.Call) *cobra.Command {
	l := &list{Call: call}
	c := &cobra.Command{
		Use: "list [flags]", Short: "List dead letters, the newest failure first", DisableFlagsInUseLine: true,
		Long: "List dead letters, the newest failure first.\n\n" + ledgerText,
		Example: "  docket dlq list --state FAILED --since 2h\n" +
			"  docket dlq list --code 23514 --path authz/allow --limit 200\n" +
			"  docket dlq list --all --json | jq -r '.entries[].id'",
		Args: frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	l.choose.Declare(call, c)
	c.Flags().IntVar(&l.limit, "limit", defaultList, "list at most `N` dead letters")
	c.Flags().StringVar(&l.after, "after", "", "continue after `CURSOR`, printed as next by the page before")
	c.Flags().BoolVar(&l.all, "all", false, "list all; not with --limit")
	l.awake.declare(c)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_KAFKA_BROKERS"}, "listed, also if none matches", "")
	c.RunE = l.Run(l.check)
	return c
}

// check looks at the flags.
func (l *list) check([]string) (frame.Work, error) {
	filter, err := l.choose.Filter(l.Now())
	switch {
	case err != nil:
		return nil, err
	case l.limit < 1:
		return nil, frame.Misuse("--limit must be 1 or more")
	case l.all && l.choose.Flags.Changed("limit"):
		return nil, frame.Misuse("--all and --limit contradict each other; give one")
	case l.all:
		l.limit = -1
	}
	filter = l.awake.on(filter)
	return func(ctx context.Context) error { return l.listed(ctx, filter) }, nil
}

// listed lists at most limit dead letters, all where that is below 0. It prints page by page, so that a list of any length takes the
// memory of one page.
func (l *list) listed(ctx context.Context, filter ledger.Filter) error {
	beside := beside(ctx, l.Call)
	after, limit := l.after, l.limit
	n := 0
	var broken error // after the first page
	for {
		page := mostList
		if limit >= 0 {
			page = min(limit-n, mostList)
		}
		list, err := l.Sys.Book.List(ctx, filter, ledger.Page{After: after, Limit: page})
		if err != nil && n == 0 {
			beside(false)
			return err // it names the act
		}
		if err != nil {
			broken = err
			break
		}
		after = list.Next
		last := after == "" || limit >= 0 && n+len(list.Entries) >= limit
		if l.AsJSON {
			l.printPart(list.Entries, n == 0)
		} else if len(list.Entries) > 0 {
			l.listTable(list.Entries, n == 0)
		}
		n += len(list.Entries)
		if last {
			break
		}
	}
	missing := beside(n == 0)
	switch {
	case l.AsJSON:
		l.printEnd(after, missing)
	case n == 0:
		l.Tell("no dead letters match; `docket dlq groups` shows what is in the ledger\n")
	case after != "":
		l.Tell("%s shown; next page: --after %s\n", term.Grouped(int64(n)), after)
	}
	noteLedger(l.Call, missing)
	if broken != nil {
		return broken
	}
	return l.awake.told(ctx, l.Call, l.choose.Given())
}

// printPart prints a part of a list as JSON. The parts and the end together are one [frame.List], with a ledger.
func (l *list) printPart(entries []ledger.Entry, first bool) {
	if first {
		l.Say("{\n  \"entries\": [")
	}
	for i, e := range entries {
		text, err := json.MarshalIndent(entryOf(e), "    ", "  ")
		if err != nil {
			continue // strings, numbers and times always can be written
		}
		comma := ","
		if first && i == 0 {
			comma = ""
		}
		l.Say("%s\n    %s", comma, term.Safe(escape.JSON(text)))
	}
}

func (l *list) printEnd(next string, about jsonLedger) {
	text, err := json.Marshal(next)
	if err == nil {
		var of []byte
		of, err = json.MarshalIndent(about, "  ", "  ")
		l.Say("\n  ],\n  \"next\": %s,\n  \"ledger\": %s\n}\n", term.Safe(escape.JSON(text)), term.Safe(escape.JSON(of)))
	}
	if err != nil {
		l.Unwritten(err)
	}
}

func (l *list) listTable(entries []ledger.Entry, titles bool) {
	columns := []term.Column{
		{Title: "id"},
		{Title: "state", Paint: l.PaintState},
		{Title: "kind", Rank: 6},
		{Title: "code", Rank: 1, Least: 8},
		{Title: "path", Rank: 2, Least: 16},
		{Title: "last failure", Rank: 3},
		{Title: "retries", Rank: 7, Right: true},
		{Title: "record", Rank: 5},
		{Title: "fingerprint", Rank: 4},
		{Title: "message", Rank: 8, Least: 24},
	}
	now := l.Now()
	var rows [][]term.Cell
	for _, e := range entries {
		rows = append(rows, []term.Cell{
			{Full: l.ID(e.ID)}, {Full: string(e.State)}, {Full: term.Brief(string(e.Cause.Kind))}, {Full: term.Brief(e.Cause.Code)}, {Full: term.Brief(e.Path)},
			{Full: term.Moment(e.FailedAt, now), Brief: term.Ago(e.FailedAt, now)}, {Full: fmt.Sprint(e.Attempts)},
			positionCell(e.Origin),
			{Full: term.Brief(e.Fingerprint), Brief: term.Cut(e.Fingerprint, 8)}, {Full: term.Brief(e.Cause.Message)},
		})
	}
	l.TableWith(columns, rows, "", titles)
}

// positionCell is where a record was first read.
func positionCell(o envelope.Origin) term.Cell {
	if o.Partition == envelope.NoPlace {
		return term.Cell{Full: "a collector", Brief: "collector"}
	}
	return term.Cell{Full: term.Brief(fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Offset)), Brief: fmt.Sprintf("%d/%d", o.Partition, o.Offset)}
}
