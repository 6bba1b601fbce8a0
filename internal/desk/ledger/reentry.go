package ledger

// Standing is the state of a dead letter and its attempts.
type Standing struct {
	State    State
	Attempts int // retries that ended dead
}

// EndsDead reports whether a retry that comes back dead ends so. A retry that was given up was published after all.
// One that ended stored or dead has its end already.
func (o SendingOutcome) EndsDead() bool {
	return o == "" || o == SendingWithdrawn || o == SendingRefused
}

// DeadAgain returns the standing of a letter after one of its retries came back dead. The retry's outcome so far is
// before, empty if it was open. If newest is true, the letter has no later retry. The limit of attempts is most.
//
// If counts is false, the standing does not change, because only an open retry of an open letter counts as an
// attempt. A letter with a later retry stays PROCESSING. A letter that failed, or that has used up its attempts, is
// FAILED. Any other is PENDING again.
func (s Standing) DeadAgain(before SendingOutcome, newest bool, most int) (after Standing, counts bool) {
	if before != "" || s.State == Resolved {
		return s, false
	}
	s.Attempts++
	switch {
	case s.State == Processing && !newest:
	case s.State == Failed, s.Attempts >= most:
		s.State = Failed
	default:
		s.State = Pending
	}
	return s, true
}
