package ledger

import (
	"bytes"
	"slices"
	"time"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// Header is a header of the record that Docket did not write, unchanged.
type Header struct {
	Key   string `json:"key"`
	Value []byte `json:"value"` // nil stays nil
}

// Found is the place of a dead letter in a dead-letter topic.
type Found struct {
	Topic     string
	Partition int32
	Offset    int64
	Stamp     time.Time // Kafka timestamp: retention counts from here
}

// Letter is the content of a record in a dead-letter topic.
type Letter struct {
	ID            string // x-dead-letter-id: 64 hex digits
	Origin        envelope.Origin
	Found         Found
	Cause         envelope.Cause
	FirstFailedAt time.Time
	FailedAt      time.Time
	Key, Value    []byte // nil stays nil
	Headers       []Header
	Client        string // the proven uploader; empty: none
	// RetryOf is the mark of the retry that became this record, or empty; see [Sending].
	RetryOf string
	// Refused is the number of refused decisions if the value is a rest of an upload, else 0. Held are the decisions with
	// a readable id if the value has several, a rest or another.
	Refused int
	Held    []Held
	// Fields of the value if it is one readable decision, else empty.
	Path         string
	DecisionID   string
	DecisionTime time.Time // zero: none
}

// Held describes one of several decisions in a dead letter.
type Held struct {
	Place int // inside the upload, or the record
	ID    string
	Time  time.Time // zero: unreadable
}

// longestRest limits the inflated bytes of a value that are read.
const longestRest = 16 << 20

// PartsOf returns the places of a letter's decisions in a record that was put back with these and other decisions. It
// returns nil if some of them are not in that record. sent are all decisions of the record, in order.
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
	Edited      bool      // the value was changed by an edit
	SeenAt      time.Time // when it entered the ledger
	ChangedAt   time.Time // last move
	ChangedBy   string    // author of the last move
	Why         string    // the reason, in one line
	Owner       string    // the program that retries it while it is PROCESSING
	LeaseUntil  time.Time // zero: no lease
	Job         int64     // the last job that touched it; 0: none
	Parent      string    // id of the dead letter that it was a part of, or empty
	ArchivedIn  string    // name of the archive that has its present content, or empty
	// Withheld is the length of a value that the source knows and does not show; nil: Value is the value.
	Withheld *int
	// Assigned looks after it, or after its group; empty: nobody. SnoozedUntil is when it comes back to the open ones,
	// by its own snooze or its group's; zero: it is not snoozed.
	Assigned     string
	SnoozedUntil time.Time
}

// Others returns the letters that hold none of the decisions, or their record, first read at these places.
func Others(letters []Entry, places []envelope.Origin) []Entry {
	return slices.DeleteFunc(slices.Clone(letters), func(e Entry) bool {
		return slices.ContainsFunc(places, func(o envelope.Origin) bool {
			of := e.Origin
			return of.Partition != envelope.NoPlace && of.Topic == o.Topic && of.Partition == o.Partition && of.Offset == o.Offset && (of.Index == o.Index || of.Index == envelope.NoIndex)
		})
	})
}

// Audit is one line of a dead letter's history. Lines are never changed or removed.
type Audit struct {
	ID       int64
	At       time.Time
	LetterID string
	Act      Act
	From, To State // equal if only the payload changed, or if a retry died that was no longer awaited; empty if it entered or left
	By       string
	Why      string
	Attempts int
	Job      int64
	// Original and Diff belong to an edit: the value before it, and a unified diff. They may contain personal data.
	Original []byte
	Diff     string
	// Login, Application and Client are those of the database session, as the server knows them: its login, its
	// application_name, which the program chooses, and its address. By is the name that the program gave. They are
	// empty if an earlier release wrote the line.
	Login, Application, Client string
	// Columns are those of a [Changed] line, and Was has their values before, as a JSON object. It may contain
	// personal data.
	Columns []string
	Was     []byte
	// Withheld says that Original and Diff, or Was, are there and are not shown.
	Withheld bool
	// Fingerprint is that of the group, in a line about a group, which has no LetterID. Rule is its rule; 0: none.
	Fingerprint string
	Rule        int64
}

// Sending is a row of the outbox: one retry of one dead letter.
type Sending struct {
	ID       int64
	LetterID string
	// Mark is sent with the record under [envelope.RetryOf]. Nobody else gets it, so a record with this mark belongs
	// to the retry.
	Mark       string
	Topic      string // the original one
	Key, Value []byte
	Headers    []Header
	Tries      int // failed publishes
	By         string
	Job        int64
	CreatedAt  time.Time
	// Published is the place of its record. Stamp is zero if it is not published.
	Published Found
	// Outcome is empty until the retry ended.
	Outcome SendingOutcome
	EndedAt time.Time
	Code    string // why it was not published, or why it is dead again
}

// SendingOutcome is the end of a retry.
type SendingOutcome string

// The ends of a retry.
const (
	SendingStored    SendingOutcome = "stored"    // it has its row
	SendingDead      SendingOutcome = "dead"      // it is dead again
	SendingRefused   SendingOutcome = "refused"   // Kafka did not take it, or retries may not go to its topic
	SendingWithdrawn SendingOutcome = "withdrawn" // its lease ended before it was published
)

// Actor is the author of a change, and the reason.
type Actor struct {
	Name    string // never empty
	Why     string // one line; people must give it
	Job     int64  // 0: none
	Rule    int64  // that moves the letter; 0: none
	Vouched bool   // a desk verified the name by a token or a certificate; else a program claimed it
}
