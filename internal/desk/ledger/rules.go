package ledger

import (
	"errors"
	"time"
)

// Errors of acts that the ledger refuses as such, whatever the letter.
var (
	// ErrNobody says that nobody signs the act.
	ErrNobody = errors.New("whoever changes a dead letter has to be named")
	// ErrNoReason says that the act needs a reason and has none.
	ErrNoReason = errors.New("a reason is required")
	// ErrNoLease says that a retry would end as soon as it began.
	ErrNoLease = errors.New("a retry needs a lease above 0")
)

// Unheard is the reason of an ended lease where nobody gave another.
const Unheard = "nothing was heard of the retry for too long"

// FirstLook is how long after its publication the end of a retry is looked for.
const FirstLook = 200 * time.Millisecond

// Decidable says whether a person, or the scheduled retry, may decide about a letter in this state.
func (s State) Decidable() bool { return s == Pending || s == Failed }

// GivenUpPauses are the pauses before each further look for a retry that was given up; the last is that of all that follow.
// They double from a second to a day: nobody waits for these retries, and after an outage there are many.
func GivenUpPauses() []time.Duration {
	const day = 24 * time.Hour
	var pauses []time.Duration
	for pause := time.Second; pause < day; pause *= 2 {
		pauses = append(pauses, pause)
	}
	return append(pauses, day)
}
