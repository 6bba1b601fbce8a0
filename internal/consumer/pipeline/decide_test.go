package pipeline

import (
	"maps"
	"slices"
	"testing"

	"docket/internal/errclass"
)

// contract has the sentences that the table of decisions must keep: section 5 of the contract, other sections on
// failures, and the table of error codes.
var contract = map[string]string{
	"5 transient": "the moment: the whole batch is tried again after the pauses, then parked",
	"5 data":      "the record: the batch is bisected, exactly the bad ones are dead-lettered",
	"5 systemic":  "the set-up: hold, nothing is parked, dead-lettered or committed until a probe succeeds",
	"5.1":         "before the first dead letter the table accepts a good row; a systemic code while it does is bisected and parked alone",
	"5.2":         "every error inside a bisect is classified afresh",
	"5.3":         "after so many whole batches in a row went to parking Docket holds instead",
	"5 (25006)":   "a node that became read-only is retried, then held, never parked",
	"6 attempts":  "an attempt counts only against a database that answers the probe",
	"11.2":        "dead-lettered is only what the table refuses alone, twice, while it accepts a good one",
	"11.3":        "a batch that is stopped is brought home or left uncommitted",
	"code 57014":  "twice on a table that is well: bisect, the record alone is too_slow",
	"code XX000":  "retry, then bisect while the probe passes, the record alone is internal",
	"code 23503":  "park once, then data",
}

func classified(t *testing.T, code string) errclass.Classification {
	t.Helper()
	v, ok := errclass.Lookup(code)
	if !ok {
		t.Fatalf("no classification of %s", code)
	}
	return v
}

