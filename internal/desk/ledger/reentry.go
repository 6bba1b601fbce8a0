package ledger

// Standing is how far a dead letter has come.
type Standing struct {
	State    State
	Attempts int // retries that ended dead
}

// EndsDead says whether a retry that comes back dead ends so. One that was given up was published after all; one that
// ended stored or dead has its end already.
func (o SendingOutcome) EndsDead() bool {
	return o == "" || o == SendingWithdrawn || o == SendingRefused
}

// DeadAgain is the standing of a letter after one of its retries came back dead. before is the outcome that the retry had,
// empty where it was open. newest says that the letter has no later retry. most is the number of attempts that a letter has.
// counts is false where the standing stays as it is: only an open retry of an open letter counts as an attempt.
//
// A letter that a later retry is under way for stays PROCESSING. One that failed, or that has used up its attempts, is FAILED.
// Any other is PENDING again.
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
