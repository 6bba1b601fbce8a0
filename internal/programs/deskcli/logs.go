package deskcli

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/history/reader"
	"docket/internal/programs/cli"
)

// logsFlags say how much is shown of the decisions that a filter chose, and how.
type logsFlags struct {
	choose                      decisionFlags
	limit                       int
	after                       string
	oldest, follow, full, lines bool
	every, within               time.Duration
}

const (
	defaultLogs   = 50
	defaultTail   = 10
	leastEvery    = 100 * time.Millisecond
	defaultEvery  = time.Second
	searchingTime = 30 * time.Second // how long a search goes on by itself that finds too little
)

func (s *session) logs() *cobra.Command {
	var o logsFlags
	c := &cobra.Command{
		Use: "logs [ID] [flags]", Short: "Search decisions, show one, or follow new ones", DisableFlagsInUseLine: true,
		Long: "Search stored decisions, newest first. With ID, show that decision. With -f, follow new ones.\n\n" +
			"ID is a decision_id, or its first 6 or more characters. `docket why ID` explains a decision. Payloads\n" +
			"may hold personal data and are shown only with --full. Decisions dated more than an hour ahead of now\n" +
			"are left out, and told, unless --until, --oldest or a later --since asks for them.\n\n" +
			"With ID, all homes are searched: rows, dead letters, unread, parked and spooled records, and archived dead\n" +
			"letters. Each place that was not searched completely is named, such as archived days. Without ID, only rows\n" +
			"of the table are searched. A search that finds too little stops after 30 s and prints the command that\n" +
			"continues it.\n\n" +
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
	f.IntVarP(&o.limit, "limit", "n", defaultLogs, "show at most `N` decisions, 1 or more (default 50); with -f: N past ones first, 0 or more (default 10)")
	f.Lookup("limit").DefValue = "0" // the text says both
	f.StringVar(&o.after, "after", "", "continue after `CURSOR`, printed as next by the page before")
	f.BoolVar(&o.oldest, "oldest", false, "show the oldest first")
	f.BoolVarP(&o.follow, "follow", "f", false, "show the last decisions, then new ones as they are stored, until Ctrl-C")
	f.DurationVar(&o.every, "every", defaultEvery, "with -f: look for new decisions every `DURATION`, 100ms or more")
	f.BoolVar(&o.full, "full", false, "show whole decisions; may show personal data")
	withinFlag(c, &o.within)
	f.BoolVar(&o.lines, "lines", false, "print one JSON object per line; the next CURSOR goes to standard error")
	usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_KAFKA_BROKERS", "DOCKET_ARCHIVE_TO"}, "shown, also if none matches; with -f: stopped by Ctrl-C", "with ID: no stored decision has this ID, also if it was found elsewhere; or the command failed")
	o.choose.declare(s, c)
	c.RunE = s.run(func(args []string) (work, error) {
		if err := o.fault(c, args); err != nil {
			return nil, err
		}
		if len(args) == 1 {
			return func(ctx context.Context) error { return s.oneDecision(ctx, args[0], o) }, nil
		}
		filter, err := o.choose.filter(s.now())
		if o.follow {
			return func(ctx context.Context) error { return s.followed(ctx, filter, o) }, err
		}
		return func(ctx context.Context) error { return s.searched(ctx, filter, o) }, err
	})
	return c
}

func noSecondID(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return misuse("give one id; %s is one too many", quoted(args[1]))
	}
	return nil
}

// fault is what does not go together.
func (o *logsFlags) fault(c *cobra.Command, args []string) error {
	if o.follow && !c.Flags().Changed("limit") {
		o.limit = defaultTail
	}
	least := 1
	if o.follow {
		least = 0
	}
	if o.limit < least {
		return misuse("--limit must be %d or more", least)
	}
	if o.follow {
		for _, name := range []string{"after", "oldest", "until"} {
			if c.Flags().Changed(name) {
				return misuse("--follow shows new decisions; it cannot be used with --%s", name)
			}
		}
	} else if c.Flags().Changed("every") {
		return misuse("--every needs --follow")
	}
	if o.every < leastEvery {
		return misuse("--every must be %v or more", leastEvery)
	}
	if len(args) == 1 {
		if err := cmp.Or(idFault(args[0]), withinFault(o.within)); err != nil {
			return err
		}
		for _, name := range append(decisionFlagNames(), "limit", "after", "oldest", "follow", "every") {
			if c.Flags().Changed(name) {
				return misuse("an id selects one decision; it cannot be used with --%s", name)
			}
		}
	} else if c.Flags().Changed("within") {
		return misuse("--within needs an id")
	}
	return nil
}

