package letters

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// care is docket dlq assign, docket dlq snooze or docket dlq reopen: they name dead letters by id, or one group.
type care struct {
	frame.Call
	frame.Signature
	group, until string
	off          bool
}

// groupText explains --group.
const groupText = "a whole group in place of ids: its `FINGERPRINT`, or the first 4 or more characters"

// Assign makes the command that says who looks after dead letters.
func Assign(call frame.Call) *cobra.Command {
	a := &care{Call: call}
	c := &cobra.Command{
		Use: "assign NAME {ID... | --group FINGERPRINT} [flags]", Short: "Say who looks after dead letters, or after a group", DisableFlagsInUseLine: true,
		Long:    "Say who looks after dead letters, or after a group.\n\nA dash in place of the name ends the assignment.",
		Example: "  docket dlq assign mara 3f9a0c1e77b2 --operator oleg --reason 'her policy'\n  docket dlq assign mara --group 8d0e3f21 --operator oleg --reason hers\n  docket dlq list --assigned mara",
	}
	a.declare(c)
	c.Flags().StringVar(&a.group, "group", "", groupText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "all are assigned", "at least one was not assigned, or the command failed")
	c.RunE = a.Run(func(args []string) (frame.Work, error) {
		if len(args) == 0 || len(args) == 1 == (a.group == "") {
			return nil, frame.Misuse("give a name, and either ids or --group")
		}
		by, err := a.Actor(a.Signature, "")
		if err != nil {
			return nil, err
		}
		to := strings.TrimSpace(args[0])
		if to == ledger.Nobody {
			to = ""
		}
		if len(to) > ledger.LongestName || to != term.Line(to) {
			return nil, frame.Misuse("%s is not a name of at most %d bytes", term.Quoted(args[0]), ledger.LongestName)
		}
		return func(ctx context.Context) error { return a.assign(ctx, args[1:], to, by) }, frame.LongEnough(args[1:]...)
	})
	return c
}

func (a *care) declare(c *cobra.Command) {
	a.Signature.Declare(c.Flags(), frame.ReasonText)
	c.ValidArgsFunction = CompleteIDs(a.Call)
}

func (a *care) assign(ctx context.Context, args []string, to string, by ledger.Actor) error {
	if a.group != "" {
		fingerprint, err := WholeFingerprint(ctx, a.Call, a.group)
		if err != nil {
			return err
		}
		if err := a.Sys.Book.AssignGroup(ctx, fingerprint, to, by); err != nil {
			return frame.Unchanged(err)
		}
		a.Tell("group %s is assigned to %s\n", fingerprint, orNobody(to))
		return nil
	}
	return a.each(ctx, args, "assigned", func(id string) ([]ledger.Outcome, error) {
		err := a.Sys.Book.Assign(ctx, id, to, by)
		return []ledger.Outcome{{ID: id}}, err
	})
}

func orNobody(name string) string {
	if name == "" {
		return "nobody"
	}
	return term.Brief(name)
}

// each does something with each dead letter, and prints the results.
func (a *care) each(ctx context.Context, args []string, result string, do func(id string) ([]ledger.Outcome, error)) error {
	m := mover{Call: a.Call}
	ids, fates, err := m.ids(ctx, args)
	if err != nil {
		return err
	}
	for _, id := range ids {
		outcomes, err := do(id)
		if err != nil {
			if len(fates) > 0 {
				_ = Results{Call: a.Call}.Show(fates) // the error says more
			}
			return fmt.Errorf("dead letter %s: %w", term.Cut(id, frame.ShortID), err)
		}
		for _, o := range outcomes {
			f := moved(o, false)
			if o.Err == nil {
				e, err := a.Entry(ctx, id)
				if err != nil { // it was done, whatever the state is now
					e = ledger.Entry{}
				}
				f = Fate{ID: id, Result: result, State: string(e.State), Ended: true}
				if result == "snoozed" && !e.SnoozedUntil.IsZero() {
					f.Detail = "until " + term.Stamp(e.SnoozedUntil)
				}
			}
			fates = append(fates, f)
		}
	}
	return Results{Call: a.Call}.Show(fates)
}

// WholeFingerprint finds a group by the first characters of its fingerprint.
func WholeFingerprint(ctx context.Context, call frame.Call, begun string) (string, error) {
	begun = strings.ToLower(begun)
	if n := len(begun); n < ledger.MinFingerprint || n > ledger.FingerprintLength || strings.Trim(begun, "0123456789abcdef") != "" {
		return "", frame.Misuse("%s is not a fingerprint: give %d to %d hex digits, as `docket dlq groups` prints them", term.Quoted(begun), ledger.MinFingerprint, ledger.FingerprintLength)
	}
	groups, err := call.Sys.Book.Groups(ctx, ledger.Filter{Fingerprint: begun})
	if err != nil {
		return "", err
	}
	var fit []string
	for _, g := range groups {
		fit = append(fit, g.Fingerprint)
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return "", &ledger.AmbiguousError{IDs: fit}
	case len(begun) == ledger.FingerprintLength: // a group can have no dead letter left
		return begun, nil
	}
	return "", fmt.Errorf("group %s: %w", begun, ledger.ErrNotFound)
}

