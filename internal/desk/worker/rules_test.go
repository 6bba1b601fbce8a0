package worker

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
)

// ruleBook is the ledger for rules.
type ruleBook struct {
	rules  []ledger.Rule
	acting map[int64][]ledger.Acting // of the turns to come
	turns  map[int64]int
	duties int
	other  bool // another desk has the duty
	err    error
}

func (b *ruleBook) Rules(context.Context, string, bool, int) ([]ledger.Rule, error) {
	return b.rules, b.err
}

func (b *ruleBook) Duty(context.Context, string, string, time.Duration, time.Duration) (bool, error) {
	b.duties++
	return !b.other, nil
}

func (b *ruleBook) ActRule(_ context.Context, id int64, _ int, _ time.Duration) (a ledger.Acting, err error) {
	b.turns[id]++
	if of := b.acting[id]; len(of) > 0 {
		a, b.acting[id] = of[0], of[1:]
	}
	return a, nil
}

func newRuleBook(rules ...ledger.Rule) *ruleBook {
	return &ruleBook{rules: rules, acting: map[int64][]ledger.Acting{}, turns: map[int64]int{}}
}

func TestRules_OneRound(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	reg := prometheus.NewRegistry()
	metrics := NewMetrics(reg)
	b := newRuleBook(ledger.Rule{ID: 1, Act: ledger.Retried, State: ledger.RuleActive, Fingerprint: "f"}, ledger.Rule{ID: 2, Act: ledger.Closed, State: ledger.RuleActive},
		ledger.Rule{ID: 3, Act: ledger.Snoozed, State: ledger.RuleActive}, ledger.Rule{ID: 4, Act: ledger.Closed, State: ledger.RuleProposed})
	b.acting[1] = []ledger.Acting{{Moved: 10}, {Moved: 10}, {Moved: 3}, {Moved: 9}}
	b.acting[2] = []ledger.Acting{{Stopped: "enough"}}
	w := NewRules(RulesConfig{Holder: "one", Portion: 10, Observer: metrics}, b, probeFunc(func() error { return nil }), zerolog.New(&said))
	if err := w.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.turns[1] != 3 || b.turns[2] != 1 || b.turns[3]+b.turns[4] != 0 {
		t.Errorf("turns %v", b.turns)
	}
	if !strings.Contains(said.String(), "rule stopped itself") || !strings.Contains(said.String(), `"letters":23`) {
		t.Errorf("log: %s", &said)
	}
	const want = `
# HELP docket_desk_rule_letters_total Dead letters that rules moved, by act.
# TYPE docket_desk_rule_letters_total counter
docket_desk_rule_letters_total{act="closed"} 0
docket_desk_rule_letters_total{act="retried"} 23
# HELP docket_desk_rules Rules of groups of dead letters that hold or wait for a second person, by state.
# TYPE docket_desk_rules gauge
docket_desk_rules{state="ACTIVE"} 3
docket_desk_rules{state="PROPOSED"} 1
# HELP docket_desk_rules_stopped_total Rules that stopped themselves: their retries failed, or they moved as many letters as they may.
# TYPE docket_desk_rules_stopped_total counter
docket_desk_rules_stopped_total 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "docket_desk_rule_letters_total", "docket_desk_rules", "docket_desk_rules_stopped_total"); err != nil {
		t.Error(err)
	}
}

func TestRules_OnlyWhatIsDue(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	retry, closes := ledger.Rule{ID: 1, Act: ledger.Retried, State: ledger.RuleActive}, ledger.Rule{ID: 2, Act: ledger.Closed, State: ledger.RuleActive}
	for name, c := range map[string]struct {
		book         *ruleBook
		probe        error
		turns, duty  int
		wantProbeErr bool
	}{
		"no rules, so no duty":       {newRuleBook(), nil, 0, 0, false},
		"only a snooze":              {newRuleBook(ledger.Rule{ID: 3, Act: ledger.Snoozed, State: ledger.RuleActive}), nil, 0, 0, false},
		"another desk has the duty":  {&ruleBook{rules: []ledger.Rule{retry}, other: true, turns: map[int64]int{}}, nil, 0, 1, false},
		"the table is away":          {newRuleBook(retry, closes), away, 1, 1, true},
		"a rule that closes has one": {newRuleBook(closes), away, 1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := NewRules(RulesConfig{Holder: "one"}, c.book, probeFunc(func() error { return c.probe }), zerolog.Nop())
			err := w.round(t.Context())
			if errors.Is(err, away) != c.wantProbeErr || c.book.turns[1]+c.book.turns[2] != c.turns || c.book.duties != c.duty {
				t.Errorf("%v; turns %v, duties %d", err, c.book.turns, c.book.duties)
			}
		})
	}
}