// searched shows what a search finds, page by page, so that a search of any length takes the memory of one.
func (s *session) searched(ctx context.Context, f reader.Filter, o logsFlags) error {
	began := s.now()
	after, n, printed := o.after, 0, -1
	bounded, later := reader.Bound(f, o.oldest, began)
	if o.after != "" || !reader.Later(ctx, s.sys.Decisions, f, later) {
		later = time.Time{}
	}
	for {
		found, err := s.sys.Decisions.Search(ctx, bounded, reader.Page{Limit: min(o.limit-n, reader.MaxLimit), After: after, Oldest: o.oldest, Payload: o.full})
		if errors.Is(err, reader.ErrCursor) {
			return misuse("--after is not a cursor of this search: copy it as it was printed, with the same flags")
		}
		if err != nil {
			return err // it names the act
		}
		unknown := s.edits(ctx, found.Decisions, o.full)
		n += len(found.Decisions)
		after = found.Next
		spent := s.now().Sub(began) >= searchingTime
		last := after == "" || n >= o.limit || spent || ctx.Err() != nil
		switch {
		case o.lines:
			s.decisionLines(found.Decisions)
		case s.asJSON:
			s.decisionPart(found.Decisions, printed, last, after, later, unknown)
		case o.full:
			s.decisionTexts(found.Decisions)
		case len(found.Decisions) > 0:
			s.decisionTable(found.Decisions, n == len(found.Decisions))
		}
		printed = n
		if last {
			s.searchEnded(f, o, n, found, spent)
			if !s.asJSON || o.lines {
				s.tellEdits(unknown)
			}
			s.tellLater(f, o, later)
			return nil
		}
	}
}

// searchEnded says how a search ended and how to go on. JSON has the cursor in it.
func (s *session) searchEnded(f reader.Filter, o logsFlags, n int, found reader.Found, spent bool) {
	shown := cli.Grouped(int64(n)) + " shown"
	switch {
	case s.asJSON && !o.lines && (found.Next == "" || !spent):
	case found.Next == "" && n == 0:
		s.tell("no stored decisions match; `docket where-is ID` finds one that is parked, spooled or dead-lettered\n")
		if hint := pathHint(f.Paths); hint != "" {
			s.tell("%s\n", hint)
		}
	case found.Next == "":
	case spent && n < o.limit:
		s.tell("%s; not everything was searched in %s%s. To continue:\n  %s\n", shown, long(searchingTime), reached(found), s.nextPage(f, o, found.Next))
	case s.o.Terminal.Err:
		s.tell("%s; next page:\n  %s\n", shown, s.nextPage(f, o, found.Next))
	default:
		s.tell("%s; next page: --after %s\n", shown, found.Next)
	}
}

// tellLater says that decisions were left out since their time is yet to come.
func (s *session) tellLater(f reader.Filter, o logsFlags, later time.Time) {
	if later.IsZero() || s.asJSON && !o.lines {
		return
	}
	f.Since = later
	s.tell("decisions dated more than %s ahead of now are not shown. To list them:\n  %s\n", long(reader.AheadTolerance), plainAll(strings.Join(append([]string{string(s.env.Program), "logs"}, decisionWords(f)...), " ")))
}

// reached is how far was looked.
func reached(found reader.Found) string {
	if found.Reached.IsZero() {
		return ""
	}
	return ", only back to " + stamped(found.Reached)
}

// nextPage is the command that goes on.
func (s *session) nextPage(f reader.Filter, o logsFlags, next string) string {
	words := append([]string{string(s.env.Program), "logs"}, decisionWords(f)...)
	if o.limit != defaultLogs {
		words = append(words, "-n", strconv.Itoa(o.limit))
	}
	for _, flag := range []struct {
		name string
		on   bool
	}{{"--oldest", o.oldest}, {"--full", o.full}, {"--lines", o.lines}, {"--json", s.asJSON && !o.lines}, {"--wide", s.wide}} {
		if flag.on {
			words = append(words, flag.name)
		}
	}
	return plainAll(strings.Join(append(words, "--after", shell(next)), " "))
}
