package deskcli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
)

// mostSurplus is how many ranges are shown.
const mostSurplus = 1000

func (s *session) surplus() *cobra.Command {
	var d deciding
	var all bool
	var enter []int
	c := &cobra.Command{
		Use: "surplus [flags]", Short: "List dead letters in Kafka alone, because a client brought too many", DisableFlagsInUseLine: true,
		Long: "List dead letters that are in Kafka and not in the ledger, because a client brought too many.\n\n" +
			"At most DOCKET_DESK_MAX_ENTERED dead letters of a client enter the ledger in an hour. The others stay in\n" +
			"their topic, in the ranges of offsets that this command lists. Between them are records of other clients.\n" +
			"A desk enters them once their client has room. Before Kafka deletes them it archives them, or enters them\n" +
			"without room.\n\n" +
			"--enter RANGE has a running desk enter a range now. Your name and reason stay with the range.",
		Example: "  docket dlq surplus\n  docket dlq surplus --all --json\n  docket dlq surplus --enter 12 --operator mara --reason 'the client is fixed'",
		Args:    noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := c.Flags()
	flags.BoolVar(&all, "all", false, "list ranges that have ended too, newest first: entered, archived, lost")
	flags.IntSliceVar(&enter, "enter", nil, "enter this `RANGE` now, whatever its client brought; can be repeated")
	flags.StringVar(&d.operator, "operator", "", operatorText)
	flags.StringVar(&d.reason, "reason", "", "why you do this: `TEXT` (required with --enter)")
	usage(c, []string{"DOCKET_DATABASE_URL"}, "listed, also if there is none; with --enter: a desk enters all of them", "with --enter: at least one is not open, or was ordered before; or the command failed")
	c.RunE = s.run(func([]string) (work, error) {
		if len(enter) == 0 {
			if d.reason != "" || d.operator != "" {
				return nil, misuse("--operator and --reason need --enter")
			}
			return func(ctx context.Context) error { return s.listSurplus(ctx, all) }, nil
		}
		by, err := s.actor(&d, "")
		return func(ctx context.Context) error { return s.enterSurplus(ctx, enter, by) }, err
	})
	return c
}

// jsonSurplus is a range.
type jsonSurplus struct {
	Range     int64      `json:"range"`
	State     string     `json:"state"`
	Client    string     `json:"client"` // empty: none that is proven
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	First     int64      `json:"first_offset"`
	Last      int64      `json:"last_offset"`
	Next      int64      `json:"next_offset"` // what comes before was read again
	Letters   int64      `json:"letters"`
	Open      int64      `json:"open"` // in Kafka alone
	Entered   int64      `json:"entered"`
	Archived  int64      `json:"archived"`
	Lost      int64      `json:"lost"`
	LeftAt    time.Time  `json:"left_at"`
	ClosedAt  *time.Time `json:"closed_at,omitempty"`
	Archive   string     `json:"archive,omitempty"`
	OrderedBy string     `json:"ordered_by,omitempty"`
	OrderedAt *time.Time `json:"ordered_at,omitempty"`
	Reason    string     `json:"reason,omitempty"`
}

func surplusOf(r ledger.Surplus) jsonSurplus {
	return jsonSurplus{
		Range: r.ID, State: string(r.State), Client: r.Client, Topic: r.Topic, Partition: r.Partition, First: r.First, Last: r.Last, Next: r.Next, Letters: r.Letters, Open: r.Open(),
		Entered: r.Entered, Archived: r.Archived, Lost: r.Lost, LeftAt: r.LeftAt.UTC(), ClosedAt: at(r.ClosedAt), Archive: r.ArchivedIn, OrderedBy: r.OrderedBy, OrderedAt: at(r.OrderedAt), Reason: r.OrderedWhy,
	}
}

func (s *session) listSurplus(ctx context.Context, all bool) error {
	ranges, err := s.sys.Book.Surplus(ctx, all, mostSurplus)
	if err != nil {
		return err // it names the act
	}
	if s.asJSON {
		s.print(listOf(ranges, "", surplusOf))
		return nil
	}
	if len(ranges) == 0 {
		s.tell("all dead letters that a desk has read are in the ledger\n")
		return nil
	}
	columns := []column{
		{title: "range", right: true}, {title: "state", rank: 3}, {title: "client", least: 12}, {title: "offsets", rank: 1}, {title: "letters", right: true}, {title: "in Kafka", right: true},
		{title: "entered", right: true, rank: 4}, {title: "archived", right: true, rank: 5}, {title: "lost", right: true, rank: 2}, {title: "since", rank: 3}, {title: "ordered by", rank: 6},
	}
	now := s.now()
	var open int64
	var rows [][]cell
	for i := range ranges {
		r := &ranges[i]
		open += r.Open()
		rows = append(rows, []cell{
			{full: fmt.Sprint(r.ID)}, {full: string(r.State)}, {full: plain(clientName(r.Client))}, {full: plain(fmt.Sprintf("%s/%d/%d..%d", r.Topic, r.Partition, r.First, r.Last)), brief: fmt.Sprintf("%d/%d..%d", r.Partition, r.First, r.Last)},
			{full: cli.Grouped(r.Letters)}, {full: cli.Grouped(r.Open())}, {full: cli.Grouped(r.Entered)}, {full: cli.Grouped(r.Archived)}, {full: cli.Grouped(r.Lost)},
			{full: moment(r.LeftAt, now), brief: ago(r.LeftAt, now)}, {full: plain(r.OrderedBy)},
		})
	}
	s.table(columns, rows, "")
	s.tell("%s, %s in Kafka and not in the ledger\n", counted(int64(len(ranges)), "range"), counted(open, "dead letter"))
	return nil
}

func clientName(client string) string {
	if client == "" {
		return "(no proven client)"
	}
	return client
}

func (s *session) enterSurplus(ctx context.Context, ids []int, by ledger.Actor) error {
	type outcome struct {
		Range  int64  `json:"range"`
		Result string `json:"result"` // ordered or refused
	}
	var told []outcome
	refused := 0
	for _, n := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		id := int64(n)
		o := outcome{id, "ordered"}
		switch err := s.sys.Book.OrderSurplus(ctx, id, by); {
		case errors.Is(err, ledger.ErrNotFound):
			o.Result = "refused"
			refused++
		case err != nil:
			return fmt.Errorf("range %d: %w", id, err)
		}
		told = append(told, o)
		if !s.asJSON && o.Result == "refused" {
			s.tell("range %d: refused: it is not open, or was ordered before; see docket dlq surplus --all\n", id)
		} else if !s.asJSON {
			s.say("range %d: a running desk enters it within seconds\n", id)
		}
	}
	if s.asJSON {
		s.print(told)
	}
	if refused > 0 {
		return endError(cli.Failed)
	}
	return nil
}

