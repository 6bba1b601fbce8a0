package errclass

import "fmt"

// Class says whose fault an error is. It is a metric label. The values never change.
type Class uint8

const (
	// Unknown is a failure that no rule knows. Callers treat it as Transient, so that the record is retried and
	// parked.
	Unknown Class = iota
	// Transient blames the moment: the same write can succeed later.
	Transient
	// Data blames the record, if the database accepts a good one.
	Data
	// Systemic blames the set-up: every record fails until an operator repairs it.
	Systemic
	// OK means no failure.
	OK
	// Cancelled is the program's own shutdown or a revoked partition. Nobody is to blame.
	Cancelled
)

var classes = [...]struct{ name, blame string }{
	Unknown:   {"unknown", "not judged, so the moment is blamed"},
	Transient: {"transient", "the moment is to blame"},
	Data:      {"data", "the record is to blame"},
	Systemic:  {"systemic", "the set-up is to blame"},
	OK:        {"ok", "nothing failed"},
	Cancelled: {"cancelled", "we stopped it ourselves"},
}

// Blame says whose fault it is, in a few words.
func (c Class) Blame() string { return classes[c].blame }

// String returns the class as metrics and logs spell it.
func (c Class) String() string {
	if int(c) >= len(classes) {
		return fmt.Sprintf("Class(%d)", uint8(c))
	}
	return classes[c].name
}
