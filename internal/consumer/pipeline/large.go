package pipeline

import "docket/internal/record/home"

// leastOpened is how many bytes any record may be opened to beside those of other partitions.
const leastOpened = 128 << 10

// opening is how far a record may be opened.
type opening struct {
	bytes     int64 // that it is gunzipped into
	decisions int   // at a time
	alone     bool  // what is beyond them is opened later
}

// large is a record in hand that grows to more than its batch may. One partition of a process has such a one at a time, from
// before it is opened until it is settled, in a hold too: else some kilobytes in each partition would take gigabytes. Its
// decisions are opened in portions, each when the one before has its homes.
type large struct {
	mine    bool         // this partition is the one
	plain   []byte       // the record's value
	entries []home.Entry // of all its decisions
	opened  int          // how many of these
}

// itemBytes is what a decision takes in memory besides its own bytes, roughly.
const itemBytes = 640
