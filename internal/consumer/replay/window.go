// Package replay looks ahead in a partition of the parking topic and lets due records through to the pipeline. A
// record that has to wait does not block the due ones behind it.
//
// The pipeline carries replayed records like any others. The partition's account keeps the commit before any waiting
// record. The package imports no client, and stores and classifies nothing.
package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// Assigned is an assigned partition of the parking topic.
type Assigned interface {
	pipeline.Assignment
	// Account returns the account of the partition's offsets.
	Account() *home.Account
	// Take waits for at least one record, and for room for it beside the records of other partitions. Then it gathers
	// up to the limits, at most wait after the first. If ctx ends it returns ctx's error and takes nothing.
	Take(ctx context.Context, records int, bytes int64, wait time.Duration) ([]*kgo.Record, error)
	// Done gives back the memory of taken records that are done: their bytes by Config's Weigh.
	Done(bytes int64)
	// Allowed returns how many bytes the taken records may grow to once they are opened.
	Allowed() int64
	// Bounds returns the next offset to be read and the current end of the log.
	Bounds(ctx context.Context) (next, end int64, err error)
	// Failing returns why the partition cannot be read now; nil: no reason is known.
	Failing() error
}

// Config holds the limits of a window.
type Config struct {
	Lookahead    int                       // records past the last commit that are read, at least 1
	Weigh        func(r *kgo.Record) int64 // the memory of a record in bytes
	MaxBackoff   time.Duration             // a not-before further away counts as this far from the record's Kafka timestamp
	BatchRecords int                       // let through at a time, at least 1
	BatchBytes   int64
	BatchWait    time.Duration // for more records, after the first
	Once         bool          // end when no record in the log is due now
	Keys         envelope.Keys // without proof by them a record counts as parked for the first time, at its present place
	// First returns whether due records of an original topic go before others; nil: all go in offset order. A proof is
	// needed, as anyone can write a header.
	First func(topic string) bool
	// Unproven is called with the number of records in a portion that lack such a proof, and the first of them; nil:
	// not called.
	Unproven func(n int, first *kgo.Record)
	// Unread is called where a run with Once ends before the end of the log: as many offsets were not looked at. nil:
	// not called.
	Unread func(offsets int64)
}

// Due returns when a record of the parking topic may be let through, as seen now: at most maxBackoff from now. Zero: at
// once, also if keys do not prove the record.
func Due(r *kgo.Record, keys envelope.Keys, maxBackoff time.Duration) time.Time {
	if !keys.Prove(r) {
		return time.Time{}
	}
	return bounded(envelope.Due(r, maxBackoff), time.Now().Add(maxBackoff))
}

// bounded returns when a record is due, and latest if that is earlier. The clock may have been ahead when the record was
// parked.
func bounded(due, latest time.Time) time.Time {
	if due.After(latest) {
		return latest
	}
	return due
}

// quiet is how long a run with Once waits for the end of the log before it counts as reached. Control records take up
// offsets and are never delivered.
const quiet = 10 * time.Second

// Window lets the due records of one partition through. It belongs to the goroutine that carries the partition.
// Waiting may be called from any goroutine.
type Window struct {
	Assigned
	cfg Config

	waiting []parked // in offset order
	passed  int64    // bytes of the last batch that was let through, until it is done
	found   bool     // Ready saw that a record is due, and Fetch did not look yet
	count   atomic.Int64

	known  bool // next and end are
	next   int64
	end    int64
	unread int64 // offsets below end that found no room
}

type parked struct {
	record *kgo.Record
	due    time.Time // zero: now
	first  bool      // it goes before others that are due
	passes bool      // it is in the batch that is let through now
	bytes  int64
}

var _ pipeline.Assignment = (*Window)(nil)

// New makes the window of a partition that was just assigned.
func New(cfg Config, a Assigned) *Window {
	return &Window{Assigned: a, cfg: cfg}
}

// Waiting returns the number of records that were read and not yet let through.
func (w *Window) Waiting() int { return int(w.count.Load()) }

// Fetch waits for due records and returns them as a batch, in offset order. After Ready it does not wait. If the
// clock was set back since, the batch may be empty.
func (w *Window) Fetch(ctx context.Context) (*home.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // records that are not let through stay in the window
	}
	if !w.found {
		if err := w.Ready(ctx); err != nil {
			return nil, err
		}
	}
	w.found = false
	b := w.Account().Batch(w.pass(time.Now()))
	b.Limit(w.Allowed())
	return b, nil
}

// Ready waits until a record is due. The call also says that the batch before is done.
func (w *Window) Ready(ctx context.Context) error {
	if w.passed > 0 {
		w.Done(w.passed)
		w.passed = 0
	}
	for !w.due(time.Now()) {
		done, err := w.finished(ctx)
		if err != nil {
			return err
		}
		if done {
			return pipeline.ErrDone
		}
		if err := w.look(ctx); err != nil {
			return err
		}
	}
	w.found = true
	return ctx.Err()
}