// Snooze makes the command that hides dead letters for a time.
func Snooze(call frame.Call) *cobra.Command {
	a := &care{Call: call}
	c := &cobra.Command{
		Use: "snooze {ID... | --group FINGERPRINT} --until TIME [flags]", Short: "Hide dead letters, or a group, from the open ones until a time", DisableFlagsInUseLine: true,
		Long: "Hide dead letters, or a group, from the open ones until a time.\n\n" +
			"They keep their state and stay in every total. `docket dlq list` and `docket dlq groups` leave them out and\n" +
			"say how many; --snoozed lists them. The desk's alert about open ones leaves them out, and neither the automatic retry nor a rule\n" +
			"moves them. They come back by themselves. A snooze of a group is a rule: see `docket dlq rules list`.",
		Example: "  docket dlq snooze 3f9a0c1e77b2 --until 2d --operator mara --reason 'waiting for ticket 812'\n  docket dlq snooze --group 8d0e3f21 --until 2026-12-01 --operator mara --reason later\n  docket dlq snooze 3f9a0c1e77b2 --off --operator mara --reason 'it is fixed'",
	}
	a.declare(c)
	c.Flags().StringVar(&a.group, "group", "", groupText)
	c.Flags().StringVar(&a.until, "until", "", frame.AheadText)
	c.Flags().BoolVar(&a.off, "off", false, "end the snooze now")
	c.MarkFlagsMutuallyExclusive("until", "off")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "all are snoozed", "at least one was not snoozed, or the command failed")
	c.RunE = a.Run(func(args []string) (frame.Work, error) {
		if len(args) == 0 == (a.group == "") {
			return nil, frame.Misuse("give either ids or --group")
		}
		until, err := a.ahead()
		if err != nil {
			return nil, err
		}
		by, err := a.Actor(a.Signature, "")
		if err == nil {
			err = frame.LongEnough(args...)
		}
		return func(ctx context.Context) error { return a.snooze(ctx, args, until, by) }, err
	})
	return c
}

func (a *care) ahead() (until time.Time, err error) {
	if a.off {
		return until, nil
	}
	if a.until == "" {
		return until, frame.Misuse("say until when: --until TIME, or --off")
	}
	return frame.Ahead("--until", a.until, a.Now())
}

func (a *care) snooze(ctx context.Context, args []string, until time.Time, by ledger.Actor) error {
	if a.group == "" {
		result := "snoozed"
		if until.IsZero() {
			result = "awake"
		}
		return a.each(ctx, args, result, func(id string) ([]ledger.Outcome, error) { return a.Sys.Book.Snooze(ctx, []string{id}, until, by) })
	}
	fingerprint, err := WholeFingerprint(ctx, a.Call, a.group)
	if err != nil {
		return err
	}
	v := rules{Call: a.Call}
	if !until.IsZero() {
		r, err := a.Sys.Book.AddRule(ctx, ledger.Rule{Fingerprint: fingerprint, Act: ledger.Snoozed, EndsAt: until}, by)
		if err != nil {
			return frame.Unchanged(err)
		}
		return v.show([]ledger.Rule{r})
	}
	held, err := a.Sys.Book.Rules(ctx, fingerprint, false, mostListedRules)
	if err != nil {
		return err
	}
	var ended []ledger.Rule
	for _, r := range held {
		if r.Act == ledger.Snoozed {
			gone, err := a.Sys.Book.RemoveRule(ctx, r.ID, by)
			if err != nil {
				return fmt.Errorf("rule %d: %w", r.ID, err)
			}
			ended = append(ended, gone)
		}
	}
	if len(ended) == 0 {
		a.Tell("group %s is not snoozed; nothing was changed\n", fingerprint)
		return nil
	}
	return v.show(ended)
}

// Reopen makes the command that takes a resolve back.
func Reopen(call frame.Call) *cobra.Command {
	a := &care{Call: call}
	c := &cobra.Command{
		Use: "reopen ID... [flags]", Short: "Reopen dead letters that were resolved by hand or by a rule", DisableFlagsInUseLine: true,
		Long: "Reopen dead letters that were resolved by hand or by a rule.\n\n" +
			"They are PENDING then, and can be retried. One that is stored has its row, and stays RESOLVED. One that an\n" +
			"archive has stays RESOLVED, too. The rule that resolved it does not resolve it again.",
		Example: "  docket dlq reopen 3f9a0c1e77b2 --operator mara --note 'the producer sent it again'",
	}
	c.Flags().StringVar(&a.Operator, "operator", "", frame.OperatorText)
	c.Flags().StringVar(&a.Reason, "note", "", "why it is not done: `TEXT` for the audit log (required)")
	c.ValidArgsFunction = CompleteIDs(call)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "all are PENDING", "at least one was not reopened, or the command failed")
	c.RunE = a.Run(func(args []string) (frame.Work, error) {
		switch {
		case len(args) == 0:
			return nil, frame.Misuse("give ids of dead letters")
		case a.Reason == "":
			return nil, frame.Misuse("no note: give --note 'TEXT'; it stays in the audit log")
		}
		by, err := a.Actor(a.Signature, "")
		if err == nil {
			err = frame.LongEnough(args...)
		}
		return func(ctx context.Context) error {
			return a.each(ctx, args, "reopened", func(id string) ([]ledger.Outcome, error) { return a.Sys.Book.Reopen(ctx, []string{id}, by) })
		}, err
	})
	return c
}
