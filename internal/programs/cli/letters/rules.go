package letters

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// rules is docket dlq rules.
type rules struct {
	frame.Call
	frame.Signature
	all                 bool
	group, topic, until string
	after               time.Duration
	rate                float64
	most                int64
	failures            int
}

// mostListedRules is how many rules are listed.
const mostListedRules = 1000

var ruleActs = map[ledger.Act]string{ledger.Snoozed: "snooze", ledger.Retried: "retry", ledger.Closed: "resolve"}

// ListRules makes the command that lists rules.
func ListRules(call frame.Call) *cobra.Command {
	v := &rules{Call: call}
	c := &cobra.Command{
		Use: "list [flags]", Short: "List the rules of groups, the newest first", DisableFlagsInUseLine: true,
		Long:    "List the rules of groups, the newest first. STOPPED ones stopped themselves: the column ended says why.",
		Example: "  docket dlq rules list\n  docket dlq rules list --all --group 8d0e3f21", Args: frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&v.all, "all", false, "also list those that ended")
	c.Flags().StringVar(&v.group, "group", "", "only of this group: its `FINGERPRINT`, or the first 4 or more characters")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "listed, also if there is none", "")
	c.RunE = v.Run(func([]string) (frame.Work, error) { return v.list, nil })
	return c
}

func (v *rules) list(ctx context.Context) error {
	fingerprint := ""
	if v.group != "" {
		var err error
		if fingerprint, err = WholeFingerprint(ctx, v.Call, v.group); err != nil {
			return err
		}
	}
	list, err := v.Sys.Book.Rules(ctx, fingerprint, v.all, mostListedRules)
	if err != nil {
		return err // it names the act
	}
	if len(list) == 0 && !v.AsJSON {
		v.Tell("no rule holds\n")
		return nil
	}
	return v.show(list)
}

type jsonRule struct {
	ID           int64      `json:"id"`
	State        string     `json:"state"`
	Act          string     `json:"act"`
	Fingerprint  string     `json:"fingerprint"`
	Topic        string     `json:"topic,omitempty"`
	AfterSeconds float64    `json:"after_seconds"`
	Rate         float64    `json:"rate"`
	Most         int64      `json:"most"`
	Failures     int        `json:"failures"`
	By           string     `json:"by"`
	Why          string     `json:"why"`
	CreatedAt    *time.Time `json:"created_at"`
	Until        *time.Time `json:"until"`
	ApprovedBy   string     `json:"approved_by,omitempty"`
	Acted        int64      `json:"acted"`
	ActedAt      *time.Time `json:"acted_at,omitempty"`
	EndedBy      string     `json:"ended_by,omitempty"`
	EndedWhy     string     `json:"ended_why,omitempty"`
	EndedAt      *time.Time `json:"ended_at,omitempty"`
}

func ruleOf(r ledger.Rule) jsonRule {
	return jsonRule{
		ID: r.ID, State: string(r.State), Act: ruleActs[r.Act], Fingerprint: r.Fingerprint, Topic: r.Topic, AfterSeconds: r.After.Seconds(), Rate: r.Rate, Most: r.Most, Failures: r.Failures,
		By: r.By, Why: r.Why, CreatedAt: frame.UTC(r.CreatedAt), Until: frame.UTC(r.EndsAt), ApprovedBy: r.Approved.By, Acted: r.Acted, ActedAt: frame.UTC(r.ActedAt),
		EndedBy: r.Ended.By, EndedWhy: r.Ended.Why, EndedAt: frame.UTC(r.Ended.At),
	}
}

// show prints rules.
func (v *rules) show(list []ledger.Rule) error {
	if v.AsJSON {
		v.Print(frame.ListOf(list, "", ruleOf))
		return nil
	}
	now := v.Now()
	var rows [][]term.Cell
	for _, r := range list {
		rows = append(rows, []term.Cell{
			{Full: fmt.Sprint(r.ID)}, {Full: string(r.State)}, {Full: ruleActs[r.Act]}, {Full: term.Brief(r.Fingerprint), Brief: term.Cut(r.Fingerprint, 8)}, {Full: term.Brief(r.Topic)},
			{Full: r.After.String()}, {Full: fmt.Sprintf("%d of %d", r.Acted, r.Most)}, {Full: term.Brief(r.By)}, {Full: term.Stamp(r.EndsAt)}, {Full: term.Brief(r.Why)},
			{Full: term.Moment(r.CreatedAt, now), Brief: term.Ago(r.CreatedAt, now)}, {Full: term.Brief(strings.TrimPrefix(r.Ended.By+": "+r.Ended.Why, ": "))},
		})
	}
	v.Table([]term.Column{
		{Title: "rule", Right: true}, {Title: "state", Paint: v.PaintState}, {Title: "act"}, {Title: "fingerprint"}, {Title: "topic", Rank: 6, Least: 8}, {Title: "after", Rank: 5}, {Title: "moved", Rank: 2},
		{Title: "by", Rank: 3, Least: 8}, {Title: "until", Rank: 1}, {Title: "reason", Rank: 4, Least: 12}, {Title: "made", Rank: 8}, {Title: "ended", Rank: 7, Least: 12},
	}, rows, "")
	for _, r := range list {
		if r.State == ledger.RuleProposed {
			v.Tell("rule %d waits for a second person: docket dlq rules approve %d\n", r.ID, r.ID)
		}
	}
	return nil
}

