package ledger

import (
	"context"
	"time"

	"docket/internal/record/envelope"
)

// Surplus is a range of a dead-letter topic in which letters of one client are in Kafka alone, as the client had brought more than it has room for in
// an hour. Between them are records of others.
type Surplus struct {
	ID          int64
	Topic       string
	Partition   int32
	Client      string    // empty: none that is proven
	Hour        time.Time // in which they were left
	First, Last int64     // offsets
	Next        int64     // offset up to which the range was read again
	Letters     int64     // of the client in the range
	Entered     int64     // of these, now in the ledger
	Archived    int64     // of these, in an archive
	Lost        int64     // of these, deleted by Kafka before they were read again
	FirstAt     time.Time // earliest Kafka timestamp of what is still to be read
	LastAt      time.Time
	LeftAt      time.Time // when the first of them was left
	State       SurplusState
	ClosedAt    time.Time // zero: it is open
	// ArchivedFrom is the offset from which on an archive has it, and ArchivedIn which archive that is.
	ArchivedFrom int64
	ArchivedIn   string
	// OrderedBy had it entered whatever the client brought; empty: nobody did.
	OrderedBy, OrderedWhy string
	OrderedAt             time.Time
	Growth                int64 // letters that the client brought in this hour
}

// Open is how many letters wait in Kafka.
func (s *Surplus) Open() int64 {
	if s.State != SurplusOpen {
		return 0
	}
	return max(s.Letters-s.Entered, 0)
}

// Has says whether the range says of a record that it is in Kafka or in an archive and not in the ledger. client is whose it is; unproven says
// that this is not known.
func (s *Surplus) Has(topic string, partition int32, offset int64, client string, unproven bool) bool {
	from := s.Next
	switch s.State {
	case SurplusArchived:
		from = s.ArchivedFrom
	case SurplusOpen:
	case SurplusEntered, SurplusLost:
		return false
	}
	return s.Topic == topic && s.Partition == partition && (s.Client == client || unproven) && from <= offset && offset <= s.Last
}

// SurplusState is where a range stands.
type SurplusState string

// The states of a range.
const (
	SurplusOpen     SurplusState = "open"     // some of it is in Kafka alone
	SurplusEntered  SurplusState = "entered"  // all of it is in the ledger
	SurplusArchived SurplusState = "archived" // an archive has what is not in the ledger
	SurplusLost     SurplusState = "lost"     // Kafka deleted some before they were read again
)

// SurplusStates lists all states in the order of a range's life.
func SurplusStates() []SurplusState {
	return []SurplusState{SurplusOpen, SurplusEntered, SurplusArchived, SurplusLost}
}

// SurplusSums is how much is left out.
type SurplusSums struct {
	Letters map[SurplusState]int64 // of open ranges what waits; of lost ones what is gone since yesterday
	Oldest  time.Time              // when the oldest that is open was left; zero: none is
}

// Portion is what was read again of a range.
type Portion struct {
	ID       int64
	From, To int64 // offsets: To is the first that was not read
	Letters  []Letter
	// Anyway enters them whatever the client brought.
	Anyway bool
}

// Passed is how far a range was entered.
type Passed struct {
	Next int64 // offset of what comes next
	Lost int64 // of the range, where it has ended: deleted by Kafka before they were read again
}

// Growth bounds how many letters a client brings into the ledger in an hour. A ledger without a bound has no surplus, but may still have some of before.
type Growth interface {
	// Surplus lists the open ranges, oldest first, or all ranges, newest first; at most n.
	Surplus(ctx context.Context, all bool, n int) ([]Surplus, error)
	// SurplusSums sums them up.
	SurplusSums(ctx context.Context) (SurplusSums, error)
	// EnterSurplus enters letters of a range and moves it on, in one transaction: up to To, or up to the first letter that its client has no room for. It
	// says how far that is. ErrLost: somebody else has read that portion.
	EnterSurplus(ctx context.Context, p Portion, maxAttempts int, by Actor) (EnteredCount, Passed, error)
	// ArchivedSurplus closes a range of which an archive has what was not read again, from an offset up to and with another: so many letters. ErrLost: the range
	// is another by now. It says how many neither the ledger nor the archive has.
	ArchivedSurplus(ctx context.Context, id, from, last int64, archive string, letters int64) (lost int64, err error)
	// OrderSurplus has a range entered whatever its client brought. by.Why is the reason. ErrNotFound: there is no such open range, or somebody ordered it before.
	OrderSurplus(ctx context.Context, id int64, by Actor) error
	// TrimSurplus forgets counts of past hours and ranges that are in the ledger for long.
	TrimSurplus(ctx context.Context) error
}

// ClaimedBy says whether a letter is of that client, or says so where nothing that it says is proven any more: the key that proved it may be replaced.
func (l *Letter) ClaimedBy(client string) bool {
	if l.Client == client {
		return true
	}
	if l.Cause.Kind != envelope.Foreign {
		return false
	}
	for _, h := range l.Headers {
		if h.Key == envelope.UploadedBy && string(h.Value) == client {
			return true
		}
	}
	return false
}
