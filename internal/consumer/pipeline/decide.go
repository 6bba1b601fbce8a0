package pipeline

import (
	"fmt"

	"docket/internal/errclass"
)

// The rules of the contract, section 5, and of section 6 for the replayer, are one table. Its input are the failure
// and the observations made since. The functions here are pure. Their callers write, observe, decide and act. An act
// that asks a question adds the answer to the facts, and the table decides again.

// scope is the subject of a decision.
type scope uint8

const (
	batchFailed     scope = 1 << iota // a write of the batch, or of a portion of it
	searchFailed                      // a write inside the search for bad records, or the search as a whole
	searchEnded                       // the search came to its end
	recordFailed                      // one record failed alone, twice, and the table takes a good row
	checkForeseen                     // records that a CHECK refuses, according to the table; the rest of the batch has its homes
	partitionHeld                     // a partition holds, and a probe was made
	writeFailed     = batchFailed | searchFailed
	recordsSuspects = searchEnded | checkForeseen
)

// answer is the answer to a question about the batch.
type answer uint8

const (
	unasked answer = iota
	yes
	no
)

func answerOf(ok bool) answer {
	if ok {
		return yes
	}
	return no
}

// probeAnswer is the outcome of a probe.
type probeAnswer uint8

const (
	unprobed      probeAnswer = iota
	probePassed               // the table takes a good row
	probeRefused              // it refuses it, and waiting alone does not help
	probeAway                 // the moment is to blame, or a cancellation that did not come from this process
	probeUntimely             // it was refused at one time, and another time may pass
)

// facts are the whole input of a decision.
type facts struct {
	of      scope
	failure errclass.Classification // of the failure
	probed  errclass.Classification // of the failure of the probe
	probe   probeAnswer

	stopped bool // the program stops: ctx ended
	leaving bool // the partition is being given up
	replay  bool // the program is the replayer
	parked  bool // the record was parked before
	pauses  bool // a pause for one more try is left
	vouched bool // a good row was taken since the first failure of this kind in the search
	check   bool // the failure names a CHECK that the table was not asked about
	clean   bool // no record failed alone

	days      answer // some days of the batch are locked, and others are not
	ownTime   answer // the table takes a good row at the time of the record
	breaker   answer // one more batch may be parked
	foreseen  answer // the table named records that the CHECK refuses
	predicted answer // records were refused alone, and as it was foreseen
	confirmed bool   // they were refused a second time
}

// act is the outcome of a decision.
type act uint8

const (
	goOn          act = iota + 1 // look again at the records without a home
	leave                        // uncommitted, for the next owner of the partition
	retry                        // after a pause, on a fresh connection
	retryInHalves                // as retry, in twice as many parts
	retryOnce                    // as retry, and not again
	askProbe                     // does the table take a good row
	askOwnTime                   // does it take one at the record's own time
	askDays                      // which days of the batch are locked
	askBreaker                   // may one more batch be parked
	askConstraint                // which records does the CHECK refuse
	askEach                      // is each foreseen record refused alone
	hold                         // until the table takes a good row
	parkAll                      // the whole batch
	park                         // one record, which spends an attempt
	postpone                     // park without spending an attempt
	isolate                      // search for the bad records
	judgeEach                    // each record that failed alone
	deadLetterIt                 // one record
)

var actNames = [...]string{
	goOn: "go on", leave: "leave", retry: "retry", retryInHalves: "retry in halves", retryOnce: "retry once",
	askProbe: "ask the probe", askOwnTime: "ask at its own time", askDays: "ask which days are locked",
	askBreaker: "ask the breaker", askConstraint: "ask the constraint", askEach: "ask about each", hold: "hold",
	parkAll: "park all", park: "park", postpone: "postpone", isolate: "isolate", judgeEach: "judge each",
	deadLetterIt: "dead-letter",
}

func (a act) String() string { return actNames[a] }

// retries reports whether the same rows are written again after a pause.
func (a act) retries() bool { return a == retry || a == retryInHalves || a == retryOnce }

// rule is one row of the table.
type rule struct {
	name   string
	by     string // the section of the contract, or the line of its table of error codes
	of     scope
	when   condition
	then   act
	reason string // of the hold
	code   string // of the dead letter; empty: that of its failure
}

