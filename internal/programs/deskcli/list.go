package deskcli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/record/envelope"
	"docket/internal/record/escape"
)

// dlq holds the commands on dead letters.
func (s *session) dlq() *cobra.Command {
	return s.group(&cobra.Command{
		Use: "dlq", Short: "List, explain, retry, edit and resolve dead letters",
		Long: "List, explain, retry, edit and resolve dead letters: records that could not be stored.\n\n" +
			"Name them by id (its first 6 or more characters are enough), or select many by filter flags.",
		Example: "  docket dlq groups\n  docket dlq show 3f9a0c1e77b2\n  docket dlq retry 3f9a0c1e77b2 --dry-run",
	}, s.list(), s.groups(), s.show(), s.retry(), s.edit(), s.proposals(), s.approve(), s.reject(), s.resolve(), s.surplus())
}

// ledgerText says what a list of dead letters shows, and what not.
const ledgerText = "It shows what a desk has entered into the ledger. It asks Kafka for 3 s at most how many dead letters are missing\n" +
	"there, and says so on standard error; with --json, in ledger."

const (
	defaultList = 50
	mostList    = 1000
)

func (s *session) list() *cobra.Command {
	var f filterFlags
	var limit int
	var after string
	var all bool
	c := &cobra.Command{
		Use: "list [flags]", Short: "List dead letters, the newest failure first", DisableFlagsInUseLine: true,
		Long: "List dead letters, the newest failure first.\n\n" + ledgerText,
		Example: "  docket dlq list --state FAILED --since 2h\n" +
			"  docket dlq list --code 23514 --path authz/allow --limit 200\n" +
			"  docket dlq list --all --json | jq -r '.entries[].id'",
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.declare(s, c)
	c.Flags().IntVar(&limit, "limit", defaultList, "list at most `N` dead letters")
	c.Flags().StringVar(&after, "after", "", "continue after `CURSOR`, printed as next by the page before")
	c.Flags().BoolVar(&all, "all", false, "list all; not with --limit")
	usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_KAFKA_BROKERS"}, "listed, also if none matches", "")
	c.RunE = s.run(func([]string) (work, error) {
		filter, err := f.filter(s.now())
		switch {
		case err != nil:
			return nil, err
		case limit < 1:
			return nil, misuse("--limit must be 1 or more")
		case all && c.Flags().Changed("limit"):
			return nil, misuse("--all and --limit contradict each other; give one")
		case all:
			limit = -1
		}
		return func(ctx context.Context) error { return s.listed(ctx, filter, after, limit) }, nil
	})
	return c
}

// noArgs is cobra.NoArgs in our words.
func noArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && c.HasSubCommands():
		return noCommand(c, args[0])
	case len(args) > 0:
		return misuse("unexpected argument %s", quoted(args[0]))
	}
	return nil
}

// listed lists at most limit letters, all where that is below 0, page by page, so that a list of any length takes the memory of one.
func (s *session) listed(ctx context.Context, filter ledger.Filter, after string, limit int) error {
	beside := s.beside(ctx)
	n := 0
	for {
		page := mostList
		if limit >= 0 {
			page = min(limit-n, mostList)
		}
		list, err := s.sys.Book.List(ctx, filter, ledger.Page{After: after, Limit: page})
		if err != nil {
			beside(false)
			return err // it names the act
		}
		after = list.Next
		last := after == "" || limit >= 0 && n+len(list.Entries) >= limit
		if s.asJSON {
			s.printPart(list.Entries, n == 0)
		} else if len(list.Entries) > 0 {
			s.listTable(list.Entries, n == 0)
		}
		n += len(list.Entries)
		if last {
			break
		}
	}
	missing := beside(n == 0)
	switch {
	case s.asJSON:
		s.printEnd(after, missing)
	case n == 0:
		s.tell("no dead letters match; `docket dlq groups` shows what is in the ledger\n")
	case after != "":
		s.tell("%s shown; next page: --after %s\n", cli.Grouped(int64(n)), after)
	}
	s.noteLedger(missing)
	return nil
}

// printPart prints a part of a list as JSON; the parts and [session.printEnd] together are one [jsonList], with a ledger.
func (s *session) printPart(entries []ledger.Entry, first bool) {
	if first {
		s.say("{\n  \"entries\": [")
	}
	for i, e := range entries {
		text, err := json.MarshalIndent(entryOf(e), "    ", "  ")
		if err != nil {
			continue // of strings, numbers and times there is no such error
		}
		comma := ","
		if first && i == 0 {
			comma = ""
		}
		s.say("%s\n    %s", comma, escape.JSON(text))
	}
}

func (s *session) printEnd(next string, l jsonLedger) {
	text, err := json.Marshal(next)
	if err == nil {
		var of []byte
		of, err = json.MarshalIndent(l, "  ", "  ")
		s.say("\n  ],\n  \"next\": %s,\n  \"ledger\": %s\n}\n", escape.JSON(text), escape.JSON(of))
	}
	if err != nil {
		s.unwritten(err)
	}
}

func (s *session) listTable(entries []ledger.Entry, titles bool) {
	columns := []column{
		{title: "id"},
		{title: "state", paint: s.paintState},
		{title: "kind", rank: 6},
		{title: "code", rank: 1, least: 8},
		{title: "path", rank: 2, least: 16},
		{title: "last failure", rank: 3},
		{title: "retries", rank: 7, right: true},
		{title: "record", rank: 5},
		{title: "fingerprint", rank: 4},
		{title: "message", rank: 8, least: 24},
	}
	now := s.now()
	var rows [][]cell
	for _, e := range entries {
		rows = append(rows, []cell{
			{full: s.id(e.ID)}, {full: string(e.State)}, {full: plain(string(e.Cause.Kind))}, {full: plain(e.Cause.Code)}, {full: plain(e.Path)},
			{full: moment(e.FailedAt, now), brief: ago(e.FailedAt, now)}, {full: fmt.Sprint(e.Attempts)},
			placeCell(e.Origin),
			{full: plain(e.Fingerprint), brief: short(e.Fingerprint, 8)}, {full: plain(e.Cause.Message)},
		})
	}
	s.tableWith(columns, rows, "", titles)
}

// placeCell is where a record was first read.
func placeCell(o envelope.Origin) cell {
	if o.Partition == envelope.NoPlace {
		return cell{full: "a collector", brief: "collector"}
	}
	return cell{full: plain(fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Offset)), brief: fmt.Sprintf("%d/%d", o.Partition, o.Offset)}
}

func short(text string, n int) string {
	if len(text) > n {
		return text[:n]
	}
	return text
}
