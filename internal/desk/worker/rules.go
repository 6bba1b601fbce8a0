package worker

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
)

// RuleBook is the part of the ledger that rules need. Any [ledger.Book] is one.
type RuleBook interface {
	Rules(ctx context.Context, fingerprint string, all bool, n int) ([]ledger.Rule, error)
	ActRule(ctx context.Context, id int64, t ledger.Turn) (ledger.Acting, error)
	Duty(ctx context.Context, name, holder string, every, lease time.Duration) (mine bool, err error)
}

// RulesConfig says how rules are applied.
type RulesConfig struct {
	Holder      string        // a name that no other desk has
	Interval    time.Duration // between two looks for rules; default 10 s
	LetterLease time.Duration // how long a retry may go without news, as in the whole desk; default 15 min
	Portion     int           // limit of letters that one turn moves; default 100
	Window      int           // limit of letters that one turn looks at; default 2000
	Turns       int           // limit of turns of one rule between two looks; default 20
	Observer    Observer      // nil: none
}

// Rules applies the rules of groups. Of several desks one does so at a time. The ledger keeps what a rule did, so that
// another desk continues wherever the last one ended.
//
// Rules take turns, and each turn has a limit. So a rule for many letters delays others by no more than its turns. Where the
// time of a round is over first, the next round begins behind the rule that had the last turn.
type Rules struct {
	cfg   RulesConfig
	book  RuleBook
	table Prober
	log   zerolog.Logger
	marks map[int64]ledger.Mark // where a rule looks on
	last  int64                 // the rule that had the last turn
}

// NewRules makes the worker for rules.
func NewRules(cfg RulesConfig, book RuleBook, table Prober, log zerolog.Logger) *Rules {
	defaultTo(&cfg.Interval, 10*time.Second)
	defaultTo(&cfg.LetterLease, 15*time.Minute)
	defaultTo(&cfg.Portion, 100)
	defaultTo(&cfg.Window, 2000)
	defaultTo(&cfg.Turns, 20)
	cfg.Observer = observed(cfg.Observer)
	return &Rules{cfg: cfg, book: book, table: table, log: log, marks: map[int64]ledger.Mark{}}
}

// rulesDuty is the name of the duty. It is taken only while there are rules.
const rulesDuty = "rules"

// mostRules limits the rules that are applied, snoozes included.
const mostRules = 10_000

// Run applies rules until ctx ends, and returns nil then.
func (w *Rules) Run(ctx context.Context) error {
	t := trouble{log: w.log, work: "applying rules"}
	return t.repeat(ctx, w.cfg.Interval, w.round)
}

// round gives each rule its turns. more says that one of them has more to move.
func (w *Rules) round(ctx context.Context) (more bool, err error) {
	rules, err := w.book.Rules(ctx, "", false, mostRules)
	if err != nil {
		return false, err
	}
	counts := map[ledger.RuleState]int64{}
	var acting []*actingRule
	for _, r := range rules {
		counts[r.State]++
		if r.State == ledger.RuleActive && r.Act != ledger.Snoozed {
			acting = append(acting, &actingRule{Rule: r})
		}
	}
	w.cfg.Observer.Rules(counts)
	w.forget(acting)
	if len(acting) == 0 {
		return false, nil
	}
	mine, err := w.book.Duty(ctx, rulesDuty, w.cfg.Holder, 0, w.lease())
	if err != nil || !mine {
		return false, err
	}
	// This round ends before the lease does.
	ctx, cancel := context.WithTimeout(ctx, w.lease()/2)
	defer cancel()
	err = w.turns(ctx, w.inTurn(acting))
	for _, r := range acting {
		if r.moved > 0 {
			w.log.Info().Int64("rule", r.ID).Str("act", string(r.Act)).Str("operator", r.By).Int("letters", r.moved).Msg("rule applied")
		}
		more = more || r.more && r.moved > 0 // one that only looks has time
	}
	return more, err
}

func (w *Rules) lease() time.Duration { return 6 * w.cfg.Interval }

// actingRule is a rule in a round.
type actingRule struct {
	ledger.Rule
	moved int
	more  bool // it has more to do at once
}

// inTurn puts the rule first that follows the one with the last turn.
func (w *Rules) inTurn(all []*actingRule) []*actingRule {
	slices.SortFunc(all, func(a, b *actingRule) int { return cmp.Compare(a.ID, b.ID) })
	next, _ := slices.BinarySearchFunc(all, w.last+1, func(r *actingRule, id int64) int { return cmp.Compare(r.ID, id) })
	return slices.Concat(all[next:], all[:next])
}

// forget drops the places of rules that have ended.
func (w *Rules) forget(all []*actingRule) {
	maps.DeleteFunc(w.marks, func(id int64, _ ledger.Mark) bool {
		return !slices.ContainsFunc(all, func(r *actingRule) bool { return r.ID == id })
	})
}

// turns gives each rule one turn after another, until none has more to do, or the time is over. A rule that fails has no more turns, and
// the others have theirs.
func (w *Rules) turns(ctx context.Context, all []*actingRule) (last error) {
	for range w.cfg.Turns {
		away := false
		for _, r := range all {
			if ctx.Err() != nil {
				return last
			}
			if r.Act == ledger.Retried && away {
				r.more = false
				continue
			}
			w.last = r.ID
			if err := w.turn(ctx, r); err != nil {
				last, r.more = err, false
				away = away || errors.As(err, new(*errProbe))
			}
		}
		if all = slices.DeleteFunc(all, func(r *actingRule) bool { return !r.more }); len(all) == 0 {
			break
		}
	}
	return last
}

// turn is one turn of a rule. It takes no longer than the pause between two looks.
func (w *Rules) turn(ctx context.Context, r *actingRule) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Interval)
	defer cancel()
	if r.Act == ledger.Retried {
		// An outage spends no attempts.
		if err := w.table.Probe(ctx, time.Now()); err != nil {
			return &errProbe{err}
		}
	}
	a, err := w.book.ActRule(ctx, r.ID, ledger.Turn{After: w.marks[r.ID], Look: w.cfg.Window, Move: w.cfg.Portion, Lease: w.cfg.LetterLease})
	if err != nil {
		return err
	}
	if a.Stopped != "" {
		w.cfg.Observer.RuleStopped()
		w.log.Warn().Int64("rule", r.ID).Str("fingerprint", r.Fingerprint).Str("reason", a.Stopped).Str("hint", "docket dlq rules list --all shows it; add another once the cause is known").Msg("rule stopped itself")
	}
	w.marks[r.ID], r.more = a.Next, a.More
	r.moved += a.Moved
	w.cfg.Observer.RuleActed(r.Act, a.Moved)
	return nil
}
