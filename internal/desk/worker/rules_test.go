package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
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
	order  []int64 // of all turns
	asked  []ledger.Turn
	takes  time.Duration // a turn
	fails  map[int64]error
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

func (b *ruleBook) ActRule(ctx context.Context, id int64, t ledger.Turn) (a ledger.Acting, err error) {
	b.turns[id]++
	b.order, b.asked = append(b.order, id), append(b.asked, t)
	if b.takes > 0 {
		select {
		case <-time.After(b.takes):
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
	if err := b.fails[id]; err != nil {
		return a, err
	}
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
	b.acting[1] = []ledger.Acting{{Moved: 10, More: true}, {Moved: 10, More: true}, {Moved: 3}, {Moved: 9}}
	b.acting[2] = []ledger.Acting{{Stopped: "enough"}}
	w := NewRules(RulesConfig{Holder: "one", Portion: 10, Observer: metrics}, b, probeFunc(func() error { return nil }), zerolog.New(&said))
	if more, err := w.round(t.Context()); err != nil || more {
		t.Fatal(more, err)
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
			_, err := w.round(t.Context())
			if errors.Is(err, away) != c.wantProbeErr || c.book.turns[1]+c.book.turns[2] != c.turns || c.book.duties != c.duty {
				t.Errorf("%v; turns %v, duties %d", err, c.book.turns, c.book.duties)
			}
		})
	}
}

// largeRule gives a rule more letters than it can move.
func (b *ruleBook) largeRule(id int64) {
	for range 1000 {
		b.acting[id] = append(b.acting[id], ledger.Acting{Moved: 10, More: true})
	}
}

func closing(ids ...int64) (all []ledger.Rule) {
	for _, id := range ids {
		all = append(all, ledger.Rule{ID: id, Act: ledger.Closed, State: ledger.RuleActive})
	}
	return all
}

// TestRules_TakeTurns: a rule for many letters has its turns between those of the others.
func TestRules_TakeTurns(t *testing.T) {
	t.Parallel()
	b := newRuleBook(closing(3, 2, 1)...) // as the ledger lists them
	b.largeRule(1)
	b.acting[3] = []ledger.Acting{{Moved: 10, More: true}, {Moved: 1}}
	w := NewRules(RulesConfig{Holder: "one", Portion: 10, Turns: 4}, b, probeFunc(func() error { return nil }), zerolog.Nop())
	more, err := w.round(t.Context())
	if err != nil || !more || fmt.Sprint(b.order) != "[1 2 3 1 3 1 1]" {
		t.Errorf("%v, more %v, %v", b.order, more, err)
	}
	b.order = nil
	if _, err := w.round(t.Context()); err != nil || fmt.Sprint(b.order) != "[2 3 1 1 1 1]" { // behind the last one
		t.Errorf("%v, %v", b.order, err)
	}
}

// TestRules_SlowOneDelaysNoOther: a round that its time ends is continued behind the rule that had the last turn.
func TestRules_SlowOneDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newRuleBook(closing(5, 4, 3, 2, 1)...)
		b.takes = 9 * time.Second // the limit of a round is 30 s
		w := NewRules(RulesConfig{Holder: "one"}, b, probeFunc(func() error { return nil }), zerolog.Nop())
		for range 3 {
			if _, err := w.round(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if got := fmt.Sprint(b.order); got != "[1 2 3 4 5 1 2 3 4 5 1 2]" {
			t.Errorf("turns %v", got)
		}
	})
}

// TestRules_OneThatFails: the others have their turns.
func TestRules_OneThatFails(t *testing.T) {
	t.Parallel()
	b := newRuleBook(closing(1, 2, 3)...)
	b.largeRule(1)
	b.largeRule(2)
	b.fails = map[int64]error{1: errors.New("a trigger refuses it")}
	w := NewRules(RulesConfig{Holder: "one", Turns: 3}, b, probeFunc(func() error { return nil }), zerolog.Nop())
	if _, err := w.round(t.Context()); err == nil || fmt.Sprint(b.order) != "[1 2 3 2 2]" {
		t.Errorf("%v, %v", b.order, err)
	}
}

// TestRules_LooksOn: a turn begins where the one before ended. A rule that only looks has no round of its own.
func TestRules_LooksOn(t *testing.T) {
	t.Parallel()
	b := newRuleBook(closing(1)...)
	place := ledger.Mark{FirstFailed: time.Unix(9, 0), LetterID: "a"}
	b.acting[1] = []ledger.Acting{{Next: place, More: true}, {Next: place, More: true}, {}}
	w := NewRules(RulesConfig{Holder: "one", Turns: 2, LetterLease: time.Minute}, b, probeFunc(func() error { return nil }), zerolog.Nop())
	for range 2 {
		if more, err := w.round(t.Context()); err != nil || more {
			t.Error(more, err)
		}
	}
	at := func(m ledger.Mark) ledger.Turn {
		return ledger.Turn{After: m, Look: 2000, Move: 100, Lease: time.Minute}
	}
	if diff := cmp.Diff([]ledger.Turn{at(ledger.Mark{}), at(place), at(place)}, b.asked); diff != "" {
		t.Error(diff)
	}
	b.rules = nil
	if _, err := w.round(t.Context()); err != nil || len(w.marks) != 0 {
		t.Errorf("places of rules that ended: %v, %v", w.marks, err)
	}
}
