package letters

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/pick"
	"docket/internal/programs/cli/term"
)

// mover is the part that docket dlq retry and docket dlq resolve share: they choose dead letters by id or by filter, and move them.
type mover struct {
	frame.Call
	frame.Signature
	choose pick.Flags
	all    bool
	rate   float64
	limit  int64
	Waiting
	yes bool
}

// Waiting are the flags of commands that wait for results.
type Waiting struct{ wait, detach bool }

// Declare adds --wait and --detach.
func (f *Waiting) Declare(c *cobra.Command) {
	c.Flags().BoolVar(&f.wait, "wait", false, waitText)
	c.Flags().BoolVar(&f.detach, "detach", false, "do not wait for the result")
}

// waitText explains --wait.
const waitText = "wait for the result, even while no desk is running (default: wait only while one is)"

func (m *mover) declare(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&m.Operator, "operator", "", frame.OperatorText)
	m.choose.Declare(m.Call, c)
	flags.Lookup("state").Usage = "only this `STATE`, PENDING or FAILED (default: both); can be repeated"
	flags.Int64Var(&m.limit, "limit", 0, "with filter flags: at most `N` dead letters (default: all that match now)")
	m.Waiting.Declare(c)
	flags.BoolVar(&m.yes, "yes", false, "with filter flags: do not ask for confirmation; without a terminal, required for more than 100")
	flags.BoolVar(&m.all, "all", false, "select all, without other filter flags")
	frame.MarkFilters(flags, []string{"all"})
	c.MarkFlagsMutuallyExclusive("wait", "detach")
}

// bulk says whether dead letters are chosen by a filter, and refuses flags that contradict each other.
func (m *mover) bulk(args []string) (bool, error) {
	given := m.choose.Given()
	switch {
	case len(args) > 0 && (given || m.all):
		return false, frame.Misuse("ids and filter flags contradict each other; give one of them")
	case len(args) > 0 && (m.limit != 0 || m.rate != 0):
		return false, frame.Misuse("--rate and --limit need filter flags, not ids")
	case given && m.all:
		return false, frame.Misuse("--all and filter flags contradict each other; give one of them")
	case len(args) == 0 && !given && !m.all:
		return false, frame.Misuse("nothing is selected: give ids, filter flags like --fingerprint or --code, or --all; `docket dlq groups` shows the groups")
	}
	if err := m.bounded(); err != nil {
		return false, err
	}
	return len(args) == 0, frame.LongEnough(args...)
}

// bounded refuses bounds that are none. A script that counted none must not move all.
func (m *mover) bounded() error {
	switch {
	case m.limit < 0 || m.limit == 0 && m.choose.Flags.Changed("limit"):
		return frame.Misuse("--limit must be 1 or more")
	case m.rate < 0 || math.IsNaN(m.rate):
		return frame.Misuse("--rate must be 0 or more")
	}
	return nil
}

// decide retries or resolves the dead letters that were named, prints each result, and follows retries to their end.
func (m *mover) decide(ctx context.Context, args []string, by ledger.Actor, retry bool) error {
	ids, fates, err := m.ids(ctx, args)
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		var outcomes []ledger.Outcome
		if retry {
			outcomes, err = m.Sys.Book.Retry(ctx, ids, m.Settings.DeskLease, by)
		} else {
			outcomes, err = m.Sys.Book.Resolve(ctx, ids, by)
		}
		if err != nil {
			return frame.Unchanged(err)
		}
		for _, o := range outcomes {
			fates = append(fates, moved(o, retry))
		}
	}
	if retry {
		return Results{Call: m.Call}.Follow(ctx, fates, m.Waiting)
	}
	return Results{Call: m.Call}.Show(fates)
}

// ids finds the whole ids, each once. An id that is not in the ledger has its result already.
func (m *mover) ids(ctx context.Context, args []string) (ids []string, fates []Fate, err error) {
	seen := map[string]bool{}
	for _, arg := range args {
		id, err := m.Whole(ctx, arg)
		switch {
		case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrAmbiguous):
			fates = append(fates, Fate{ID: term.Brief(arg), Result: "refused", Detail: notThere(err), Ended: true})
		case err != nil:
			return nil, nil, err
		case !seen[id]:
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, fates, nil
}

func notThere(err error) string {
	var ambiguous *ledger.AmbiguousError
	if errors.As(err, &ambiguous) && len(ambiguous.IDs) > 0 {
		return "more than one id starts with it: " + strings.Join(ambiguous.IDs, ", ")
	}
	if errors.Is(err, ledger.ErrAmbiguous) {
		return ledger.ErrAmbiguous.Error()
	}
	return ledger.ErrNotFound.Error()
}
