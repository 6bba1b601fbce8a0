package errclass

import "fmt"

// Class is the coarse answer to whose fault an error is, and a metric label.
// The values are never renumbered.
type Class uint8

const (
	// Unknown is not judged. It blames the world: callers treat it as
	// Transient, so that a record nobody judged is tried again and parked.
	Unknown Class = iota
	// Transient blames the moment: the same write can succeed later.
	Transient
	// Data blames the record, provided that the database accepts a good one.
	Data
	// Systemic blames the set-up: every record would fail until it is mended.
	Systemic
	// OK is no failure.
	OK
	// Cancelled is our own shutdown or a revoked partition: nobody's fault.
	Cancelled
)

var classes = [...]struct{ name, blame string }{
	Unknown:   {"unknown", "unknown, treated as temporary"},
	Transient: {"transient", "a temporary condition"},
	Data:      {"data", "the record"},
	Systemic:  {"systemic", "the setup: server, schema or settings"},
	OK:        {"ok", "nothing failed"},
	Cancelled: {"cancelled", "stopped by Docket itself"},
}

// Blame is what is at fault, in a few words.
func (c Class) Blame() string { return classes[c].blame }

// String is the class as metrics and logs spell it.
func (c Class) String() string {
	if int(c) >= len(classes) {
		return fmt.Sprintf("Class(%d)", uint8(c))
	}
	return classes[c].name
}