// TestDecide_EachRule has facts for each rule of the table, and the act that the contract requires.
func TestDecide_EachRule(t *testing.T) {
	t.Parallel()
	missing := map[string]bool{}
	for _, name := range Rules() {
		missing[name] = true
	}
	for _, c := range []struct {
		rule string
		code string // of the failure
		with func(*facts)
		of   scope
		want act
		also string // the reason of a hold, or the code of a dead letter
	}{
		{"stopped: leave it", "08006", func(f *facts) { f.stopped, f.pauses = true, true }, batchFailed, leave, ""},
		{"stopped: leave it", "22001", func(f *facts) { f.stopped, f.vouched = true, true }, searchFailed, leave, ""},
		{"stopped: ask about nobody", "23514", func(f *facts) { f.stopped = true }, checkForeseen, goOn, ""},

		{"try once more, then hold", "25006", func(f *facts) { f.pauses = true }, batchFailed, retryOnce, ""},
		{"try again in halves", "53200", func(f *facts) { f.pauses = true }, batchFailed, retryInHalves, ""},
		{"try again", "08006", func(f *facts) { f.pauses = true }, batchFailed, retry, ""},
		{"try again", "08P01", func(f *facts) { f.pauses = true }, batchFailed, retry, ""},
		{"try again", "57014", func(f *facts) { f.pauses, f.leaving = true, true }, searchFailed, retry, ""},
		{"try again", "XX000", func(f *facts) { f.pauses = true }, searchFailed, retry, ""},

		{"locked: which days", lockTaken, nil, batchFailed, askDays, ""},
		{"locked days wait", lockTaken, func(f *facts) { f.days = yes }, batchFailed, postpone, ""},

		{"outage: may it be parked", lockTaken, func(f *facts) { f.days = no }, batchFailed, askBreaker, ""},
		{"outage: may it be parked", "08006", nil, batchFailed, askBreaker, ""},
		{"outage: may it be parked", "HV000", func(f *facts) { f.pauses = true }, batchFailed, askBreaker, ""},
		{"outage: may it be parked", "57P01", nil, searchFailed, askBreaker, ""},
		{"outage: may it be parked", "57014", func(f *facts) { f.probe, f.probed = probeAway, classified(t, "08006") }, batchFailed, askBreaker, ""},
		{"outage: park", "08006", func(f *facts) { f.breaker = yes }, batchFailed, parkAll, ""},
		{"outage: hold", "08006", func(f *facts) { f.breaker = no }, batchFailed, hold, ReasonDatabaseAway},
		{"outage: leave it", "08006", func(f *facts) { f.leaving = true }, batchFailed, leave, ""},

		{"the same refusal: search on", "22001", func(f *facts) { f.vouched = true }, searchFailed, isolate, ""},
		{"nobody failed alone", "22001", func(f *facts) { f.clean = true }, searchEnded, goOn, ""},
		{"probe before blame", "22001", nil, batchFailed, askProbe, ""},
		{"probe before blame", "42501", nil, batchFailed, askProbe, ""},
		{"probe before blame", "57014", nil, batchFailed, askProbe, ""},
		{"probe before blame", "08006", func(f *facts) { f.replay = true }, batchFailed, askProbe, ""},
		{"probe before blame", "22001", nil, searchFailed, askProbe, ""},
		{"probe before blame", "42501", func(f *facts) { f.vouched = true }, searchFailed, askProbe, ""},
		{"probe before blame", "22001", nil, searchEnded, askProbe, ""},
		{"probe before blame", "23514", nil, checkForeseen, askProbe, ""},
		{"another time may pass", "23514", func(f *facts) { f.probe = probeUntimely }, checkForeseen, goOn, ""},
		{"no good row on a read-only node: hold", "22001", func(f *facts) { f.probe, f.probed = probeRefused, classified(t, "25006") }, batchFailed, hold, ReasonReadOnly},
		{"no good row for now: hold", "22001", func(f *facts) { f.probe, f.probed = probeAway, classified(t, "08006") }, searchEnded, hold, ReasonDatabaseAway},
		{"no good row for now: hold", "57014", func(f *facts) { f.probe, f.probed = probeAway, classified(t, "08006") }, searchFailed, hold, ReasonDatabaseAway},
		{"no good row for now: hold", "57014", func(f *facts) { f.replay, f.probe, f.probed = true, probeAway, classified(t, "08006") }, batchFailed, hold, ReasonDatabaseAway},
		{"no good row: hold", "22001", func(f *facts) { f.probe, f.probed = probeRefused, classified(t, "22001") }, batchFailed, hold, ReasonDatabaseRefuses},
		{"no good row: hold", "57014", func(f *facts) { f.probe, f.probed = probeRefused, classified(t, "42501") }, batchFailed, hold, ReasonDatabaseRefuses},
		{"no good row: hold", "23514", func(f *facts) { f.probe, f.probed = probeRefused, classified(t, "42501") }, checkForeseen, hold, ReasonDatabaseRefuses},
		{"no good row: hold", "", func(f *facts) { f.probe, f.probed = probeRefused, classified(t, "42501") }, partitionHeld, hold, ReasonDatabaseRefuses},
		{"a good row: the hold ends", "", func(f *facts) { f.probe = probePassed }, partitionHeld, goOn, ""},

		{"a CHECK: whom does it refuse", "23514", func(f *facts) { f.probe, f.check = probePassed, true }, batchFailed, askConstraint, ""},
		{"a CHECK: write the others first", "23514", func(f *facts) { f.probe, f.check, f.foreseen = probePassed, true, yes }, batchFailed, goOn, ""},
		{"a good row: search", "23514", func(f *facts) { f.probe, f.check, f.foreseen = probePassed, true, no }, batchFailed, isolate, ""},
		{"a good row: search", "42501", func(f *facts) { f.probe = probePassed }, batchFailed, isolate, ""},
		{"a good row: search on", "42501", func(f *facts) { f.probe = probePassed }, searchFailed, isolate, ""},
		{"a good row after the search", "22001", func(f *facts) { f.probe = probePassed }, searchEnded, judgeEach, ""},
		{"not as foreseen: write them", "23514", func(f *facts) { f.probe, f.predicted = probePassed, no }, checkForeseen, goOn, ""},
		{"foreseen: refused alone, twice", "23514", func(f *facts) { f.probe, f.predicted, f.confirmed = probePassed, yes, true }, checkForeseen, judgeEach, ""},
		{"foreseen: ask about each", "23514", func(f *facts) { f.probe, f.predicted = probePassed, yes }, checkForeseen, askEach, ""},

		{"alone: a lock", lockTaken, nil, recordFailed, askOwnTime, ""},
		{"alone: its day is locked", lockTaken, func(f *facts) { f.ownTime = no }, recordFailed, postpone, ""},
		{"alone: a migration refuses it", "", func(f *facts) { f.failure.Class, f.failure.Rule = errclass.Systemic, errclass.Await }, recordFailed, postpone, ""},
		{"alone: too slow", "57014", nil, recordFailed, deadLetterIt, errclass.CodeTooSlow},
		{"alone: an internal error", "XX000", nil, recordFailed, deadLetterIt, errclass.CodeInternal},
		{"alone: its parent row may come", "23503", nil, recordFailed, park, ""},
		{"alone: refused", "23503", func(f *facts) { f.parked = true }, recordFailed, deadLetterIt, ""},
		{"alone: refused", "22001", nil, recordFailed, deadLetterIt, ""},
		{"alone: the moment or the set-up", lockTaken, func(f *facts) { f.ownTime = yes }, recordFailed, park, ""},
		{"alone: the moment or the set-up", "08006", nil, recordFailed, park, ""},
		{"alone: the moment or the set-up", "42501", nil, recordFailed, park, ""},
	} {
		f := facts{of: c.of}
		if c.code != "" {
			f.failure = classified(t, c.code)
		}
		if c.with != nil {
			c.with(&f)
		}
		if got := decide(f); got.name != c.rule || got.then != c.want || got.reason+got.code != c.also {
			t.Errorf("%s %+v:\n got %q, %v %s%s\nwant %q, %v %s", c.code, f, got.name, got.then, got.reason, got.code, c.rule, c.want, c.also)
		}
		delete(missing, c.rule)
	}
	for name := range missing {
		t.Errorf("no facts lead to %q here", name)
	}
}

