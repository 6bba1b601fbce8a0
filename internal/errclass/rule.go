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
		"Docket retries the whole batch on a fresh connection after each retry pause, then parks it. After too many parked batches in a row, Docket holds instead."},
	RetryParkOnce: {"retry_park_once", Transient,
		"Docket retries the whole batch after each retry pause, then parks it. If it fails again in the replay, Docket holds until the probe row is accepted. A record spends an attempt only if it fails alone while the probe row is accepted."},
	Park: {"park", Transient,
		"Docket parks the batch without a retry. The replayer stores it later."},
	RetryHalvesPark: {"retry_halves_park", Transient,
		"Docket retries the batch in halves, because it may be too large for the server. It parks the rows that still fail."},
	RetryBisect: {"retry_bisect", Transient,
		"Docket retries the whole batch. If it fails again while the probe row is accepted, Docket bisects it. A record that fails alone twice is dead-lettered as too_slow."},
	RetryProbeBisect: {"retry_probe_bisect", Data,
		"Docket retries the whole batch. If it fails again while the probe row is accepted, Docket bisects it. A record that fails alone twice is dead-lettered as internal. If the probe row is rejected, Docket holds."},
	RetryHold: {"retry_hold", Systemic,
		"Docket retries the batch on a fresh connection, then holds until the probe row is accepted. It parks nothing."},
	Bisect: {"bisect", Data,
		"No retry. If the probe row is accepted, or was in the last 10 s, Docket bisects the batch. Records that fail alone twice are dead-lettered; all others are stored."},
	ProbeBisect: {"probe_bisect", Data,
		"No retry. If a new probe row is accepted, Docket bisects the batch, and records that fail alone twice are dead-lettered. If it is rejected, Docket holds."},
	ParkOnceBisect: {"park_once_bisect", Data,
		"If a new probe row is accepted, Docket bisects the batch. A record that fails alone twice is parked once, because the missing row may still arrive. If it fails again, it is dead-lettered. If the probe row is rejected, Docket holds."},
	Hold: {"hold", Systemic,
		"Docket holds: it stores and commits nothing until the probe row is accepted, then it continues by itself. If the probe row is never rejected, Docket bisects the batch and parks records that fail alone."},
	HoldUnlessAlone: {"hold_unless_alone", Systemic,
		"Docket holds. If the probe row is accepted, Docket bisects the batch instead. A record that fails alone is parked, not dead-lettered, because the configuration is the more likely cause."},
	Bug: {"bug", Systemic,
		"This is a bug in Docket: please report it. Docket holds as for a configuration fault, so that no record is dead-lettered."},
	Pass: {"pass", OK,
		"Nothing failed, so Docket does nothing."},
	Ignore: {"ignore", Cancelled,
		"No retry, no home and no commit. Kafka delivers the records again to the next owner of the partition."},
	Await: {"await", Systemic,
		"If a probe row with the current time is accepted, Docket bisects the batch and parks records that fail alone. In the replay this spends no attempt, because the cause ends by itself. If the probe row is rejected, Docket holds."},
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
