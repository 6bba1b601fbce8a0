package letters

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
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// mostSurplus is how many ranges are shown at once.
const mostSurplus = 1000

// surplus is docket dlq surplus.
type surplus struct {
	frame.Call
	frame.Signature
	all   bool
	after string
	enter []int
}

// Surplus makes the command that lists dead letters in Kafka alone.
func Surplus(call frame.Call) *cobra.Command {
	u := &surplus{Call: call}
	c := &cobra.Command{
		Use: "surplus [flags]", Short: "List dead letters in Kafka alone, because a client brought too many", DisableFlagsInUseLine: true,
		Long: "List dead letters that are in Kafka and not in the ledger, because a client brought too many.\n\n" +
			"At most DOCKET_DESK_MAX_ENTERED dead letters of a client enter the ledger in an hour. The others stay in\n" +
			"their topic, in the ranges of offsets that this command lists. Between them are records of other clients.\n" +
			"A desk enters them once their client has room. Before Kafka deletes them it archives them, or enters them\n" +
			"without room.\n\n" +
			"--enter RANGE has a running desk enter a range now. Your name and reason stay with the range.",
		Example: "  docket dlq surplus\n  docket dlq surplus --all --json\n  docket dlq surplus --enter 12 --operator mara --reason 'the client is fixed'",
		Args:    frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := c.Flags()
	flags.BoolVar(&u.all, "all", false, "list ranges that have ended too, newest first: entered, archived, lost")
	flags.StringVar(&u.after, "after", "", "continue after `CURSOR`, printed as next by the page before")
	flags.IntSliceVar(&u.enter, "enter", nil, "enter this `RANGE` now, whatever its client brought; can be repeated")
	u.Declare(flags, "why you do this: `TEXT` (required with --enter)")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "listed, also if there is none; with --enter: a desk enters all of them", "with --enter: at least one is not open, or was ordered before; or the command failed")
	c.RunE = u.Run(func([]string) (frame.Work, error) {
		if len(u.enter) == 0 {
			if u.Reason != "" || u.Operator != "" {
				return nil, frame.Misuse("--operator and --reason need --enter")
			}
			after, err := frame.NumberAfter(u.after)
			return func(ctx context.Context) error { return u.listed(ctx, after) }, err
		}
		if u.after != "" {
			return nil, frame.Misuse("--after lists; it does not go with --enter")
		}
		by, err := u.Actor(u.Signature, "")
		return func(ctx context.Context) error { return u.ordered(ctx, by) }, err
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
	Next      int64      `json:"next_offset"` // those before it were read again
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
		Entered: r.Entered, Archived: r.Archived, Lost: r.Lost, LeftAt: r.LeftAt.UTC(), ClosedAt: frame.UTC(r.ClosedAt), Archive: r.ArchivedIn, OrderedBy: r.OrderedBy, OrderedAt: frame.UTC(r.OrderedAt), Reason: r.OrderedWhy,
	}
}

// pageOf asks for a page of ranges. more says that others follow, or that a desk without pages does not know.
func pageOf(ctx context.Context, book frame.Book, all bool, after int64) (ranges []ledger.Surplus, next string, more bool, err error) {
	unpaged := false
	ranges, next, err = frame.Numbered(func(after int64, n int) ([]ledger.Surplus, error) {
		page, err := book.Surplus(ctx, all, after, n)
		unpaged = errors.Is(err, ledger.ErrBadPage)
		return page, err
	}, after, mostSurplus, func(r ledger.Surplus) int64 { return r.ID })
	return ranges, next, next != "" || unpaged, err
}

// counted is a count of things, which is a lower bound where not all of them were seen.
func counted(n int64, thing string, more bool) string {
	if more {
		return "at least " + term.Counted(n, thing)
	}
	return term.Counted(n, thing)
}

func (u *surplus) listed(ctx context.Context, after int64) error {
	ranges, next, more, err := pageOf(ctx, u.Sys.Book, u.all, after)
	if err != nil {
		return err // it names the act
	}
	if u.AsJSON {
		u.Print(frame.ListOf(ranges, next, surplusOf))
		return nil
	}
	if len(ranges) == 0 && after > 0 {
		u.Tell("no more ranges\n")
		return nil
	}
	if len(ranges) == 0 {
		u.Tell("all dead letters that a desk has read are in the ledger\n")
		return nil
	}
	columns := []term.Column{
		{Title: "range", Right: true}, {Title: "state", Rank: 3}, {Title: "client", Least: 12}, {Title: "offsets", Rank: 1}, {Title: "letters", Right: true}, {Title: "in Kafka", Right: true},
		{Title: "entered", Right: true, Rank: 4}, {Title: "archived", Right: true, Rank: 5}, {Title: "lost", Right: true, Rank: 2}, {Title: "since", Rank: 3}, {Title: "ordered by", Rank: 6},
	}
	now := u.Now()
	var open int64
	var rows [][]term.Cell
	for i := range ranges {
		r := &ranges[i]
		open += r.Open()
		rows = append(rows, []term.Cell{
			{Full: fmt.Sprint(r.ID)}, {Full: string(r.State)}, {Full: term.Brief(clientName(r.Client))}, {Full: term.Brief(fmt.Sprintf("%s/%d/%d..%d", r.Topic, r.Partition, r.First, r.Last)), Brief: fmt.Sprintf("%d/%d..%d", r.Partition, r.First, r.Last)},
			{Full: term.Grouped(r.Letters)}, {Full: term.Grouped(r.Open())}, {Full: term.Grouped(r.Entered)}, {Full: term.Grouped(r.Archived)}, {Full: term.Grouped(r.Lost)},
			{Full: term.Moment(r.LeftAt, now), Brief: term.Ago(r.LeftAt, now)}, {Full: term.Brief(r.OrderedBy)},
		})
	}
	u.Table(columns, rows, "")
	more = more || after > 0
	u.Tell("%s, %s in Kafka and not in the ledger\n", counted(int64(len(ranges)), "range", more), counted(open, "dead letter", more))
	u.NextPage(len(ranges), next)
	return nil
}

func clientName(client string) string {
	if client == "" {
		return "(no proven client)"
	}
	return client
}

// ordered has a desk enter ranges.
func (u *surplus) ordered(ctx context.Context, by ledger.Actor) error {
	type outcome struct {
		Range  int64  `json:"range"`
		Result string `json:"result"` // ordered or refused
	}
	var told []outcome
	refused := 0
	for _, n := range slices.Compact(slices.Sorted(slices.Values(u.enter))) {
		id := int64(n)
		o := outcome{id, "ordered"}
		switch err := u.Sys.Book.OrderSurplus(ctx, id, by); {
		case errors.Is(err, ledger.ErrNotFound):
			o.Result = "refused"
			refused++
		case err != nil:
			return fmt.Errorf("range %d: %w", id, err)
		}
		told = append(told, o)
		if !u.AsJSON && o.Result == "refused" {
			u.Tell("range %d: refused: it is not open, or was ordered before; see docket dlq surplus --all\n", id)
		} else if !u.AsJSON {
			u.Say("range %d: a running desk enters it within seconds\n", id)
		}
	}
	if u.AsJSON {
		u.Print(told)
	}
	if refused > 0 {
		return frame.Exit(cli.Failed)
	}
	return nil
}

// leftOut lists the clients with dead letters in Kafka alone; empty: there are none. more says that there may be more ranges.
func leftOut(ranges []ledger.Surplus, more bool) string {
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
	if len(clients) == 0 && !more {
		return ""
	}
	slices.Sort(clients)
	const named = 3
	var parts []string
	for i, client := range clients {
		if i == named {
			parts = append(parts, counted(int64(len(clients)-named), "more client", more))
			break
		}
		o := by[client]
		if o.ranges > 1 {
			o.place = counted(o.ranges, "range", more)
		}
		parts = append(parts, fmt.Sprintf("%s of %s (in Kafka: %s)", counted(o.letters, "dead letter", more), term.Brief(clientName(client)), term.Brief(o.place)))
	}
	if more {
		parts = append(parts, "more in other ranges")
	}
	return "not entered, as their clients brought too many: " + strings.Join(parts, ", ") + "; see docket dlq surplus"
}