// TestDecide_EachRuleQuotesTheContract checks that each rule names a sentence of the contract, and each sentence has
// a rule.
func TestDecide_EachRuleQuotesTheContract(t *testing.T) {
	t.Parallel()
	without, names := maps.Clone(contract), map[string]bool{}
	for _, r := range decisions {
		if contract[r.by] == "" {
			t.Errorf("%q keeps %q, which the contract does not say", r.name, r.by)
		}
		if names[r.name] {
			t.Errorf("two rules are called %q", r.name)
		}
		names[r.name] = true
		delete(without, r.by)
		if (r.reason != "") != (r.then == hold) || r.code != "" && r.then != deadLetterIt {
			t.Errorf("%q: %v with the reason %q and the code %q", r.name, r.then, r.reason, r.code)
		}
	}
	for by, says := range without {
		t.Errorf("no rule keeps %s: %s", by, says)
	}
}

// walk follows all paths of one failure's facts through the table: each question gets each of its answers.
type walk struct {
	t     *testing.T
	first facts
	taken map[string]bool
}

// mostActs is more acts than any failure needs before its outcome.
const mostActs = 12

func (w *walk) from(f facts, path []act) {
	r := decide(f)
	w.taken[r.name] = true
	path = append(slices.Clip(path), r.then)
	if len(path) > mostActs {
		w.t.Fatalf("%+v has no outcome: %v", w.first, path)
	}
	both := func(set func(*facts, answer)) {
		for _, a := range []answer{yes, no} {
			next := f
			set(&next, a)
			w.from(next, path)
		}
	}
	switch r.then {
	case askDays:
		both(func(f *facts, a answer) { f.days = a })
	case askBreaker:
		both(func(f *facts, a answer) { f.breaker = a })
	case askConstraint:
		both(func(f *facts, a answer) { f.foreseen = a })
	case askOwnTime:
		both(func(f *facts, a answer) { f.ownTime = a })
	case askEach:
		both(func(f *facts, a answer) { f.confirmed, f.predicted = f.predicted == yes, a })
		f.probe = probeUntimely
		w.from(f, path)
	case askProbe:
		for _, code := range []string{"", "08006", "25006", "42501", "22001", errclass.CodeCanceled} {
			next := f
			next.probe = probePassed
			if code != "" {
				next.probe, next.probed = probeRefused, classified(w.t, code)
				if ofMoment(next.probed) || code == errclass.CodeCanceled {
					next.probe = probeAway
				}
			}
			w.from(next, path)
		}
	case isolate:
		if f.of == batchFailed {
			w.from(facts{of: searchEnded, clean: true}, path)
			w.from(facts{of: searchEnded, failure: f.failure}, path)
		}
		w.outcome(f, path)
	case judgeEach:
		w.outcome(f, path)
		w.from(facts{of: recordFailed, failure: f.failure, replay: w.first.replay}, path)
		w.from(facts{of: recordFailed, failure: f.failure, replay: true, parked: true}, path)
	default:
		w.outcome(f, path)
	}
}

