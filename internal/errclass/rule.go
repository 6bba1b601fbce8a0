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
		"The whole batch is retried on a new connection after each retry pause (1 s and 2 s), then parked. After too many such batches in a row Docket holds instead."},
	RetryParkOnce: {"retry_park_once", Transient,
		"The whole batch is retried after each retry pause, then parked. If it fails again in the replay, Docket holds until the probe row is accepted; only a record that fails alone while it is accepted uses up an attempt."},
	Park: {"park", Transient,
		"The batch is parked without a retry; the replayer tries it later."},
	RetryHalvesPark: {"retry_halves_park", Transient,
		"The batch is retried in halves, because the server may not cope with its size. Parts that still fail are parked."},
	RetryBisect: {"retry_bisect", Transient,
		"The whole batch is retried. If it fails in the same way while the probe row is accepted, it is bisected, and a record that fails alone, twice, is dead-lettered as too_slow."},
	RetryProbeBisect: {"retry_probe_bisect", Data,
		"The whole batch is retried. If it fails in the same way and the probe row is accepted, it is bisected, and a record that fails alone, twice, is dead-lettered as internal. If the probe row is refused, Docket holds."},
	RetryHold: {"retry_hold", Systemic,
		"The batch is retried on a new connection, then Docket holds until the probe row is accepted. Nothing is parked."},
	Bisect: {"bisect", Data,
		"No retry. Once the probe row is accepted (a probe of the last 10 s is enough), the batch is bisected. Records that fail alone, twice, are dead-lettered; all others are stored."},
	ProbeBisect: {"probe_bisect", Data,
		"No retry. A new probe row decides: if it is accepted, the batch is bisected and records that fail alone, twice, are dead-lettered; if it is refused, Docket holds."},
	ParkOnceBisect: {"park_once_bisect", Data,
		"A new probe row decides. If it is accepted, the batch is bisected, and a record that fails alone, twice, is parked once, because the row it needs may still arrive, and dead-lettered if it fails again. If it is refused, Docket holds."},
	Hold: {"hold", Systemic,
		"Docket holds: nothing is stored or committed. It resumes by itself once the probe row is accepted. If the probe row is accepted from the start, the batch is bisected and a record that fails alone is parked."},
	HoldUnlessAlone: {"hold_unless_alone", Systemic,
		"Docket holds, unless the probe row is accepted. Then the batch is bisected, and a record that fails alone is parked, not dead-lettered, because the setup is the likelier cause."},
	Bug: {"bug", Systemic,
		"Logged as a bug in Docket; please report it. Docket holds as for a fault of the setup, so no record is lost or dead-lettered."},
	Pass: {"pass", OK,
		"Nothing happens, because nothing failed."},
	Ignore: {"ignore", Cancelled,
		"No retry and no commit: Kafka delivers the records again to the next member of the group."},
	Await: {"await", Systemic,
		"While a current probe row is accepted, the batch is bisected and a record that fails alone is parked; in the replay it is parked again without using up an attempt, because the fault ends by itself. If that probe row is refused, Docket holds."},
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
		return "Unknown rule."
	}
	return rules[r].effect
}
