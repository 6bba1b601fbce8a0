package deskcli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
)

// deciding are the flags of commands that decide about letters, by name or by filter.
type deciding struct {
	filter   filterFlags
	all      bool
	dryRun   bool
	rate     float64
	limit    int64
	wait     bool
	detach   bool
	yes      bool
	operator string
	reason   string
}

// waitText explains --wait.
const waitText = "wait for the result, even while no desk is running (default: wait only while one is)"

func (d *deciding) declare(s *session, c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&d.operator, "operator", "", operatorText)
	d.filter.declare(s, c)
	flags.Lookup("state").Usage = "only this `STATE`, PENDING or FAILED (default: both); can be repeated"
	flags.Int64Var(&d.limit, "limit", 0, "with filter flags: at most `N` dead letters (default: all)")
	flags.BoolVar(&d.wait, "wait", false, waitText)
	flags.BoolVar(&d.detach, "detach", false, "do not wait for the result")
	flags.BoolVar(&d.yes, "yes", false, "with filter flags: do not ask for confirmation; without a terminal, required for more than 100")
	flags.BoolVar(&d.all, "all", false, "select all, without other filter flags")
	markFilters(flags, []string{"all"})
	c.MarkFlagsMutuallyExclusive("wait", "detach")
}

// bulk says whether letters are chosen by a filter, and refuses what makes no sense.
func (d *deciding) bulk(args []string) (bool, error) {
	given := d.filter.given()
	switch {
	case len(args) > 0 && (given || d.all):
		return false, misuse("ids and filter flags contradict each other; give one of them")
	case len(args) > 0 && (d.limit != 0 || d.rate != 0):
		return false, misuse("--rate and --limit need filter flags, not ids")
	case given && d.all:
		return false, misuse("--all and filter flags contradict each other; give one of them")
	case len(args) == 0 && !given && !d.all:
		return false, misuse("nothing is selected: give ids, filter flags like --fingerprint or --code, or --all; `docket dlq groups` shows the groups")
	case d.limit < 0:
		return false, misuse("--limit must be 0 or more")
	case d.rate < 0:
		return false, misuse("--rate must be 0 or more")
	}
	return len(args) == 0, longEnough(args...)
}

func (s *session) retry() *cobra.Command {
	var d deciding
	c := &cobra.Command{
		Use: "retry {ID... | FILTER FLAGS} [flags]", Short: "Retry dead letters: publish them to their original topic again; --dry-run only tests", DisableFlagsInUseLine: true,
		Long: "Retry dead letters: publish them to their original topic again, where the consumer reads them.\n\n" +
			"Fix the cause first. Only PENDING and FAILED ones are retried. This command writes to the ledger; a\n" +
			"running desk publishes. With ids, they are sent at once and the results are shown. With filter flags, a\n" +
			"job sends one first, then more and more, and stops if the first ones fail in the same way. Ctrl-C does\n" +
			"not stop a job: `docket jobs stop` does.\n\n" +
			"--dry-run inserts each of them into the table, and rolls back.",
		Example: "  docket dlq retry 3f9a0c1e77b2 --operator mara\n" +
			"  docket dlq retry --code 23514 --path authz/allow --dry-run\n" +
			"  docket dlq retry --code 23514 --path authz/allow --rate 50 --operator mara --reason 'fixed'",
		ValidArgsFunction: s.completeIDs,
	}
	c.Flags().BoolVar(&d.dryRun, "dry-run", false, "test which would be stored now; change nothing; needs no operator and no reason")
	c.Flags().Float64Var(&d.rate, "rate", 0, "with filter flags: at most `N` per second (default: no limit)")
	c.Flags().StringVar(&d.reason, "reason", "", "why you do this: `TEXT` for the audit log (required with filter flags; with ids, default \"retried by hand\")")
	d.declare(s, c)
	usage(c, []string{"DOCKET_DATABASE_URL"},
		"all are stored; or none matches; with --detach, or while no desk runs: all will be sent; with --dry-run: all would be stored",
		"at least one was not stored, was refused, or would fail again; the job stopped; you answered no; or the command failed")
	c.RunE = s.run(func(args []string) (work, error) {
		bulk, err := d.bulk(args)
		switch {
		case err != nil:
			return nil, err
		case d.dryRun:
			return s.dryRun(&d, args)
		case bulk:
			return s.bulk(ledger.Retried, &d)
		}
		by, err := s.actor(&d, "retried by hand")
		return func(ctx context.Context) error {
			return s.decide(ctx, args, order{by: by, wait: d.wait, detach: d.detach, retry: true})
		}, err
	})
	return c
}

