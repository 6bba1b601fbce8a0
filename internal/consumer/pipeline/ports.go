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

// Assignment is one assigned partition.
type Assignment interface {
	Topic() string
	Partition() int32
	// Ready waits until there are records for a batch, as many as Fetch gathers. It takes nothing and ends as Fetch
	// does.
	Ready(ctx context.Context) error
	// Fetch waits for records and returns the next batch. After Ready it does not wait, and may return an empty
	// batch. It returns [ErrDone] when the partition has no more work. It returns another error when ctx ended or the
	// partition is to be given up.
	Fetch(ctx context.Context) (*home.Batch, error)
	// Commit commits settled records. It fails when the partition is no longer assigned. nil means that the broker
	// has the commit, or that there was nothing new to commit.
	Commit(ctx context.Context, s home.Settled) error
	// Leaving is done when the partition is being given up or the program stops. The batch in hand may be finished,
	// but without pauses.
	Leaving() context.Context
	// Hold stops fetching for this partition until release is called. The program stays a member of the group.
	Hold() (release func())
}

// Row is a decision to be stored, with the place where it was first read.
type Row struct {
	Log       *decision.Log
	Topic     string
	Partition int32
	Offset    int64
	Index     int
	// UploadedBy is the collector's client that uploaded it, if proven; empty if there is none.
	UploadedBy string
}

// Outcome is the result for a row that the database did not refuse.
type Outcome uint8

const (
	// Stored means that this write added the row.
	Stored Outcome = iota + 1
	// Present means that the decision was stored before, with an equal payload.
	Present
	// Conflicting means that the decision was stored before, with a different payload.
	Conflicting
)

// Store is the table.
type Store interface {
	// Store writes rows in one transaction, all or none, and returns the outcome of each, in order. It may be
	// repeated with the same rows at any time: a decision is stored once. Of rows with one identity the earlier wins.
	// fresh asks for a connection that was not used before.
	//
	// [errclass.Classify] tells whose fault an error is. The error may implement interface{ Row() (int, bool) }: the
	// index in rows at which the server stopped. It is a hint for the search, never proof.
	//
	// After Store returned without an error, nothing may read rows or the memory that they point to: it is used
	// again.
	Store(ctx context.Context, rows []Row, fresh bool) ([]Outcome, error)
	// Foresee returns the positions of the rows that the named constraint would refuse, in order. The result is a
	// hint, never proof, and may be empty at any time. After it returned, nothing reads rows.
	Foresee(ctx context.Context, rows []Row, constraint string) ([]int, error)
	// Refusals asks the table about each row alone and keeps none of them. refused[i] is the error of class Data for
	// rows[i], or nil. Any other failure is the error, and then nothing is known about any row.
	//
	// If probe is not zero, the questions go over a connection that never stored a row and is a few seconds old at
	// most. Afterwards a known-good row of that time is written there and rolled back, as Probe does. The error is an
	// [Unwell] if the table refuses that row. After Refusals returned, nothing reads rows.
	Refusals(ctx context.Context, rows []Row, probe time.Time) (refused []error, err error)
	// Probe writes a known-good row of the given time by the same statement, on a fresh connection, and rolls it
	// back. Then it commits something harmless and waits for that. The zero time means the present, or the time of a
	// stored row.
	Probe(ctx context.Context, at time.Time) error
}

// Unwell says that the table did not take a known-good row.
type Unwell struct{ Err error }

func (u *Unwell) Error() string { return u.Err.Error() }
func (u *Unwell) Unwrap() error { return u.Err }

// Tokens is the limit on rows that are written in a second.
type Tokens interface {
	// Take returns how many of n rows may be written now: at least 1, or 0 if ctx or leaving ended first. After leaving
	// ended it does not wait. Before it waits for the first time it calls pause. After a wait it calls resume as soon as
	// rows are granted. It grants no others of the same kind of lane before resume returned. low says that the rows
	// count against the low limit, too.
	Take(ctx, leaving context.Context, low bool, n int, pause, resume func()) (granted int)
}

// Publisher is the Kafka producer.
type Publisher interface {
	// Publish sends records and waits for the answers, never longer than its own deadline. It returns one error for
	// each record, in order; nil means that the broker has it. An error that is kerr.MessageTooLarge says that this
	// record alone is too large for its topic. Nothing reads the bytes of a record after nil was returned for it.
	Publish(ctx context.Context, records []*kgo.Record) []error
}

// Spool is the home of last resort.
type Spool interface {
	// Append makes records durable, all or none. oversize says that the broker refused them as too large. Nothing reads
	// them after it returned.
	Append(ctx context.Context, records []*kgo.Record, oversize bool) error
}