// due reports whether any waiting record is due.
func (w *Window) due(now time.Time) bool {
	return slices.ContainsFunc(w.waiting, func(p parked) bool { return !p.due.After(now) })
}

// pass takes up to a batch of due records out of the window, in offset order. Those that go before others are
// chosen first. The first one that does not fit ends the batch: of two payloads of one identity, the earlier goes first.
// Nothing starves, because the look-ahead counts from the lowest offset that waits.
func (w *Window) pass(now time.Time) []*kgo.Record {
	var due []*kgo.Record
	var bytes int64
	n := 0
choose:
	for _, first := range []bool{true, false} {
		for i := range w.waiting {
			p := &w.waiting[i]
			if p.first != first || p.due.After(now) {
				continue
			}
			if n >= w.cfg.BatchRecords || n > 0 && bytes+p.bytes > w.cfg.BatchBytes {
				break choose
			}
			p.passes = true
			bytes += p.bytes
			n++
		}
	}
	keep := w.waiting[:0]
	for _, p := range w.waiting {
		if p.passes {
			due = append(due, p.record)
		} else {
			keep = append(keep, p)
		}
	}
	clear(w.waiting[len(keep):])
	w.waiting = keep
	w.passed += bytes
	w.count.Store(int64(len(w.waiting)))
	return due
}

// look reads on while there is room, else it only waits. Both end when the next record is due.
func (w *Window) look(ctx context.Context) error {
	waking := ctx
	if next, ok := w.earliest(); ok {
		var cancel context.CancelFunc
		waking, cancel = context.WithDeadline(ctx, next)
		defer cancel()
	}
	room := w.cfg.Lookahead - w.Account().Open()
	if room <= 0 {
		<-waking.Done()
		return ctx.Err()
	}
	if w.cfg.Once {
		var cancel context.CancelFunc
		waking, cancel = context.WithTimeout(waking, quiet)
		defer cancel()
	}
	from := time.Now()
	records, err := w.Take(waking, min(room, w.cfg.BatchRecords), w.cfg.BatchBytes, w.cfg.BatchWait)
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			if w.cfg.Once && time.Since(from) >= quiet {
				return w.ended(ctx)
			}
			return nil
		}
		return err
	}
	w.Account().Enter(records...)
	latest := time.Now().Add(w.cfg.MaxBackoff) // no record waits longer
	unproven, first := 0, (*kgo.Record)(nil)
	for _, r := range records {
		p := parked{record: r, bytes: w.cfg.Weigh(r)} // weighed with its headers as taken, before untrusted ones are dropped
		if !w.cfg.Keys.Prove(r) {
			envelope.Distrust(r)
			if unproven++; first == nil {
				first = r
			}
		}
		p.first = w.cfg.First != nil && w.cfg.First(envelope.OriginalTopicOf(r))
		p.due = bounded(envelope.Due(r, w.cfg.MaxBackoff), latest)
		w.waiting = append(w.waiting, p)
		w.next = r.Offset + 1
	}
	if unproven > 0 && w.cfg.Unproven != nil {
		w.cfg.Unproven(unproven, first)
	}
	w.count.Store(int64(len(w.waiting)))
	return nil
}

// ended takes a log that was quiet as read to its end: the rest is control records, or finds no room. It fails if the log was
// quiet because it cannot be read.
func (w *Window) ended(ctx context.Context) error {
	if err := w.Failing(); err != nil {
		return fmt.Errorf("read to the end of the partition: %w", err)
	}
	next, _, err := w.Bounds(ctx)
	if err != nil { // nobody may have answered
		return fmt.Errorf("find the end of the partition: %w", err)
	}
	w.unread = max(0, w.end-max(next, w.next)) // control records were passed
	w.next = w.end
	return nil
}

// earliest returns when the next waiting record is due.
func (w *Window) earliest() (time.Time, bool) {
	var first time.Time
	for i, p := range w.waiting {
		if i == 0 || p.due.Before(first) {
			first = p.due
		}
	}
	return first, len(w.waiting) > 0
}

// finished reports, in a run with Once, that no record is due and none can be read.
func (w *Window) finished(ctx context.Context) (bool, error) {
	if !w.cfg.Once {
		return false, nil
	}
	if !w.known {
		next, end, err := w.Bounds(ctx)
		if err != nil {
			return false, fmt.Errorf("find the end of the partition: %w", err)
		}
		if next > end {
			return false, fmt.Errorf("offset %d of the group is beyond the end of the partition, %d: the topic was made again, or lost records", next, end)
		}
		w.known, w.next, w.end = true, max(next, w.next), end
	}
	if w.next < w.end && w.Account().Open() < w.cfg.Lookahead {
		return false, nil
	}
	if unread := w.unread + max(0, w.end-w.next); unread > 0 && w.cfg.Unread != nil {
		w.cfg.Unread(unread)
	}
	return true, nil
}
