package pipeline

import "docket/internal/record/home"

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
}

// itemBytes is the approximate memory of a decision besides its own bytes.
const itemBytes = 640