// Hold is the reason why a partition holds.
type Hold struct {
	Reason string // one of the Reason constants: a metric label
	Code   string // SQLSTATE or a code of Docket, or empty
	Hint   string // advice for an operator
}

// Event returns the fields that tell one hold from another: the reason, and the code and hint if somebody has to
// repair something. The same code can need two repairs: an unknown certificate, and then an expired one.
func (h Hold) Event() Hold {
	if h.Reason == ReasonDatabaseRefuses || h.Reason == ReasonNoHome {
		return h
	}
	return Hold{Reason: h.Reason}
}

// same reports whether two holds are one to an operator.
func (h Hold) same(other Hold) bool { return h.Event() == other.Event() && h.Code == other.Code }

// Reasons of a hold.
const (
	ReasonDatabaseAway    = "database_away"    // it fails for the moment, and enough batches were parked
	ReasonDatabaseRefuses = "database_refuses" // the set-up is to blame: schema, grants, space, credentials
	ReasonReadOnly        = "read_only"        // the node takes no writes
	ReasonNoHome          = "no_home"          // Kafka does not take a record and the spool cannot
)

// Reasons returns every reason of a hold.
func Reasons() []string {
	return []string{ReasonDatabaseAway, ReasonDatabaseRefuses, ReasonReadOnly, ReasonNoHome}
}

// Observer receives reports. It changes nothing, never blocks and is safe for concurrent use.
type Observer interface {
	// Took reports that n decisions of a batch were read.
	Took(n int)
	// Gave reports that n of these decisions got no home and were not committed.
	Gave(n int)
	// StoreFailed reports that one write failed.
	StoreFailed(v errclass.Classification)
	// Retried reports that a write is tried again after a pause.
	Retried()
	// Bisected reports that a search for bad records ended after this many writes.
	Bisected(writes int)
	// PublishFailed reports that the broker did not take a record for this topic.
	PublishFailed(topic string, err error)
	// Held reports that a partition holds until release is called.
	Held(topic string, partition int32, h Hold) (release func())
	// Homed reports that every decision of a batch, or of a portion of a large record, has its home.
	Homed(r HomedBatch)
}

// Tracer follows batches.
type Tracer interface {
	// Batch starts a trace of a batch that is in hand since then. Work in the returned context belongs to the batch.
	// After Batch returned, nothing reads the records.
	Batch(ctx context.Context, since time.Time, records []*kgo.Record) (context.Context, Trace)
}

// Trace follows one batch. It belongs to the goroutine that carries it, never blocks and changes nothing.
type Trace interface {
	// ID returns the name of the trace in log lines, or "" if it is not recorded.
	ID() string
	// Letter says that the decision at index of this record is about to be forwarded. It returns the value of
	// x-traceparent, or "" for none. After it returned, nothing reads the record.
	Letter(r *kgo.Record, index int) string
	// Held says that the batch holds until release is called.
	Held(h Hold) (release func())
	// Homed says that every decision of the batch or of a portion has its home. The report is valid until it returns.
	Homed(r HomedBatch)
	// Committing says that the offset is being committed until done is called.
	Committing() (done func(error))
	// End says that the batch is done, or was left uncommitted because of an error.
	End(err error)
}

// untraced is the trace without a tracer.
type untraced struct{}

func (untraced) ID() string                     { return "" }
func (untraced) Letter(*kgo.Record, int) string { return "" }
func (untraced) Held(Hold) func()               { return func() {} }
func (untraced) Homed(HomedBatch)               {}
func (untraced) Committing() func(error)        { return func(error) {} }
func (untraced) End(error)                      {}

// HomedBatch describes a batch whose decisions all have a home.
type HomedBatch struct {
	Topic     string
	Partition int32
	Records   int    // Kafka records
	First     int64  // offset of the first of them
	Last      int64  // offset of the last of them
	Trace     string // name of the trace, or empty
	Took      time.Duration
	// Decisions yields those of the batch in order. It is valid only during the call of [Observer.Homed].
	Decisions iter.Seq[Decision]
}

// Decision describes one decision in a report.
type Decision struct {
	Home   home.Home
	Offset int64          // in the topic that it was just read from
	Index  int            // place inside its Kafka record; envelope.NoIndex if it was never decoded
	Time   time.Time      // the decision's own time, zero if it was not decoded
	Came   time.Time      // the Kafka timestamp of its record
	Cause  envelope.Cause // zero if it has a row
	ID     string         // dead-letter id if it was forwarded
}