// outcome checks the rules that stand above the table in the contract, for every path.
func (w *walk) outcome(f facts, path []act) {
	last := path[len(path)-1]
	bad := ""
	systemic := w.first.failure.Class == errclass.Systemic && w.first.of == batchFailed
	switch {
	case w.first.stopped && w.first.of&writeFailed != 0 && (len(path) > 1 || last != leave):
		bad = "a batch that is stopped is left at once"
	case last == parkAll && (systemic || w.first.replay || f.breaker != yes):
		bad = "only an outage parks a batch, no replay, and the breaker admits it"
	case last == hold && f.probe == unprobed && f.breaker != no:
		bad = "only a probe or the breaker makes a hold"
	case (last == judgeEach || last == isolate) && f.probe != probePassed && !f.vouched:
		bad = "a record is blamed only while the table takes a good row"
	case last == deadLetterIt && f.failure.Class != errclass.Data && f.failure.Rule != errclass.RetryBisect:
		bad = "neither the moment nor the set-up makes a dead letter"
	case last == hold && slices.Contains(path, parkAll), last == leave && slices.Contains(path, judgeEach):
		bad = "a batch has one outcome"
	case last.retries() && !f.pauses:
		bad = "there are as many tries as pauses"
	}
	if bad != "" {
		w.t.Fatalf("%s: %+v, %v", bad, w.first, path)
	}
}

// TestDecide_EveryPathHasAnOutcome walks every path through the table, for each classification.
func TestDecide_EveryPathHasAnOutcome(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{}
	bools := []bool{false, true}
	for _, v := range append(errclass.Table(), errclass.Classification{Code: "no class"}) {
		for _, of := range []scope{batchFailed, searchFailed, checkForeseen, recordFailed} {
			for n := range 1 << 6 {
				on := func(bit int) bool { return bools[n>>bit&1] }
				f := facts{of: of, failure: v, stopped: on(0), leaving: on(1), replay: on(2), pauses: on(3), vouched: on(4) && of == searchFailed, check: on(5)}
				w := walk{t: t, first: f, taken: taken}
				w.from(f, nil)
			}
		}
	}
	for _, probed := range []facts{{probe: probePassed}, {probe: probeRefused}, {probe: probeAway}} {
		probed.of = partitionHeld
		taken[decide(probed).name] = true
	}
	for _, name := range Rules() {
		if !taken[name] {
			t.Errorf("no way leads to %q", name)
		}
	}
}
