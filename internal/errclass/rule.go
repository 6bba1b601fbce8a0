package errclass

import "fmt"

// Rule says how a fault is treated. The values never change.
//
// Three conditions apply to every rule that bisects. The database first accepts the probe row. A suspect fails alone
// twice. An error of class Transient or Systemic ends the search.
type Rule uint8

const (
	// RetryPark tries again, then parks. It is the zero value, so a fault without a rule never blames a record.
	RetryPark Rule = iota
	// RetryParkOnce tries again, then parks. In the replayer a refused probe holds.
	RetryParkOnce
	// Park parks without trying again.
	Park
	// RetryHalvesPark tries again in halves, then parks.
	RetryHalvesPark
	// RetryBisect tries again. If the fault comes again and the database answers the probe, it bisects. A record that
	// fails alone is dead-lettered as too_slow.
	RetryBisect
	// RetryProbeBisect tries again, then probes and bisects. A record that fails alone is dead-lettered as internal.
	// A refused probe holds.
	RetryProbeBisect
	// RetryHold tries again on a fresh connection, then holds.
	RetryHold
	// Bisect bisects at once; a recent probe is enough.
	Bisect
	// ProbeBisect bisects after a fresh probe for this code, constraint and column. A refused probe holds.
	ProbeBisect
	// ParkOnceBisect is like ProbeBisect, but a record that fails alone is parked the first time.
	ParkOnceBisect
	// Hold holds until a probe succeeds.
	Hold
	// HoldUnlessAlone holds, unless the probe succeeds. Then it bisects and parks the records that fail alone.
	HoldUnlessAlone
	// Bug is a fault of Docket. It behaves as Hold and is logged as a bug.
	Bug
	// Pass means no failure.
	Pass
	// Ignore allows no retry, no home and no commit: shutdown or revocation.
	Ignore
	// Await bisects while the database takes a good row of the present. It parks records that fail alone and never
	// spends an attempt.
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

// String returns the rule as logs and documents spell it.
func (r Rule) String() string {
	if int(r) >= len(rules) {
		return fmt.Sprintf("Rule(%d)", uint8(r))
	}
	return rules[r].name
}

// Effect returns one sentence on what happens to the batch.
func (r Rule) Effect() string {
	if int(r) >= len(rules) {
		return "No such rule."
	}
	return rules[r].effect
}
