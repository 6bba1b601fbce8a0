package worker

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
)

// RuleBook is the part of the ledger that rules need. Any [ledger.Book] is one.
type RuleBook interface {
	Rules(ctx context.Context, fingerprint string, all bool, n int) ([]ledger.Rule, error)
	ActRule(ctx context.Context, id int64, n int, lease time.Duration) (ledger.Acting, error)
	Duty(ctx context.Context, name, holder string, every, lease time.Duration) (mine bool, err error)
}

// RulesConfig says how rules are applied.
type RulesConfig struct {
	Holder      string        // a name that no other desk has
	Interval    time.Duration // between two looks for rules; default 10 s
	LetterLease time.Duration // how long a retry may go without news, as in the whole desk; default 15 min
	Portion     int           // limit of letters in one transaction; default 100
	Portions    int           // limit of transactions of one rule in one look; default 20
	Observer    Observer      // nil: none
}

// Rules applies the rules of groups. Of several desks one does so at a time. The ledger keeps what a rule did, so that
// another desk continues wherever the last one ended.
type Rules struct {
	cfg   RulesConfig
	book  RuleBook
	table Prober
	log   zerolog.Logger
}

// NewRules makes the worker for rules.
func NewRules(cfg RulesConfig, book RuleBook, table Prober, log zerolog.Logger) *Rules {
	defaultTo(&cfg.Interval, 10*time.Second)
	defaultTo(&cfg.LetterLease, 15*time.Minute)
	defaultTo(&cfg.Portion, 100)
	defaultTo(&cfg.Portions, 20)
	cfg.Observer = observed(cfg.Observer)
	return &Rules{cfg: cfg, book: book, table: table, log: log}
}

// rulesDuty is the name of the duty. It is taken only while there are rules.
const rulesDuty = "rules"

// mostRules limits the rules that are applied.
const mostRules = 1000

// Run applies rules until ctx ends, and returns nil then.
func (w *Rules) Run(ctx context.Context) error {
	t := trouble{log: w.log, work: "applying rules"}
	return t.repeat(ctx, w.cfg.Interval, func(ctx context.Context) (more bool, err error) { return false, w.round(ctx) })
}

// round applies each rule once.
func (w *Rules) round(ctx context.Context) error {
	rules, err := w.book.Rules(ctx, "", false, mostRules)
	if err != nil {
		return err
	}
	counts := map[ledger.RuleState]int64{}
	acting := rules[:0:0]
	for _, r := range rules {
		counts[r.State]++
		if r.State == ledger.RuleActive && r.Act != ledger.Snoozed {
			acting = append(acting, r)
		}
	}
	w.cfg.Observer.Rules(counts)
	if len(acting) == 0 {
		return nil
	}
	mine, err := w.book.Duty(ctx, rulesDuty, w.cfg.Holder, 0, w.lease())
	if err != nil || !mine {
		return err
	}
	// This round ends before the lease does.
	ctx, cancel := context.WithTimeout(ctx, w.lease()/2)
	defer cancel()
	var last error
	for _, r := range acting {
		if err := w.apply(ctx, r); err != nil {
			last = err
		}
	}
	return last
}

func (w *Rules) lease() time.Duration { return 6 * w.cfg.Interval }

// apply takes turns of one rule until it has nothing more to do now.
func (w *Rules) apply(ctx context.Context, r ledger.Rule) error {
	moved := 0
	defer func() {
		if moved > 0 {
			w.log.Info().Int64("rule", r.ID).Str("act", string(r.Act)).Str("operator", r.By).Int("letters", moved).Msg("rule applied")
		}
	}()
	for range w.cfg.Portions {
		if r.Act == ledger.Retried {
			// An outage spends no attempts.
			if err := w.table.Probe(ctx, time.Now()); err != nil {
				return &errProbe{err}
			}
		}
		a, err := w.book.ActRule(ctx, r.ID, w.cfg.Portion, w.cfg.LetterLease)
		if err != nil {
			return err
		}
		if a.Stopped != "" {
			w.cfg.Observer.RuleStopped()
			w.log.Warn().Int64("rule", r.ID).Str("fingerprint", r.Fingerprint).Str("reason", a.Stopped).Str("hint", "docket dlq rules list --all shows it; add another once the cause is known").Msg("rule stopped itself")
		}
		moved += a.Moved
		w.cfg.Observer.RuleActed(r.Act, a.Moved)
		if a.Moved < w.cfg.Portion || a.Stopped != "" {
			return nil
		}
	}
	return nil
}
