package conservation

import (
	"time"

	"docket/internal/home"
)

// Row is a row of the table, as far as it tells whose it is.
type Row struct {
	Place
	ID   string
	Time time.Time
}

// Forwarded is a record that was found in a topic of ours or in the spool.
type Forwarded struct {
	Place              // where its headers say that it was first read
	Home     home.Home // Parked, DeadLetter, Exhausted or Spooled
	Found    string    // where it was found, for people
	Code     string    // its failure code
	ID       string    // its dead-letter id
	Key      []byte
	Value    []byte
	Settled  bool // a parked record that the replayer has committed: it has another home, or it is lost
	NoOrigin bool // its headers do not say where it was first read
}

// Evidence is what was found outside.
type Evidence struct {
	Rows      []Row
	Forwarded []Forwarded
	// Changed are rows whose payload is not, as JSON, the one that was produced there.
	Changed []Place
	// Read is the committed offset of the source topic by partition: what lies at or above it was not read yet.
	Read map[int32]int64
}