// decisions is the table of all rules. The first rule that fits decides.
var decisions = []rule{
	// Once the program stops there is no further try, no home and no commit.
	{name: "stopped: leave it", by: "11.3", of: writeFailed, when: stopped, then: leave},
	{name: "stopped: ask about nobody", by: "11.3", of: checkForeseen, when: stopped, then: goOn},

	// A failure of the moment is retried until no pause is left.
	{name: "try once more, then hold", by: "5 (25006)", of: writeFailed, when: all(pauses, ruled(errclass.RetryHold)), then: retryOnce},
	{name: "try again in halves", by: "5 transient", of: writeFailed, when: all(pauses, ruled(errclass.RetryHalvesPark)), then: retryInHalves},
	{name: "try again", by: "5 transient", of: writeFailed, when: all(pauses, ruled(errclass.RetryPark, errclass.RetryParkOnce, errclass.RetryBisect, errclass.RetryProbeBisect)), then: retry},

	// A lock on some days of a table does not park the other days.
	{name: "locked: which days", by: "6 attempts", of: batchFailed, when: all(locked, staying, daysUnasked), then: askDays},
	{name: "locked days wait", by: "6 attempts", of: batchFailed, when: someDays, then: postpone},

	// An outage parks whole batches, but only so many in a row.
	{name: "outage: park", by: "5 transient", of: writeFailed, when: all(momentOnly, breakerAdmits), then: parkAll},
	{name: "outage: hold", by: "5.3", of: writeFailed, when: all(momentOnly, breakerRefuses), then: hold, reason: ReasonDatabaseAway},
	{name: "outage: leave it", by: "11.3", of: writeFailed, when: all(momentOnly, leaving), then: leave},
	{name: "outage: may it be parked", by: "5.3", of: writeFailed, when: momentOnly, then: askBreaker},

	// A record is blamed only after the table took a good row. Each new kind of failure needs a new probe.
	{name: "the same refusal: search on", by: "5.1", of: searchFailed, when: all(data, vouched), then: isolate},
	{name: "nobody failed alone", by: "5 data", of: searchEnded, when: clean, then: goOn},
	{name: "probe before blame", by: "5.1", of: writeFailed | recordsSuspects, when: probeIs(unprobed), then: askProbe},
	{name: "another time may pass", by: "5.1", of: checkForeseen, when: probeIs(probeUntimely), then: goOn},
	{name: "no good row on a read-only node: hold", by: "5 (25006)", of: writeFailed | recordsSuspects | partitionHeld, when: all(probeFailed, probedReadOnly), then: hold, reason: ReasonReadOnly},
	{name: "no good row for now: hold", by: "5.1", of: writeFailed | recordsSuspects | partitionHeld, when: all(probeFailed, probedMoment), then: hold, reason: ReasonDatabaseAway},
	{name: "no good row: hold", by: "5 systemic", of: writeFailed | recordsSuspects | partitionHeld, when: probeFailed, then: hold, reason: ReasonDatabaseRefuses},
	{name: "a good row: the hold ends", by: "5 systemic", of: partitionHeld, when: probeIs(probePassed), then: goOn},

	// The table takes a good row, so some records are to blame.
	{name: "a CHECK: whom does it refuse", by: "5 data", of: batchFailed, when: all(check, foreseenIs(unasked)), then: askConstraint},
	{name: "a CHECK: write the others first", by: "5 data", of: batchFailed, when: foreseenIs(yes), then: goOn},
	{name: "a good row: search", by: "5 data", of: batchFailed, when: whatever, then: isolate},
	{name: "a good row: search on", by: "5.2", of: searchFailed, when: whatever, then: isolate},
	{name: "a good row after the search", by: "5.1", of: searchEnded, when: whatever, then: judgeEach},
	{name: "not as foreseen: write them", by: "11.2", of: checkForeseen, when: predictedIs(no), then: goOn},
	{name: "foreseen: refused alone, twice", by: "11.2", of: checkForeseen, when: confirmed, then: judgeEach},
	{name: "foreseen: ask about each", by: "11.2", of: checkForeseen, when: whatever, then: askEach},

	// One record failed alone, twice.
	{name: "alone: a lock", by: "6 attempts", of: recordFailed, when: all(locked, ownTimeIs(unasked)), then: askOwnTime},
	{name: "alone: its day is locked", by: "6 attempts", of: recordFailed, when: all(locked, ownTimeIs(no)), then: postpone},
	{name: "alone: a migration refuses it", by: "6 attempts", of: recordFailed, when: ruled(errclass.Await), then: postpone},
	{name: "alone: too slow", by: "code 57014", of: recordFailed, when: ruled(errclass.RetryBisect), then: deadLetterIt, code: errclass.CodeTooSlow},
	{name: "alone: an internal error", by: "code XX000", of: recordFailed, when: ruled(errclass.RetryProbeBisect), then: deadLetterIt, code: errclass.CodeInternal},
	{name: "alone: its parent row may come", by: "code 23503", of: recordFailed, when: all(ruled(errclass.ParkOnceBisect), firstTime), then: park},
	{name: "alone: refused", by: "5 data", of: recordFailed, when: data, then: deadLetterIt},
	{name: "alone: the moment or the set-up", by: "5.1", of: recordFailed, when: whatever, then: park},
}

