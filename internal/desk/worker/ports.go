package worker

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/record/home"
)

// Assignment is one assigned partition of a dead-letter topic.
type Assignment interface {
	Topic() string
	Partition() int32
	// Fetch waits for records and returns the next batch. It returns an error when ctx ended or the partition is to
	// be given up.
	Fetch(ctx context.Context) (*home.Batch, error)
	// Commit commits settled records. It fails when the partition is no longer assigned.
	Commit(ctx context.Context, s home.Settled) error
	// Leaving is done when the partition is being given up or the program stops. The batch in hand may be finished,
	// but without pauses.
	Leaving() context.Context
	// Hold stops fetching for this partition until release is called. The program stays a member of the group.
	Hold() (release func())
}

// Place is the place of a published record.
type Place struct {
	Partition int32
	Offset    int64
}

// ErrUnanswered is wrapped by a publisher's error if no broker acknowledged the record in time. The record may still
// be in the topic.
var ErrUnanswered = errors.New("not acknowledged in time")

// Publisher is the brokers.
type Publisher interface {
	// Place sends records and waits for the answers, never longer than its own deadline. It returns a place and an
	// error for each record, in order. A nil error means that the broker has it; only then the place is valid. An
	// error that is kerr.MessageTooLarge says that this record alone is too large. An error that is [ErrUnanswered]
	// says that no broker answered.
	Place(ctx context.Context, records []*kgo.Record) ([]Place, []error)
}

// Sought is a decision to look up by its identity. Its payload is compared with Raw. A row stored from the bytes of
// Raw is equal, even if a trigger changed its payload.
type Sought struct {
	ID   string
	Time time.Time
	Raw  []byte
}

// Found is a row with the identity of a sought decision.
type Found struct {
	N         int // index of the decision
	Topic     string
	Partition int32
	Offset    int64
	Equal     bool // its payload is equal as JSON, or came in the same bytes
}

// Table is decision_logs.
type Table interface {
	// Lookup finds the rows of these decisions. Decisions without a row are not in the result.
	Lookup(ctx context.Context, sought []Sought) ([]Found, error)
}

// Counter counts dead letters for gauges: by state, and those that are snoozed. Each [ledger.Book] is one.
type Counter interface {
	Counts(ctx context.Context, f ledger.Filter) (map[ledger.State]int64, error)
	Snoozed(ctx context.Context) (int64, error)
}

// Observer receives reports. It changes nothing, never blocks and is safe for concurrent use.
type Observer interface {
	// Entered reports letters that are in the ledger.
	Entered(n ledger.EnteredCount)
	// Published counts retried records: in their topics (ok), not taken and to be tried again (failed), or given up
	// (refused).
	Published(ok, failed, refused int)
	// Letters reports the number of dead letters by state.
	Letters(n map[ledger.State]int64)
	// LeftOff reports the days that are out of decision_logs and not dropped.
	LeftOff(days int64)
	// Unarchived reports the dead letters that would be removed if an archive had them.
	Unarchived(letters int64)
	// Unmarked reports the stored retries of edited letters whose rows lack the mark.
	Unmarked(retries int64)
	// Surplus reports the dead letters that are only in Kafka because their clients exceeded the limit.
	Surplus(n ledger.SurplusSums)
	// Forced reports those that entered beyond the limit because Kafka was about to delete them.
	Forced(letters int)
	// Held reports that a partition holds for a reason until release is called.
	Held(reason string) (release func())
	// Snoozed reports the number of letters that are snoozed and not resolved.
	Snoozed(letters int64)
	// Rules reports the number of rules that hold or wait, by state.
	Rules(n map[ledger.RuleState]int64)
	// RuleActed counts letters that rules moved, and RuleStopped the rules that stopped themselves.
	RuleActed(act ledger.Act, letters int)
	RuleStopped()
	// Horizons reports the state of the topics, valid for this long.
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
func (unobserved) Snoozed(int64)                         {}
func (unobserved) Rules(map[ledger.RuleState]int64)      {}
func (unobserved) RuleActed(ledger.Act, int)             {}
func (unobserved) RuleStopped()                          {}
func (unobserved) Held(string) (release func())          { return func() {} }
func (unobserved) Horizons([]HorizonLine, time.Duration) {}

func observed(o Observer) Observer {
	if o == nil {
		return unobserved{}
	}
	return o
}
