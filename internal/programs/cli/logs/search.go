package logs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// search is docket logs.
type search struct {
	finder
	choose decisionFlags
	view
	limit          int
	after          string
	oldest, follow bool
	every, within  time.Duration
}

const (
	defaultLogs   = 50
	defaultTail   = 10
	leastEvery    = 100 * time.Millisecond
	defaultEvery  = time.Second
	searchingTime = 30 * time.Second // after it, a search that finds too little stops
)

// Search makes the command that searches decisions, shows one, or follows new ones.
func Search(call frame.Call) *cobra.Command {
	l := &search{finder: newFinder(call)}
	c := &cobra.Command{
		Use: "logs [ID] [flags]", Short: "Search decisions, show one, or follow new ones", DisableFlagsInUseLine: true,
		Long: "Search stored decisions, newest first. With ID, show that decision. With -f, follow new ones.\n\n" +
			"ID is a decision_id, or its first 6 or more characters. `docket why ID` explains a decision. Payloads\n" +
			"may hold personal data and are shown only with --full. Decisions dated more than an hour ahead of now\n" +
			"are left out, and told, unless --until, --oldest or a later --since asks for them.\n\n" +
			"With ID, all homes are searched: rows, dead letters, unread, parked and spooled records, and archived\n" +
			"days. Each place that was not searched completely is named. Without ID, rows of the table and, with\n" +
			"DOCKET_ARCHIVE_TO, archived days are searched. A search that finds too little stops after 30 s and prints\n" +
			"the command that continues it.\n\n" +
			"A decision must match all flags. --path, --service, --verdict and --requested-by can be repeated: one\n" +
			"value must match. --label and --match can be repeated: all must match.",
		Example: "  docket logs --denied --since 2h --path 'authz/*'\n" +
			"  docket logs --requested-by 10.0.0.7 --label app=checkout --match input:/user=alice -n 5\n" +
			"  docket logs --match result:/reasons --full -n 1\n" +
			"  docket logs -f --denied\n" +
			"  docket logs --since 1h -n 100000 --lines | jq -r .path | sort | uniq -c\n" +
			"  docket logs 502d43b4",
		Args: noSecondID, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.IntVarP(&l.limit, "limit", "n", defaultLogs, "show at most `N` decisions, 1 or more (default 50); with -f: N past ones first, 0 or more (default 10)")
	f.Lookup("limit").DefValue = "0" // the text says both
	f.StringVar(&l.after, "after", "", "continue after `CURSOR`, printed as next by the page before")
	f.BoolVar(&l.oldest, "oldest", false, "show the oldest first")
	f.BoolVarP(&l.follow, "follow", "f", false, "show the last decisions, then new ones as they are stored, until Ctrl-C")
	f.DurationVar(&l.every, "every", defaultEvery, "with -f: look for new decisions every `DURATION`, 100ms or more")
	f.BoolVar(&l.full, "full", false, "show whole decisions; may show personal data")
	withinFlag(c, &l.within)
	f.BoolVar(&l.lines, "lines", false, "print one JSON object per line; the next CURSOR goes to standard error")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_KAFKA_BROKERS", "DOCKET_ARCHIVE_TO"}, "shown, also if none matches; with -f: stopped by Ctrl-C", "with ID: no stored decision has this ID, also if it was found elsewhere; or the command failed")
	l.choose.declare(call, c)
	c.RunE = l.Run(func(args []string) (frame.Work, error) {
		if err := l.fault(c, args); err != nil {
			return nil, err
		}
		if len(args) == 1 {
			return func(ctx context.Context) error { return l.one(ctx, args[0]) }, nil
		}
		filter, err := l.choose.filter(l.Now())
		if l.follow {
			return func(ctx context.Context) error { return l.followed(ctx, filter) }, err
		}
		return func(ctx context.Context) error { return l.searched(ctx, filter) }, err
	})
	return c
}

func noSecondID(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return frame.Misuse("give one id; %s is one too many", term.Quoted(args[1]))
	}
	return nil
}