// actor is who decides and why. Without otherwise the reason is required.
func (s *session) actor(d *deciding, otherwise string) (ledger.Actor, error) {
	name, err := s.operator(d.operator)
	if err != nil {
		return ledger.Actor{}, err
	}
	why, err := oneLine("--reason", d.reason, maxReason)
	if err != nil {
		return ledger.Actor{}, err
	}
	if why == "" {
		why = otherwise
	}
	if why == "" {
		return ledger.Actor{}, misuse("no reason: give --reason 'TEXT'; it stays in the audit log")
	}
	return ledger.Actor{Name: name, Why: why}, nil
}

// order is what is done about letters that were named.
type order struct {
	by           ledger.Actor
	wait, detach bool
	retry        bool // else they are resolved
}

// decide does it, says what came of each, and follows retries to their end.
func (s *session) decide(ctx context.Context, args []string, d order) error {
	ids, fates, err := s.ids(ctx, args)
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		var outcomes []ledger.Outcome
		if d.retry {
			outcomes, err = s.sys.Book.Retry(ctx, ids, s.settings.DeskLease, d.by)
		} else {
			outcomes, err = s.sys.Book.Resolve(ctx, ids, d.by)
		}
		if err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
		for _, o := range outcomes {
			fates = append(fates, moved(o, d.retry))
		}
	}
	if d.retry {
		return s.follow(ctx, fates, d.wait, d.detach)
	}
	return s.tellFates(fates)
}

// ids finds the whole ids, each once. Those that are not there have their fate already.
func (s *session) ids(ctx context.Context, args []string) (ids []string, fates []fate, err error) {
	seen := map[string]bool{}
	for _, arg := range args {
		id, err := s.whole(ctx, arg)
		switch {
		case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrAmbiguous):
			fates = append(fates, fate{ID: plain(arg), Result: "refused", Detail: notThere(err), ended: true})
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
	if errors.Is(err, ledger.ErrAmbiguous) {
		return ledger.ErrAmbiguous.Error()
	}
	return ledger.ErrNotFound.Error()
}

// fate is what became of one letter that something was asked for.
type fate struct {
	ID     string `json:"id"`
	Result string `json:"result"` // retried, stored, dead, refused, lease_ended, edited or resolved
	State  string `json:"state,omitempty"`
	Detail string `json:"detail,omitempty"`
	ended  bool
}

func (f fate) good() bool {
	return slices.Contains([]string{"stored", "resolved", "retried", "edited"}, f.Result)
}

func moved(o ledger.Outcome, retry bool) fate {
	f := fate{ID: o.ID, Result: "resolved", State: string(ledger.Resolved), ended: true}
	if retry {
		f = fate{ID: o.ID, Result: "retried", State: string(ledger.Processing)}
	}
	var refused *ledger.RefusedError
	switch {
	case o.Err == nil:
		return f
	case errors.As(o.Err, &refused):
		return fate{
			ID: o.ID, Result: "refused", State: string(refused.State), ended: true,
			Detail: fmt.Sprintf("nothing was changed: %s since %s, by %s%s", refused.State, stamped(refused.At), plain(refused.By), meanwhile(refused.State)),
		}
	case errors.Is(o.Err, ledger.ErrNotFound), errors.Is(o.Err, ledger.ErrAmbiguous):
		return fate{ID: o.ID, Result: "refused", Detail: notThere(o.Err), ended: true}
	}
	return fate{ID: o.ID, Result: "refused", Detail: o.Err.Error(), ended: true}
}

// meanwhile says what can be done about a letter that cannot be moved.
func meanwhile(state ledger.State) string {
	if state == ledger.Processing {
		return "; wait for the result of that retry"
	}
	return "; nothing to do"
}

// tellFates says what became of each; the command has failed where anything has.
func (s *session) tellFates(fates []fate) error {
	bad := false
	for _, f := range fates {
		bad = bad || !f.good()
	}
	if s.asJSON {
		s.print(listOf(fates, "", func(f fate) fate { return f }))
	} else {
		var rows [][]cell
		for _, f := range fates {
			rows = append(rows, []cell{{full: s.id(f.ID)}, {full: f.Result}, {full: f.State}, {full: f.Detail}})
		}
		s.tableWith([]column{{title: "id"}, {title: "result"}, {title: "state", paint: s.paintState}, {title: "detail"}}, rows, "", len(rows) > 1)
	}
	if bad {
		return endError(cli.Failed)
	}
	return nil
}

// noDesk is what is said where nobody would do it.
const noDesk = "no desk is running: nothing is sent until one runs (docket desk)"

// deskWithin is how long ago a desk may have been heard of to count as running.
const deskWithin = 10 * time.Second

// running says whether a desk runs, and tells where none does.
func (s *session) running(ctx context.Context) (bool, error) {
	desks, err := s.sys.Book.Desks(ctx, deskWithin)
	if err != nil {
		return false, fmt.Errorf("look for a desk: %w", err)
	}
	if len(desks) == 0 {
		s.tell("%s\n", noDesk)
	}
	return len(desks) > 0, nil
}
