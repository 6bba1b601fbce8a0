package deskcli

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/cli"
	"docket/internal/reader"
)

// logsFlags say how much is shown of the decisions that a filter chose, and how.
type logsFlags struct {
	choose                      decisionFlags
	limit                       int
	after                       string
	oldest, follow, full, lines bool
	every                       time.Duration
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
		Use: "logs [ID] [flags]", Short: "Search stored decisions, the newest first; show one; follow what comes", DisableFlagsInUseLine: true,
		Long: "Search stored decisions. Flags are joined by and, the values of a repeated one by or; of --label and --match all have to\n" +
			"hold. With ID, a decision_id, that decision is shown: `docket why ID` explains it. What a decision holds may be personal\n" +
			"data and is shown with --full alone.",
		Example: "  docket logs --denied --since 2h --path 'authz/*'\n" +
			"  docket logs --requested-by 10.0.0.7 --label app=checkout --match input:/user=alice -n 5\n" +
			"  docket logs --match 'result:/reasons' --full -n 1     # something is there\n" +
			"  docket logs -f --denied\n" +
			"  docket logs --since 1h -n 100000 --lines | jq -r .path | sort | uniq -c\n" +
			"  docket logs 502d43b4-80ba-4142-9470-c83ed0f8d1a8",
		Args: noSecondID, ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.choose.declare(s, c)
	f := c.Flags()
	f.IntVarP(&o.limit, "limit", "n", defaultLogs, "most that are shown: a `number`; with --follow, of what is there already (10)")
	f.StringVar(&o.after, "after", "", "go on where a search ended: the `cursor` that it showed as next")
	f.BoolVar(&o.oldest, "oldest", false, "the oldest first")
	f.BoolVarP(&o.follow, "follow", "f", false, "show the last ones, and then what is stored from now on, until a signal")
	f.DurationVar(&o.every, "every", defaultEvery, "with --follow: how often it is looked, a `duration`")
	f.BoolVar(&o.full, "full", false, "show whole decisions, which may hold personal data")
	f.BoolVar(&o.lines, "lines", false, "print JSON, a line for each decision")
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
		return misuse("name one decision; %s is one too many", quoted(args[1]))
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
		return misuse("--limit has to be %d or more", least)
	}
	if o.follow {
		for _, name := range []string{"after", "oldest", "until"} {
			if c.Flags().Changed(name) {
				return misuse("--follow goes on from now; it makes no sense with --%s", name)
			}
		}
	} else if c.Flags().Changed("every") {
		return misuse("--every makes sense with --follow only")
	}
	if o.every < leastEvery {
		return misuse("--every has to be %v or more", leastEvery)
	}
	if len(args) == 1 {
		if err := idFault(args[0]); err != nil {
			return err
		}
		for _, name := range append(decisionFlagNames(), "limit", "after", "oldest", "follow", "every") {
			if c.Flags().Changed(name) {
				return misuse("a decision is named by its id alone; --%s chooses among many", name)
			}
		}
	}
	return nil
}

// searched shows what a search finds, page by page, so that a search of any length takes the memory of one.
func (s *session) searched(ctx context.Context, f reader.Filter, o logsFlags) error {
	began := s.now()
	after, n, printed := o.after, 0, -1
	for {
		found, err := s.sys.Decisions.Search(ctx, f, reader.Page{Limit: min(o.limit-n, reader.MaxLimit), After: after, Oldest: o.oldest, Payload: o.full})
		if errors.Is(err, reader.ErrCursor) {
			return misuse("--after is no cursor of this search: take it as it was shown, with the same flags")
		}
		if err != nil {
			return err // it names the act
		}
		n += len(found.Decisions)
		after = found.Next
		spent := s.now().Sub(began) >= searchingTime
		last := after == "" || n >= o.limit || spent || ctx.Err() != nil
		switch {
		case o.lines:
			s.decisionLines(found.Decisions)
		case s.asJSON:
			s.decisionPart(found.Decisions, printed, last, after)
		case o.full:
			s.decisionTexts(found.Decisions)
		case len(found.Decisions) > 0:
			s.decisionTable(found.Decisions, n == len(found.Decisions))
		}
		printed = n
		if last {
			s.searchEnded(f, o, n, found, spent)
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
		s.tell("no stored decision fits; `docket where-is ID` looks for one that is parked, spooled or dead\n")
		if hint := pathHint(f.Paths); hint != "" {
			s.tell("%s\n", hint)
		}
	case found.Next == "":
	case spent && n < o.limit:
		s.tell("%s; %s were not enough to look at all of them%s. Go on:\n  %s\n", shown, long(searchingTime), reached(found), s.nextPage(f, o, found.Next))
	case s.o.Terminal.Err:
		s.tell("%s; the next:\n  %s\n", shown, s.nextPage(f, o, found.Next))
	default:
		s.tell("%s; the next: --after %s\n", shown, found.Next)
	}
}

// reached is how far was looked.
func reached(found reader.Found) string {
	if found.Reached.IsZero() {
		return ""
	}
	return ", but as far as " + stamped(found.Reached)
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