// fault refuses flags that contradict each other.
func (l *search) fault(c *cobra.Command, args []string) error {
	if l.follow && !c.Flags().Changed("limit") {
		l.limit = defaultTail
	}
	least := 1
	if l.follow {
		least = 0
	}
	if l.limit < least {
		return frame.Misuse("--limit must be %d or more", least)
	}
	if l.follow {
		for _, name := range []string{"after", "oldest", "until"} {
			if c.Flags().Changed(name) {
				return frame.Misuse("--follow shows new decisions; it cannot be used with --%s", name)
			}
		}
	} else if c.Flags().Changed("every") {
		return frame.Misuse("--every needs --follow")
	}
	if l.every < leastEvery {
		return frame.Misuse("--every must be %v or more", leastEvery)
	}
	if len(args) == 1 {
		if err := cmp.Or(idFault(args[0]), withinFault(l.within)); err != nil {
			return err
		}
		for _, name := range append(decisionFlagNames(), "limit", "after", "oldest", "follow", "every") {
			if c.Flags().Changed(name) {
				return frame.Misuse("an id selects one decision; it cannot be used with --%s", name)
			}
		}
	} else if c.Flags().Changed("within") {
		return frame.Misuse("--within needs an id")
	}
	return nil
}

// searched shows what a search finds, page by page, so that a search of any length takes the memory of one.
func (l *search) searched(ctx context.Context, f reader.Filter) error {
	began := l.Now()
	after, n, printed := l.after, 0, -1
	var gaps []reader.Gap
	archived := 0
	bounded, later := reader.Bound(f, l.oldest, began)
	begun := begin(ctx, l.Call, complete.Range{Since: f.Since, Until: f.Until, Paths: f.Paths, Services: f.Services})
	if l.after != "" || !reader.Later(ctx, l.Sys.Decisions, f, later) {
		later = time.Time{}
	}
	for {
		found, err := l.Sys.Decisions.Search(ctx, bounded, reader.Page{Limit: min(l.limit-n, reader.MaxLimit), After: after, Oldest: l.oldest, Payload: l.full})
		if errors.Is(err, reader.ErrCursor) {
			return frame.Misuse("--after is not a cursor of this search: copy it as it was printed, with the same flags")
		}
		if err = l.parts.Pass(err); err != nil {
			if printed >= 0 { // also where no page had a decision
				l.broken(f, n, printed, after, gaps)
			}
			return err // it names the act
		}
		unknown := l.edits(ctx, found.Decisions, l.full)
		n += len(found.Decisions)
		after = found.Next
		gaps = withGaps(gaps, found.NotLooked)
		archived += fromArchives(found.Decisions)
		spent := l.Now().Sub(began) >= searchingTime
		last := after == "" || n >= l.limit || spent || ctx.Err() != nil
		said := l.ended(begun, complete.Facts{Found: n > 0, Archived: archived > 0, Partly: after != "" && n < l.limit || reader.Lacking(gaps), RowsLack: reader.RowsLack(gaps)})
		switch {
		case l.lines:
			l.jsonLines(found.Decisions)
		case l.AsJSON:
			l.jsonPart(found.Decisions, printed, last, pageEnd{after, later, unknown, gaps, said})
		case l.full:
			l.texts(found.Decisions)
		case len(found.Decisions) > 0:
			l.rows(found.Decisions, n == len(found.Decisions))
		}
		printed = n
		if last {
			l.searchEnded(f, n, found, spent)
			if !l.AsJSON || l.lines {
				l.tellEdits(unknown)
			}
			l.tellLater(f, later)
			l.tellArchives(archived, gaps)
			if !l.AsJSON || l.lines {
				tellComplete(l.Call, said)
				l.tellPartial()
			}
			return nil
		}
	}
}

// broken ends a search that fails after pages which were shown. after continues it.
func (l *search) broken(f reader.Filter, n, printed int, after string, gaps []reader.Gap) {
	said := &reader.Completeness{Freshness: reader.Partial}
	if l.AsJSON && !l.lines {
		l.jsonPart(nil, printed, true, pageEnd{next: after, gaps: gaps, said: said})
		return
	}
	l.searchEnded(f, n, reader.Found{Next: after}, false)
	l.tellArchives(0, gaps)
	if l.Sys.Complete != nil {
		tellComplete(l.Call, said)
	}
	l.tellPartial()
}

// searchEnded prints how a search ended and how to continue. JSON has the cursor in it.
func (l *search) searchEnded(f reader.Filter, n int, found reader.Found, spent bool) {
	shown := term.Grouped(int64(n)) + " shown"
	switch {
	case l.AsJSON && !l.lines && (found.Next == "" || !spent):
	case found.Next == "" && n == 0:
		l.Tell("no stored decisions match; `docket where-is ID` finds one that is parked, spooled or dead-lettered\n")
		if hint := pathHint(f.Paths); hint != "" {
			l.Tell("%s\n", hint)
		}
	case found.Next == "":
	case spent && n < l.limit:
		l.Tell("%s; not everything was searched in %s%s. To continue:\n  %s\n", shown, term.Span(searchingTime), reached(found), l.nextPage(f, found.Next))
	case l.Terminal.Err:
		l.Tell("%s; next page:\n  %s\n", shown, l.nextPage(f, found.Next))
	default:
		l.Tell("%s; next page: --after %s\n", shown, found.Next)
	}
}

