package ledger

import (
	"context"
	"time"

	"docket/internal/record/envelope"
)

// Surplus is a range of a dead-letter topic in which letters of one client are only in Kafka, because the client
// exceeded its hourly limit. Records of others may be between them.
type Surplus struct {
	ID          int64
	Topic       string
	Partition   int32
	Client      string    // empty: none is proven
	Hour        time.Time // the hour in which they were left
	First, Last int64     // offsets
	Next        int64     // the range was read again up to this offset
	Letters     int64     // of the client in the range
	Entered     int64     // of these, now in the ledger
	Archived    int64     // of these, in an archive
	Lost        int64     // of these, deleted by Kafka before they were read again
	FirstAt     time.Time // earliest Kafka timestamp of the unread rest
	LastAt      time.Time
	LeftAt      time.Time // the first of them was left then
	State       SurplusState
	ClosedAt    time.Time // zero: it is open
	// ArchivedFrom is the offset from which on the archive ArchivedIn has the range.
	ArchivedFrom int64
	ArchivedIn   string
	// OrderedBy ordered that it is entered in spite of the limit; empty: nobody did.
	OrderedBy, OrderedWhy string
	OrderedAt             time.Time
	Growth                int64 // letters of the client in this hour
}

// Open returns how many letters wait in Kafka.
func (s *Surplus) Open() int64 {
	if s.State != SurplusOpen {
		return 0
	}
	return max(s.Letters-s.Entered, 0)
}

// Has reports whether the range covers a record: it is in Kafka or in an archive and not in the ledger. client is its
// client; unproven says that the client is not known.
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

// SurplusState is the state of a range.
type SurplusState string

// The states of a range.
const (
	SurplusOpen     SurplusState = "open"     // some of it is only in Kafka
	SurplusEntered  SurplusState = "entered"  // all of it is in the ledger
	SurplusArchived SurplusState = "archived" // an archive has the letters that are not in the ledger
	SurplusLost     SurplusState = "lost"     // Kafka deleted some before they were read again
)

// SurplusStates returns all states in the order of a range's life.
func SurplusStates() []SurplusState {
	return []SurplusState{SurplusOpen, SurplusEntered, SurplusArchived, SurplusLost}
}

// SurplusSums sums up all ranges.
type SurplusSums struct {
	Letters map[SurplusState]int64 // waiting letters for open ranges; for lost ones those lost since yesterday
	Oldest  time.Time              // the oldest open one was left then; zero: none is open
}

// Portion is a part of a range that was read again.
type Portion struct {
	ID       int64
	From, To int64 // offsets: To is the first that was not read
	Letters  []Letter
	// Anyway enters them in spite of the limit.
	Anyway bool
}

// Passed says how far a range was entered.
type Passed struct {
	Next int64 // next offset to read
	Lost int64 // deleted by Kafka before they were read again, if the range has ended
}

// Growth limits how many letters of a client enter the ledger in an hour. A ledger without a limit makes no surplus,
// but may still have some from before.
type Growth interface {
	// Surplus lists at most n ranges: the open ones, oldest first, or all, newest first. After the range with the id
	// after; 0: from the first.
	Surplus(ctx context.Context, all bool, after int64, n int) ([]Surplus, error)
	// SurplusSums sums up all ranges.
	SurplusSums(ctx context.Context) (SurplusSums, error)
	// EnterSurplus enters letters of a range and moves it on, in one transaction: up to To, or up to the first letter
	// beyond its client's limit. It returns how far that is. ErrLost: another desk has read that portion.
	EnterSurplus(ctx context.Context, p Portion, maxAttempts int, by Actor) (EnteredCount, Passed, error)
	// ArchivedSurplus closes a range after an archive has its unread rest from one offset to another, with this many
	// letters. It returns how many neither the ledger nor the archive has. ErrLost: the range has changed.
	ArchivedSurplus(ctx context.Context, id, from, last int64, archive string, letters int64) (lost int64, err error)
	// OrderSurplus orders that a range is entered in spite of the limit. by.Why is the reason. ErrNotFound: there is
	// no such open range, or it was ordered before.
	OrderSurplus(ctx context.Context, id int64, by Actor) error
	// TrimSurplus removes counts of past hours, and ranges that entered the ledger long ago.
	TrimSurplus(ctx context.Context) error
}

// ClaimedBy reports whether a letter is of that client. If no claim of it is proven any more, because the key was
// replaced, the unproven claim counts.
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
