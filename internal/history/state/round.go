package state

import "time"

// Round is the result of one round of following stored decisions.
type Round struct {
	Counts  Counts
	Flips   int64
	Skipped map[string]int64 // decisions without a state, by reason: see [Skips]
	Rows    int64            // decisions in all
	States  int64            // rows of the table afterwards
	Lag     time.Duration    // from the mark to the server's clock
	More    bool             // further decisions are complete already
	Busy    bool             // another process works just now
	Unbegun bool             // nothing was followed yet: without a mark, Lag is 0 and says nothing
}

// Reasons why a decision has no state.
const (
	SkipNoSubject = "no_subject"
	SkipNoPath    = "no_path"
	SkipTooLong   = "too_long" // subject or path is longer than [MostKey]
	SkipAhead     = "ahead"    // its clock was more than [MostAhead] ahead
	SkipFull      = "full"     // there was no room for a further subject
)

// MostAhead is how much later than its storing a decision may be dated. One of the year 9999 would be the newest of its
// state for ever, and the rest of its decisions late. The limit is by the row alone, so no order of rows changes it.
const MostAhead = time.Hour

// Skips lists the reasons why a decision has no state.
func Skips() []string { return []string{SkipNoSubject, SkipNoPath, SkipTooLong, SkipAhead, SkipFull} }