// AddRule makes the command that adds a rule.
func AddRule(call frame.Call) *cobra.Command {
	v := &rules{Call: call}
	c := &cobra.Command{
		Use: "add {snooze | retry | resolve} --group FINGERPRINT --until TIME [flags]", Short: "Add a rule for a group: snooze, retry or resolve its dead letters", DisableFlagsInUseLine: true,
		Long: "Add a rule for a group. A running desk applies it.\n\n" +
			"  snooze   hides the group from the open ones; see `docket dlq snooze`\n" +
			"  retry    retries PENDING dead letters once for each failure\n" +
			"  resolve  closes PENDING and FAILED ones once, with the reason as their note\n\n" +
			"A rule stops itself after --most dead letters, and after --failures failed retries in a row. Of a group and\n" +
			"topic one rule decides. A snooze wins over rules, a rule of a topic over one of all topics, and a rule\n" +
			"over the automatic retry of DOCKET_DESK_RETRY_KINDS. With DOCKET_DESK_FOUR_EYES a rule that retries or\n" +
			"resolves waits for a second person.",
		Example:   "  docket dlq rules add retry --group 8d0e3f21 --after 10m --rate 5 --most 500 --until 7d \\\n    --operator mara --reason 'the index is rebuilt at night'\n  docket dlq rules add resolve --group 8d0e3f21 --until 30d --operator mara --reason tests",
		ValidArgs: []string{"snooze", "retry", "resolve"},
	}
	flags := c.Flags()
	flags.StringVar(&v.group, "group", "", "the group: its `FINGERPRINT`, or the first 4 or more characters (required)")
	flags.StringVar(&v.topic, "topic", "", "only dead letters of this original `TOPIC`")
	flags.StringVar(&v.until, "until", "", frame.AheadText+" (required)")
	flags.DurationVar(&v.after, "after", 0, "wait for this `DURATION` since a dead letter last changed")
	flags.Float64Var(&v.rate, "rate", 0, "at most `N` per second (default: no limit)")
	flags.Int64Var(&v.most, "most", ledger.DefaultActs, "at most `N` dead letters in all")
	flags.IntVar(&v.failures, "failures", ledger.DefaultFailures, "stop after `N` failed retries in a row")
	v.Signature.Declare(flags, frame.ReasonText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "the rule holds, or waits for a second person", "such a rule holds already, or the command failed")
	c.RunE = v.Run(v.check)
	return c
}

func (v *rules) check(args []string) (frame.Work, error) {
	r := ledger.Rule{Topic: v.topic, After: v.after, Rate: v.rate, Most: v.most, Failures: v.failures}
	for act, name := range ruleActs {
		if len(args) == 1 && args[0] == name {
			r.Act = act
		}
	}
	switch {
	case r.Act == "":
		return nil, frame.Misuse("say what the rule does: snooze, retry or resolve")
	case v.group == "":
		return nil, frame.Misuse("no group: give --group FINGERPRINT, as `docket dlq groups` prints it")
	case v.until == "":
		return nil, frame.Misuse("say until when the rule holds: --until TIME")
	}
	var err error
	if r.EndsAt, err = frame.Ahead("--until", v.until, v.Now()); err != nil {
		return nil, err
	}
	by, err := v.Actor(v.Signature, "")
	return func(ctx context.Context) error {
		if r.Fingerprint, err = WholeFingerprint(ctx, v.Call, v.group); err != nil {
			return err
		}
		made, err := v.Sys.Book.AddRule(ctx, r, by)
		if err != nil {
			return frame.Unchanged(err)
		}
		return v.show([]ledger.Rule{made})
	}, err
}

// ApproveRule makes the command that approves a rule.
func ApproveRule(call frame.Call) *cobra.Command {
	v := &rules{Call: call}
	return v.one(&cobra.Command{
		Use: "approve RULE [flags]", Short: "Approve a rule that somebody else added", DisableFlagsInUseLine: true,
		Long:    "Approve a rule that somebody else added. The database refuses the name and the login that added it.",
		Example: "  docket dlq rules approve 7 --operator oleg --reason 'agreed'",
	}, "the rule holds", func(ctx context.Context, id int64, by ledger.Actor) (ledger.Rule, error) {
		return v.Sys.Book.ApproveRule(ctx, id, by)
	})
}

// RemoveRule makes the command that ends a rule.
func RemoveRule(call frame.Call) *cobra.Command {
	v := &rules{Call: call}
	return v.one(&cobra.Command{
		Use: "remove RULE [flags]", Short: "End a rule; what it did stays", DisableFlagsInUseLine: true,
		Example: "  docket dlq rules remove 7 --operator mara --reason 'the cause is fixed'",
	}, "the rule has ended, or had ended before", func(ctx context.Context, id int64, by ledger.Actor) (ledger.Rule, error) {
		return v.Sys.Book.RemoveRule(ctx, id, by)
	})
}

// one finishes a command on one rule.
func (v *rules) one(c *cobra.Command, done string, do func(context.Context, int64, ledger.Actor) (ledger.Rule, error)) *cobra.Command {
	v.Signature.Declare(c.Flags(), frame.ReasonText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, done, "no such rule, or the command failed")
	c.RunE = v.Run(func(args []string) (frame.Work, error) {
		if len(args) != 1 {
			return nil, frame.Misuse("give one number, as `docket dlq rules list` prints it")
		}
		id, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || id < 1 {
			return nil, frame.Misuse("%s is not the number of a rule", term.Quoted(args[0]))
		}
		by, err := v.Actor(v.Signature, "")
		return func(ctx context.Context) error {
			r, err := do(ctx, id, by)
			if err != nil {
				return fmt.Errorf("rule %d: %w", id, err)
			}
			return v.show([]ledger.Rule{r})
		}, err
	})
	return c
}
