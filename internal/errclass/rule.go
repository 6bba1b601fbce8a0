package errclass

import "fmt"

// Rule is the fine answer: which of the ways of treating a fault fits it. The
// values are never renumbered.
//
// Wherever a rule says bisect, three conditions stand above it: the database
// accepts the probe row first, a suspect fails alone twice, and an error that
// blames the world ends the search.
type Rule uint8

const (
	// RetryPark tries again, then parks. It is the zero value, so that a
	// fault without a rule is never blamed on a record.
	RetryPark Rule = iota
	// RetryParkOnce tries again, then parks; in the replay a refused probe holds.
	RetryParkOnce
	// Park parks without trying again.
	Park
	// RetryHalvesPark tries again in halves, then parks.
	RetryHalvesPark
	// RetryBisect tries again; the same fault again on a database that answers
	// the probe is bisected, and what fails alone is dead-lettered as too_slow.
	RetryBisect
	// RetryProbeBisect tries again, then probes and bisects, and what fails
	// alone is dead-lettered as internal; a refused probe holds.
	RetryProbeBisect
	// RetryHold tries again on a fresh connection, then holds.
	RetryHold
	// Bisect bisects at once; a recent probe is proof enough.
	Bisect
	// ProbeBisect bisects after a fresh probe for this code, constraint and
	// column; a refused probe holds.
	ProbeBisect
	// ParkOnceBisect is as ProbeBisect, but what fails alone is parked the first
	// time.
	ParkOnceBisect
	// Hold holds until a probe succeeds.
	Hold
	// HoldUnlessAlone holds, unless the probe succeeds; then it bisects, and what
	// fails alone is parked.
	HoldUnlessAlone
	// Bug is our own fault. It behaves as Hold and is logged as a bug.
	Bug
	// Pass is no failure.
	Pass
	// Ignore gives no retry, no home and no commit: shutdown or revoke.
	Ignore
	// Await bisects while the database takes a good row of the present, and parks
	// what fails alone without ever spending an attempt.
	Await
)

var rules = [...]struct {
	name   string
	class  Class
	effect string
}{
	RetryPark: {"retry_park", Transient,
		"The whole batch is tried again on a fresh connection after each retry pause (1 s and 2 s), then parked; when too many batches in a row went that way, Docket holds instead."},
	RetryParkOnce: {"retry_park_once", Transient,
		"The whole batch is tried again after each retry pause and parked; if it fails so again in the replay, Docket holds until the probe row is accepted, and only a record that fails alone while it is spends an attempt."},
	Park: {"park", Transient,
		"The batch is parked without another try, and the replayer comes back to it later."},
	RetryHalvesPark: {"retry_halves_park", Transient,
		"The batch is tried again in halves, as its size may be what the server cannot take, and what still fails is parked."},
	RetryBisect: {"retry_bisect", Transient,
		"The whole batch is tried again; if it ends the same way while the probe row is accepted, it is bisected, and a record that is alone in failing, twice, is dead-lettered as too_slow."},
	RetryProbeBisect: {"retry_probe_bisect", Data,
		"The whole batch is tried again; if it ends the same way and the probe row is accepted, it is bisected, and a record that fails alone, twice, is dead-lettered as internal; if the probe row is refused, Docket holds."},
	RetryHold: {"retry_hold", Systemic,
		"The batch is tried again on a fresh connection, then Docket holds until the probe row is accepted; nothing is parked."},
	Bisect: {"bisect", Data,
		"No retry: once the probe row was accepted (a probe of the last 10 s will do) the batch is bisected, records that fail alone, twice, are dead-lettered, and all others get their row."},
	ProbeBisect: {"probe_bisect", Data,
		"No retry: a fresh probe row decides; if it is accepted, the batch is bisected and records that fail alone, twice, are dead-lettered; if it is refused, Docket holds."},
	ParkOnceBisect: {"park_once_bisect", Data,
		"A fresh probe row decides; if it is accepted, the batch is bisected and a record that fails alone, twice, is parked once, as what it lacks may still arrive, and dead-lettered if it fails so again; if it is refused, Docket holds."},
	Hold: {"hold", Systemic,
		"Docket holds: nothing is stored or committed, and work goes on by itself once the probe row is accepted; if it is accepted all along, the batch is bisected and a record that fails alone is parked."},
	HoldUnlessAlone: {"hold_unless_alone", Systemic,
		"Docket holds, unless the probe row is accepted: then the batch is bisected and a record that fails alone is parked, not dead-lettered, as the set-up is the likelier culprit."},
	Bug: {"bug", Systemic,
		"Logged as a bug in Docket, please report it; Docket holds as for any fault of the set-up, so that no record pays for it."},
	Pass: {"pass", OK,
		"Nothing is done, as nothing failed."},
	Ignore: {"ignore", Cancelled,
		"No retry, no home and no commit: the records are delivered again to whoever has the partition next."},
	Await: {"await", Systemic,
		"While a probe row of the present is accepted, the batch is bisected and a record that fails alone is parked, in the replay again without spending an attempt, as what it waits for comes by itself; if that probe row is refused, Docket holds."},
}

// String is the rule as logs and documents spell it.
func (r Rule) String() string {
	if int(r) >= len(rules) {
		return fmt.Sprintf("Rule(%d)", uint8(r))
	}
	return rules[r].name
}

// Effect is one sentence on what happens to the batch.
func (r Rule) Effect() string {
	if int(r) >= len(rules) {
		return "No such rule."
	}
	return rules[r].effect
}