// Rules returns the names of the rules for failed batches, in the order of the table.
func Rules() []string {
	names := make([]string, len(decisions))
	for i := range decisions {
		names[i] = decisions[i].name
	}
	return names
}

// decide returns the rule for these facts. A test shows that every combination of facts has a rule.
func decide(f facts) rule {
	for i := range decisions {
		if r := &decisions[i]; r.of&f.of != 0 && r.when(&f) {
			return *r
		}
	}
	panic(fmt.Sprintf("no rule for %+v", f))
}

// condition is a property of facts.
type condition func(*facts) bool

func all(cs ...condition) condition {
	return func(f *facts) bool {
		for _, c := range cs {
			if !c(f) {
				return false
			}
		}
		return true
	}
}

func whatever(*facts) bool         { return true }
func stopped(f *facts) bool        { return f.stopped }
func leaving(f *facts) bool        { return f.leaving }
func staying(f *facts) bool        { return !f.leaving }
func pauses(f *facts) bool         { return f.pauses }
func vouched(f *facts) bool        { return f.vouched }
func check(f *facts) bool          { return f.check }
func clean(f *facts) bool          { return f.clean }
func confirmed(f *facts) bool      { return f.confirmed }
func firstTime(f *facts) bool      { return !f.parked }
func locked(f *facts) bool         { return f.failure.Code == lockTaken }
func daysUnasked(f *facts) bool    { return f.days == unasked }
func someDays(f *facts) bool       { return f.days == yes }
func breakerAdmits(f *facts) bool  { return f.breaker == yes }
func breakerRefuses(f *facts) bool { return f.breaker == no }
func data(f *facts) bool           { return f.failure.Class == errclass.Data }
func probedMoment(f *facts) bool   { return ofMoment(f.probed) }
func probedReadOnly(f *facts) bool { return f.probed.Code == readOnly }
func probeFailed(f *facts) bool    { return f.probe == probeRefused || f.probe == probeAway }

func probeIs(a probeAnswer) condition { return func(f *facts) bool { return f.probe == a } }
func foreseenIs(a answer) condition   { return func(f *facts) bool { return f.foreseen == a } }
func predictedIs(a answer) condition  { return func(f *facts) bool { return f.predicted == a } }
func ownTimeIs(a answer) condition    { return func(f *facts) bool { return f.ownTime == a } }

func ruled(rules ...errclass.Rule) condition {
	return func(f *facts) bool {
		for _, r := range rules {
			if f.failure.Rule == r {
				return true
			}
		}
		return false
	}
}

// momentOnly reports whether only the moment is to blame, so that no record is examined. The replayer always examines
// its records, because an attempt counts only against a healthy database. A write that took too long is examined once
// the table takes a good row.
func momentOnly(f *facts) bool {
	switch {
	case !ofMoment(f.failure) || f.replay:
		return false
	case f.failure.Rule == errclass.RetryBisect:
		return f.of == batchFailed && f.probe == probeAway
	}
	return true
}

// ofMoment reports whether a failure blames the moment, not the records and not the set-up.
func ofMoment(v errclass.Classification) bool {
	return v.Class == errclass.Transient || v.Class == errclass.Unknown
}

// Codes that have rules of their own.
const (
	lockTaken = "55P03" // a lock was not granted in time
	readOnly  = "25006" // the node takes no writes
)
