package pipeline

import (
	"docket/internal/record/decision"
	"docket/internal/record/home"
)

// leastOpened is the number of bytes that any record may be opened to, whatever other partitions have in hand.
const leastOpened = 128 << 10

// opening limits how far a record is opened.
type opening struct {
	bytes     int64 // of the gunzipped value
	decisions int   // at a time
	alone     bool  // decisions beyond the limit are opened later
}

// large is a record in hand that grows to more than its batch may. One partition of a process has such a record at a
// time, from before it is opened until it is settled, also during a hold. Otherwise a few kilobytes in each partition
// would take gigabytes. Its decisions are opened in portions, each after the one before has its homes.
type large struct {
	mine    bool         // this partition has the right to a large record
	plain   []byte       // the record's value
	entries []home.Entry // of all its decisions
	opened  int          // of these entries
	parked  waitedFor    // of its decisions that are done, those that failed alone and were parked
}

// waitFor notes the parked items of a search, for the portions to come. It copies them, because their memory is used again.
func (l *large) waitFor(ahead waitedFor) {
	if !l.mine {
		return
	}
	for of, it := range ahead {
		if !it.parked() {
			continue
		}
		if l.parked == nil {
			l.parked = waitedFor{}
		}
		log := &decision.Log{ID: it.log.ID, Time: it.log.Time, Raw: it.log.Raw, Unfaithful: it.log.Unfaithful}
		l.parked[of] = &item{log: log, to: it.to, cause: it.cause, attempt: it.attempt}
	}
}

// itemBytes is the approximate memory of a decision besides its own bytes.
const itemBytes = 640
