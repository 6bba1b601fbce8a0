package worker

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/record/home"
)

// Assignment is one partition of a dead-letter topic that is ours for the time being.
type Assignment interface {
	Topic() string
	Partition() int32
	// Fetch waits for records and returns the next batch. It ends with an error when ctx ended or the partition is to be
	// given up.
	Fetch(ctx context.Context) (*home.Batch, error)
	// Commit writes down what is settled. It is refused when the partition is no longer ours.
	Commit(ctx context.Context, s home.Settled) error
	// Leaving is done when the partition is being given up or the program stops: what is in hand may be finished, no
	// pause is kept.
	Leaving() context.Context
	// Hold stops fetching for this partition until release is called; membership of the group goes on.
	Hold() (release func())
}

// Place is where the broker put a record.
type Place struct {
	Partition int32
	Offset    int64
}

// ErrUnanswered is in the tree of a publisher's error that says that no broker acknowledged the record in time. It may be
// in the topic all the same.
var ErrUnanswered = errors.New("not acknowledged in time")

// Publisher is the brokers.
type Publisher interface {
	// Place sends records and waits for the answers, never longer than its own deadline. It returns a place and an error
	// for each record, in order; nil means that the broker has it, and only then the place means something. An error that
	// is kerr.MessageTooLarge says that this record alone is too large; one that is [ErrUnanswered] that nobody answered.
	Place(ctx context.Context, records []*kgo.Record) ([]Place, []error)
}

// Sought is a decision to look up by its identity, its payload compared with Raw. A row that came in the bytes of Raw is equal,
// whatever a trigger made of its payload.
type Sought struct {
	ID   string
	Time time.Time
	Raw  []byte
}

// Found is a row that has the identity of a decision that was sought.
type Found struct {
	N         int // which of them, from 0
	Topic     string
	Partition int32
	Offset    int64
	Equal     bool // its payload is that of the decision, as JSON, or came in the same bytes
}

// Table is decision_logs.
type Table interface {
	// Lookup finds the rows of these decisions; a decision without one is not in the answer.
	Lookup(ctx context.Context, sought []Sought) ([]Found, error)
}

// Counter counts dead letters by state. It is the part of [ledger.Reader] that is asked for gauges.
type Counter interface {
	Counts(ctx context.Context, f ledger.Filter) (map[ledger.State]int64, error)
}

// Observer is told what happens. It changes nothing, never blocks and is safe for concurrent use.
type Observer interface {
	// Entered: so many letters are in the ledger.
	Entered(n ledger.EnteredCount)
	// Published: so many retried records are in their topics (ok), were not taken and will be tried again (failed), or were
	// given up (refused).
	Published(ok, failed, refused int)
	// Letters is how many dead letters there are by state.
	Letters(n map[ledger.State]int64)
	// LeftOff is how many days are out of decision_logs and not dropped.
	LeftOff(days int64)
	// Unarchived is how many dead letters would be removed, had an archive them.
	Unarchived(letters int64)
	// Unmarked is how many stored retries of edited letters have rows that do not say so.
	Unmarked(retries int64)
	// Surplus is how many dead letters are in Kafka alone because their clients brought too many.
	Surplus(n ledger.SurplusSums)
	// Forced: so many of them entered although their clients had no room, as Kafka was about to delete them.
	Forced(letters int)
	// Held: a partition stands still for a reason until release is called.
	Held(reason string) (release func())
	// Horizons are how things stand with the topics, good for so long.
	Horizons(lines []HorizonLine, good time.Duration)
}

// unobserved is the observer where there is none.
type unobserved struct{}

func (unobserved) Entered(ledger.EnteredCount)           {}
func (unobserved) Published(int, int, int)               {}
func (unobserved) Letters(map[ledger.State]int64)        {}
func (unobserved) LeftOff(int64)                         {}
func (unobserved) Unarchived(int64)                      {}
func (unobserved) Unmarked(int64)                        {}
func (unobserved) Surplus(ledger.SurplusSums)            {}
func (unobserved) Forced(int)                            {}
func (unobserved) Held(string) (release func())          { return func() {} }
func (unobserved) Horizons([]HorizonLine, time.Duration) {}

func observed(o Observer) Observer {
	if o == nil {
		return unobserved{}
	}
	return o
}