// leftOut says in words what clients have in Kafka alone; empty: nothing.
func leftOut(ranges []ledger.Surplus) string {
	type of struct {
		letters, ranges int64
		place           string
	}
	by := map[string]*of{}
	var clients []string
	for i := range ranges {
		r := &ranges[i]
		if r.Open() == 0 {
			continue
		}
		o := by[r.Client]
		if o == nil {
			o = &of{}
			by[r.Client] = o
			clients = append(clients, r.Client)
		}
		o.letters, o.ranges, o.place = o.letters+r.Open(), o.ranges+1, fmt.Sprintf("%s/%d/%d..%d", r.Topic, r.Partition, r.Next, r.Last)
	}
	if len(clients) == 0 {
		return ""
	}
	slices.Sort(clients)
	const named = 3
	var parts []string
	for i, client := range clients {
		if i == named {
			parts = append(parts, counted(int64(len(clients)-named), "more client"))
			break
		}
		o := by[client]
		if o.ranges > 1 {
			o.place = counted(o.ranges, "range")
		}
		parts = append(parts, fmt.Sprintf("%s of %s (in Kafka: %s)", counted(o.letters, "dead letter"), plain(clientName(client)), plain(o.place)))
	}
	return "not entered, as their clients brought too many: " + strings.Join(parts, ", ") + "; see docket dlq surplus"
}
