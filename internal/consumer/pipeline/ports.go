package pipeline

import (
	"context"
	"iter"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/errclass"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// Assignment is one partition that is ours for the time being.
type Assignment interface {
	Topic() string
	Partition() int32
	// Ready waits until there are records for a batch, as many as Fetch gathers. It takes nothing and ends as Fetch does.
	Ready(ctx context.Context) error
	// Fetch waits for records and returns the next batch. After Ready it does not wait, and may return a batch of none.
	// It ends with [ErrDone] when there is nothing more to do here, and with another error when ctx ended or the
	// partition is to be given up.
	Fetch(ctx context.Context) (*home.Batch, error)
	// Commit writes down what is settled. It is refused when the partition is no longer ours. nil means that the
	// broker has it, or that there was nothing new to write.
	Commit(ctx context.Context, s home.Settled) error
	// Leaving is done when the partition is being given up or the program stops: what is in hand may be finished, no
	// pause is kept.
	Leaving() context.Context
	// Hold stops fetching for this partition until release is called; membership of the group goes on.
	Hold() (release func())
}

// Row is a decision to be stored, with the place where it was first read.
type Row struct {
	Log       *decision.Log
	Topic     string
	Partition int32
	Offset    int64
	Index     int
	// UploadedBy is the client of the collector that uploaded it, proven; empty where there is none.
	UploadedBy string
}

// Outcome is what became of a row that the database did not refuse.
type Outcome uint8

const (
	// Stored means that the row is in the table now, and was not before.
	Stored Outcome = iota + 1
	// Present means that the decision was there with an equal payload.
	Present
	// Conflicting means that the decision is there with a different payload.
	Conflicting
)

// Store is the table.
type Store interface {
	// Store writes rows in one transaction, all or none, and says what became of each, in order. It may be repeated
	// with the same rows at any time: a decision is stored once. Of rows with one identity the earlier wins. fresh asks
	// for a connection that was not used before. The error tells whose fault it is through [errclass.Classify]. It may
	// hold, for errors.AsType, an interface{ error; Row() (int, bool) }: the index in rows at which the server stopped, a
	// hint of where to look first and never proof. After Store returned without an error nothing may look at rows any
	// more, nor at what they point to: their memory is used again.
	Store(ctx context.Context, rows []Row, fresh bool) ([]Outcome, error)
	// Foresee says which rows the constraint of this name would refuse: their positions, in order. It is a hint of where
	// to look first and never proof; none may be foreseen at any time. Once it returned nothing looks at rows any more.
	Foresee(ctx context.Context, rows []Row, constraint string) ([]int, error)
	// Refusals asks the table about each row alone and keeps none of them. refused[i] is why rows[i] is refused, a fault
	// of class Data; nil where it is not. Any other failure is the error, and then nothing is known of any row. Where
	// probe is not zero it asks on a connection that nothing was ever stored on and that is a few seconds old at most, and
	// has a known-good row of that time written and taken back on it afterwards, as Probe does; the error is an [Unwell]
	// where the table refuses that. Once it returned nothing looks at rows any more.
	Refusals(ctx context.Context, rows []Row, probe time.Time) (refused []error, err error)
	// Probe writes a known-good row of the given time by the same statement, on a fresh connection, and takes it back. Then
	// it commits something harmless and waits for that. The zero time stands for the present, or that of a stored row.
	Probe(ctx context.Context, at time.Time) error
}

// Unwell says that the table did not take a known-good row.
type Unwell struct{ Err error }

func (u *Unwell) Error() string { return u.Err.Error() }
func (u *Unwell) Unwrap() error { return u.Err }

// Publisher is the Kafka producer.
type Publisher interface {
	// Publish sends records and waits for the answers, never longer than its own deadline. It returns one error for
	// each record, in order; nil means that the broker has it. An error that is kerr.MessageTooLarge says that this
	// record alone is too large for its topic.
	Publish(ctx context.Context, records []*kgo.Record) []error
}

// Spool is the home of last resort.
type Spool interface {
	// Append makes records durable, as a whole or not at all. oversize says that the broker refused them as too large.
	Append(ctx context.Context, records []*kgo.Record, oversize bool) error
}

// Hold is a reason to stand still.
type Hold struct {
	Reason string // one of the Reason constants: a metric label
	Code   string // SQLSTATE or a code of ours, empty where there is none
	Hint   string // what an operator can do
}

// Event is what tells one event from another: the reason, and where somebody has something to repair also what. The same
// code can ask for another repair: a certificate that is not known, and then one that has expired.
func (h Hold) Event() Hold {
	if h.Reason == ReasonDatabaseRefuses || h.Reason == ReasonNoHome {
		return h
	}
	return Hold{Reason: h.Reason}
}

// Why a partition stands still.
const (
	ReasonDatabaseAway    = "database_away"    // it fails for the moment's sake, and enough batches were parked
	ReasonDatabaseRefuses = "database_refuses" // the set-up is to blame: schema, grants, space, credentials
	ReasonReadOnly        = "read_only"        // the node takes no writes
	ReasonNoHome          = "no_home"          // Kafka does not take it and the spool cannot
)

// Reasons lists every reason of a hold.
func Reasons() []string {
	return []string{ReasonDatabaseAway, ReasonDatabaseRefuses, ReasonReadOnly, ReasonNoHome}
}

// Observer is told what happens. It changes nothing, never blocks and is safe for concurrent use.
type Observer interface {
	// Took: n decisions of a batch were read.
	Took(n int)
	// Gave: n decisions that were taken are given back without a home, uncommitted.
	Gave(n int)
	// StoreFailed: one write failed.
	StoreFailed(v errclass.Verdict)
	// Retried: a write is tried again after a pause.
	Retried()
	// Bisected: a search for bad records ended after so many writes.
	Bisected(writes int)
	// PublishFailed: the broker did not take a record for this topic.
	PublishFailed(topic string, err error)
	// Held: a partition stands still until release is called.
	Held(topic string, partition int32, h Hold) (release func())
	// Homed: every decision of a batch has its home, or of a portion of a large record.
	Homed(r Report)
}

// Tracer follows batches.
type Tracer interface {
	// Batch: a batch of these records is in hand since then. What is done in the context that it returns belongs to the
	// batch. Nothing of the records is looked at once it returned.
	Batch(ctx context.Context, since time.Time, records []*kgo.Record) (context.Context, Trace)
}

// Trace follows one batch. It belongs to the goroutine that carries it, never blocks and changes nothing.
type Trace interface {
	// ID is what the trace is called in log lines, empty where it is not recorded.
	ID() string
	// Letter: the decision at index of this record is about to be forwarded. It returns what its x-traceparent is to say,
	// empty for none. Nothing of the record is looked at once it returned.
	Letter(r *kgo.Record, index int) string
	// Held: the batch stands still until release is called.
	Held(h Hold) (release func())
	// Homed: every decision has its home, or those of a portion have. The report is good until it returns.
	Homed(r Report)
	// Committing: its offset is being committed, until done is called.
	Committing() (done func(error))
	// End: the batch is done with, or left uncommitted for an error.
	End(err error)
}

// untraced is the trace where nobody follows.
type untraced struct{}

func (untraced) ID() string                     { return "" }
func (untraced) Letter(*kgo.Record, int) string { return "" }
func (untraced) Held(Hold) func()               { return func() {} }
func (untraced) Homed(Report)                   {}
func (untraced) Committing() func(error)        { return func(error) {} }
func (untraced) End(error)                      {}

// Report is a batch of which every decision has its home.
type Report struct {
	Topic     string
	Partition int32
	Records   int    // Kafka records
	First     int64  // offset of the first of them
	Last      int64  // offset of the last of them
	Trace     string // what its trace is called, empty where there is none
	Took      time.Duration
	// Decisions are those of the batch in order, good while [Observer.Homed] is called and no longer.
	Decisions iter.Seq[Decision]
}

// Decision is what a report tells of one decision.
type Decision struct {
	Home   home.Home
	Offset int64          // where it was read just now
	Index  int            // place inside its Kafka record; envelope.NoIndex where it was never decoded
	Time   time.Time      // the decision's own time, zero where it was not decoded
	Cause  envelope.Cause // zero where it has a row
	ID     string         // dead-letter id where it was forwarded
}
