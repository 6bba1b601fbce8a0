package ledger

import (
	"bytes"
	"slices"
	"time"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// Header is a header of the record that is not ours, as it came.
type Header struct {
	Key   string `json:"key"`
	Value []byte `json:"value"` // nil stays nil
}

// Found is where a dead letter stands in a dead-letter topic.
type Found struct {
	Topic     string
	Partition int32
	Offset    int64
	Stamp     time.Time // Kafka timestamp: retention counts from here
}

// Letter is what a record of a dead-letter topic says.
type Letter struct {
	ID            string // x-dead-letter-id: 64 hex digits
	Origin        envelope.Origin
	Found         Found
	Cause         envelope.Cause
	FirstFailedAt time.Time
	FailedAt      time.Time
	Key, Value    []byte // nil stays nil
	Headers       []Header
	Client        string // that uploaded it; empty: none that is proven
	// RetryOf is the mark of the retry whose record this is, empty where it is none; see [Sending].
	RetryOf string
	// Refused is how many refused decisions of one upload the value holds, 0 where it is no such rest; Held are those of which an id can be
	// read.
	Refused int
	Held    []Held
	// What the value says where it is one decision that reads as such, else empty.
	Path         string
	DecisionID   string
	DecisionTime time.Time // zero: none
}

// Held is what a letter that refused decisions of one upload share says of one of them.
type Held struct {
	Place int // inside the upload
	ID    string
	Time  time.Time // zero: none can be read
}

// longestRest is how much of a value is read, inflated.
const longestRest = 16 << 20

// PartsOf are the places that the decisions of a letter have in a record of these decisions that was put back; nil where they are not all of
// that record. sent are all decisions of the record, in order.
func PartsOf(l *Letter, sent []decision.Part) (places []int) {
	is := func(at int, value []byte) bool { return at < len(sent) && bytes.Equal(sent[at].Value, value) }
	switch {
	case l.Value == nil:
		return nil
	case l.Origin.Index >= 0 && is(l.Origin.Index, l.Value):
		return []int{l.Origin.Index}
	case l.Origin.Index >= 0 || l.Refused == 0:
		return nil
	}
	held, _ := new(decision.Decoder).Rest(l.Value, longestRest)
	for _, part := range held {
		if !is(part.Index, part.Value) {
			return nil
		}
		places = append(places, part.Index)
	}
	return places
}

// Entry is a dead letter in the ledger.
type Entry struct {
	Letter
	State       State
	Fingerprint string
	Attempts    int       // retries that ended dead
	Edited      bool      // the value is not the one that it came with
	SeenAt      time.Time // when it entered the ledger
	ChangedAt   time.Time // last move
	ChangedBy   string    // who
	Why         string    // why, in one line
	Owner       string    // who retries it, where it is PROCESSING
	LeaseUntil  time.Time // zero: no lease
	Job         int64     // the last job that touched it; 0: none
	Parent      string    // id of the dead letter that it was a part of, empty where it was not
	ArchivedIn  string    // the archive that has it as it is, empty where none has
}

// Others are the letters that do not hold one of the decisions, or the record of one, that were first read at these places.
func Others(letters []Entry, places []envelope.Origin) []Entry {
	return slices.DeleteFunc(slices.Clone(letters), func(e Entry) bool {
		return slices.ContainsFunc(places, func(o envelope.Origin) bool {
			of := e.Origin
			return of.Partition != envelope.NoPlace && of.Topic == o.Topic && of.Partition == o.Partition && of.Offset == o.Offset && (of.Index == o.Index || of.Index == envelope.NoIndex)
		})
	})
}

// Audit is one line of what happened to a dead letter. Lines are never changed and never removed.
type Audit struct {
	ID       int64
	At       time.Time
	LetterID string
	Act      Act
	From, To State // equal where only the payload changed, or where a retry died that the state no longer waited for; empty where it entered or left
	By       string
	Why      string
	Attempts int
	Job      int64
	// Original and Diff are of an edit: the value before it, and what changed as a unified diff. Personal data may be in them.
	Original []byte
	Diff     string
	// Login, Application and Client are of the session that did it, as the server knows it: its login, its application_name, which a
	// program chooses, and its address. By is what the program said. Empty where an earlier release wrote the line.
	Login, Application, Client string
	// Columns are those of a [Changed] line, and Was their values before, as a JSON object. Personal data may be in it.
	Columns []string
	Was     []byte
}

// Sending is a row of the outbox: one retry of one dead letter.
type Sending struct {
	ID       int64
	LetterID string
	// Mark is what travels with the record under [envelope.RetryOf]. It is told to nobody else, so that a record which
	// brings it back is known for the retry.
	Mark       string
	Topic      string // the original one
	Key, Value []byte
	Headers    []Header
	Tries      int // publishes that failed
	By         string
	Job        int64
	CreatedAt  time.Time
	// Published is where its record stands; Stamp zero: it is not published.
	Published Found
	// Outcome is empty until the retry has ended.
	Outcome SendingOutcome
	EndedAt time.Time
	Code    string // why it was not published, or why it is dead again
}

// SendingOutcome is how a retry ended.
type SendingOutcome string

// How a retry ends.
const (
	SendingStored    SendingOutcome = "stored"    // it has its row
	SendingDead      SendingOutcome = "dead"      // it is dead again
	SendingRefused   SendingOutcome = "refused"   // Kafka did not take it, or its topic is none that retries may go to
	SendingWithdrawn SendingOutcome = "withdrawn" // its lease ended before it was published
)

// Actor is who does something, and why.
type Actor struct {
	Name    string // never empty
	Why     string // one line; required of people
	Job     int64  // 0: none
	Vouched bool   // a desk knows that it is Name, by a token or a certificate; else Name is what a program said
}
