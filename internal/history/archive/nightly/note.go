package nightly

import (
	"encoding/json"
	"time"
)

// NoteName is the name of the note in the ledger.
const NoteName = "archive"

// State is what the archive does.
type State string

// The states.
const (
	Working State = "working"
	Waiting State = "waiting" // for the hours, for the consumer, or for the next try of a day
	Idle    State = "idle"    // each day that is old enough is archived
	Failed  State = "failed"  // a day, or the look for days, failed at the last try
)

// Note says how far the archive is. The desk that has the duty writes it, and any command reads it.
type Note struct {
	State  State     `json:"state"`
	Why    string    `json:"why,omitempty"`
	Hint   string    `json:"hint,omitempty"`
	After  int       `json:"after_days"`
	Hours  string    `json:"hours"`
	Holder string    `json:"desk"`
	Due    int       `json:"due_days"`         // days that are old enough and in the table
	Oldest string    `json:"oldest_day"`       // of them; empty: none
	Next   time.Time `json:"next,omitzero"`    // when it looks again; zero: it works now
	Days   []Result  `json:"days"`             // the last results, the newest first
	Aged   int       `json:"aged_files"`       // files whose storage class was changed, at the last look
	AgedAt time.Time `json:"aged_at,omitzero"` // the last look at storage classes
	Wrote  time.Time `json:"-"`                // by the clock of the database
}

// Result is the result of one try of a day.
type Result struct {
	Table   string    `json:"table"`
	Day     string    `json:"day"`
	At      time.Time `json:"at"`
	Archive string    `json:"archive,omitempty"`
	Rows    int64     `json:"rows"`
	Bytes   int64     `json:"bytes"`
	Dropped bool      `json:"dropped"`
	Waits   bool      `json:"waits,omitempty"` // it is tried again, and nothing is wrong
	Why     string    `json:"why,omitempty"`   // why it was not archived
	Hint    string    `json:"hint,omitempty"`
}

// mostResults limits the results of a note.
const mostResults = 20

// Add puts a result before the others. It replaces an earlier one of the same day.
func (n *Note) Add(r Result) {
	kept := []Result{r}
	for _, old := range n.Days {
		if (old.Table != r.Table || old.Day != r.Day) && len(kept) < mostResults {
			kept = append(kept, old)
		}
	}
	n.Days = kept
}

// Open returns the results of days that were not archived.
func (n *Note) Open() (open []Result) {
	for _, r := range n.Days {
		if r.Why != "" {
			open = append(open, r)
		}
	}
	return open
}

// Forget removes the results that are open and that keep does not name: such a day is not in the table any more.
func (n *Note) Forget(keep func(Result) bool) {
	var kept []Result
	for _, r := range n.Days {
		if r.Why == "" || keep(r) {
			kept = append(kept, r)
		}
	}
	n.Days = kept
}

// Late is how long a day may wait for the archive until it counts as behind.
const Late = 48 * time.Hour

// Behind returns how long ago the oldest day became old enough. It is 0 if none is due.
func (n *Note) Behind(now time.Time) time.Duration {
	day, err := time.Parse(time.DateOnly, n.Oldest)
	if err != nil {
		return 0
	}
	return max(0, now.Sub(day.AddDate(0, 0, n.After+1)))
}

// Silent is how old a note may be before the archive counts as stopped.
const Silent = time.Hour

// Text returns the note as it is kept.
func (n *Note) Text() (string, error) {
	b, err := json.Marshal(n)
	return string(b), err
}

// ParseNote reads a note. An empty text is none: then it returns nil. A text that a later release wrote may lack
// fields.
func ParseNote(text string, wrote time.Time) (*Note, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no archive runs by itself
	}
	n := &Note{Wrote: wrote}
	if err := json.Unmarshal([]byte(text), n); err != nil {
		return nil, err
	}
	return n, nil
}