// tellLater prints that decisions were left out, as they are dated ahead.
func (l *search) tellLater(f reader.Filter, later time.Time) {
	if later.IsZero() || l.AsJSON && !l.lines {
		return
	}
	f.Since = later
	l.Tell("decisions dated more than %s ahead of now are not shown. To list them:\n  %s\n", term.Span(reader.AheadTolerance), strings.Join(append([]string{l.Program, "logs"}, decisionWords(f)...), " "))
}

// withGaps adds places that were not looked at completely, each once.
func withGaps(all, more []reader.Gap) []reader.Gap {
	for _, g := range more {
		if !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	return all
}

// fromArchives counts the decisions that are only in archives.
func fromArchives(decisions []reader.Decision) (n int) {
	for i := range decisions {
		if decisions[i].Archived != nil {
			n++
		}
	}
	return n
}

// tellArchives prints how many decisions came from archived days, and which days were not read completely.
func (l *search) tellArchives(archived int, gaps []reader.Gap) {
	if l.AsJSON && !l.lines {
		return
	}
	if archived > 0 {
		l.Tell("%s only in archived days; --json and --full name the file\n", term.Counted(int64(archived), "decision"))
	}
	for _, gap := range reader.GapTexts(gaps) {
		l.Tell("not looked at completely: %s\n", gap)
	}
}

// reached is how far back the search came.
func reached(found reader.Found) string {
	if found.Reached.IsZero() {
		return ""
	}
	return ", only back to " + term.Stamp(found.Reached)
}

// nextPage is the command that continues.
func (l *search) nextPage(f reader.Filter, next string) string {
	words := append([]string{l.Program, "logs"}, decisionWords(f)...)
	if l.limit != defaultLogs {
		words = append(words, "-n", strconv.Itoa(l.limit))
	}
	format := l.Options.Format
	if format != "" {
		words = append(words, "-o", format)
	}
	for _, flag := range []struct {
		name string
		on   bool
	}{{"--oldest", l.oldest}, {"--full", l.full}, {"--lines", l.lines && format == ""}, {"--json", l.AsJSON && !l.lines && format == ""}, {"--wide", l.Wide && format == ""}} {
		if flag.on {
			words = append(words, flag.name)
		}
	}
	return strings.Join(append(words, "--after", term.ShellWord(next)), " ")
}

// one prints all decisions of an id. Ids of OPA are unique; ids of other producers need not be.
func (l *search) one(ctx context.Context, id string) error {
	l.columns = !l.full
	begun := begin(ctx, l.Call, complete.Range{})
	all, a, err := l.named(ctx, id, l.within)
	if err != nil {
		return err
	}
	if a == nil {
		a = l.elsewhere(ctx, id, all, l.within)
	}
	if len(all) == 0 {
		all = a.Rows // it was stored meanwhile
	}
	all = lookup.Join(all, a.Archived)
	said := l.ended(begun, complete.FactsOf(all, !a.Complete()))
	if len(all) == 0 {
		if l.AsJSON && !l.lines {
			l.jsonOfID(nil, a, "", said)
		}
		l.absent(a)
		tellComplete(l.Call, said)
		return frame.Exit(1)
	}
	if !l.full {
		for i := range all {
			all[i].Raw = nil
		}
	}
	edits := l.edits(ctx, all, l.full)
	switch {
	case l.lines:
		l.jsonLines(all)
		l.listClaims(l.Tell, a)
		l.listFound(l.Tell, a, a.Elsewhere())
		if !a.Complete() {
			for _, gap := range lookup.Gaps(a.NotLooked) {
				l.Tell("not looked at completely: %s\n", gap)
			}
		}
		l.tellEdits(edits)
		tellComplete(l.Call, said)
		l.tellPartial()
	case l.AsJSON:
		l.jsonOfID(all, a, edits, said)
	default:
		if len(all) > 1 {
			l.Say("%s have this id%s; oldest first.\n\n", term.Counted(int64(len(all)), "decision"), apart(all))
		}
		for i, d := range all {
			if i > 0 {
				l.Say("\n")
			}
			l.decision(d)
		}
		l.tellEdits(edits)
		l.sayElsewhere(a)
		l.Say("\nTo explain it: %s\n", term.Command("docket why", []string{all[0].ID}))
		tellComplete(l.Call, said)
		l.tellPartial()
	}
	return nil
}
