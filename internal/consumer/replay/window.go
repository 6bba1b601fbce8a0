// Package replay is the gate before a replay: it looks ahead in a partition of the parking topic and lets through
// what is due, so that a record which still has to wait blocks nobody behind it.
//
// What it lets through is carried by the same pipeline as any other record. The books of the partition see to it that
// nothing is committed past a record that still waits. The package stays free of clients, of storing and classifying.
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
	// Account is the partition's books.
	Account() *home.Account
	// Take waits for at least one record, and for room for it beside what other partitions have taken, and gathers up to the
	// limits, at most wait after the first. It ends with ctx's error, and then has taken nothing.
	Take(ctx context.Context, records int, bytes int64, wait time.Duration) ([]*kgo.Record, error)
	// Done says that records are done with that were taken and take so many bytes, by Config's Weigh.
	Done(bytes int64)
	// Allowed is how many bytes records that were taken may grow to once they are opened.
	Allowed() int64
	// Bounds are the next offset to be read and the end of the log now.
	Bounds(ctx context.Context) (next, end int64, err error)
}

// Config bounds what a window holds.
type Config struct {
	Lookahead    int                       // records past the last commit that are looked at, at least 1
	Weigh        func(r *kgo.Record) int64 // bytes that a record takes
	MaxBackoff   time.Duration             // a not-before further away counts as this far from the record's Kafka timestamp
	BatchRecords int                       // let through at a time, at least 1
	BatchBytes   int64
	BatchWait    time.Duration // for more, after the first record
	Once         bool          // end when nothing that is in the log now is due
	Keys         envelope.Keys // without proof by them a record counts as parked for the first time, where it is now
	// Unproven is told how many records of a portion had no such proof, and the first of them; nil: nobody is.
	Unproven func(n int, first *kgo.Record)
}

// quiet is how long the log's end may fail to show up in a run with Once before it counts as reached: control records
// take up offsets and are never delivered.
const quiet = 10 * time.Second

// Window is the gate of one partition. It belongs to the goroutine that carries the partition; Waiting may be called
// from anywhere.
type Window struct {
	Assigned
	cfg Config

	waiting []parked // in offset order
	passed  int64    // bytes of the batch that was let through last, until it is done with
	found   bool     // Ready saw that a record is due, and Fetch did not look yet
	count   atomic.Int64

	bounded bool // next and end are known
	next    int64
	end     int64
}

type parked struct {
	record *kgo.Record
	due    time.Time // zero: now
	bytes  int64
}

var _ pipeline.Assignment = (*Window)(nil)

// New makes the gate of a partition that was just assigned.
func New(cfg Config, a Assigned) *Window {
	return &Window{Assigned: a, cfg: cfg}
}

// Waiting is the number of records that were read and are not let through yet.
func (w *Window) Waiting() int { return int(w.count.Load()) }

// Fetch waits for records that are due and lets them through as a batch, in offset order. After Ready it waits no
// longer: where the clock was set back since, there may be none.
func (w *Window) Fetch(ctx context.Context) (*home.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // what is not let through stays where it is
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

// Ready waits until a record is due. It means that the batch before is done with.
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

// due says whether any record that waits is due.
func (w *Window) due(now time.Time) bool {
	return slices.ContainsFunc(w.waiting, func(p parked) bool { return !p.due.After(now) })
}

// pass takes up to a batch of due records out of the window.
func (w *Window) pass(now time.Time) []*kgo.Record {
	var due []*kgo.Record
	var bytes int64
	keep := w.waiting[:0]
	for _, p := range w.waiting {
		full := len(due) >= w.cfg.BatchRecords || len(due) > 0 && bytes+p.bytes > w.cfg.BatchBytes
		if full || p.due.After(now) {
			keep = append(keep, p)
			continue
		}
		due = append(due, p.record)
		bytes += p.bytes
	}
	clear(w.waiting[len(keep):])
	w.waiting = keep
	w.passed += bytes
	w.count.Store(int64(len(w.waiting)))
	return due
}

// look reads on while there is room, and otherwise waits, in both cases not longer than until the next record is due.
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
				w.next = w.end // quiet for so long: what is left of the log is control records, or finds no room
			}
			return nil
		}
		return err
	}
	w.Account().Enter(records...)
	// A clock that was ahead when the record was parked is no reason to wait for longer than any record does.
	latest := time.Now().Add(w.cfg.MaxBackoff)
	unproven, first := 0, (*kgo.Record)(nil)
	for _, r := range records {
		p := parked{record: r, bytes: w.cfg.Weigh(r)} // what it took when it was taken, whatever is believed of it
		if !w.cfg.Keys.Prove(r) {
			envelope.Distrust(r)
			if unproven++; first == nil {
				first = r
			}
		}
		if p.due = envelope.Due(r, w.cfg.MaxBackoff); p.due.After(latest) {
			p.due = latest
		}
		w.waiting = append(w.waiting, p)
		w.next = r.Offset + 1
	}
	if unproven > 0 && w.cfg.Unproven != nil {
		w.cfg.Unproven(unproven, first)
	}
	w.count.Store(int64(len(w.waiting)))
	return nil
}

// earliest is when the next waiting record is due.
func (w *Window) earliest() (time.Time, bool) {
	var first time.Time
	for i, p := range w.waiting {
		if i == 0 || p.due.Before(first) {
			first = p.due
		}
	}
	return first, len(w.waiting) > 0
}

// finished says, in a run with Once, that nothing is due and nothing more can be looked at.
func (w *Window) finished(ctx context.Context) (bool, error) {
	if !w.cfg.Once {
		return false, nil
	}
	if !w.bounded {
		next, end, err := w.Bounds(ctx)
		if err != nil {
			return false, fmt.Errorf("find the end of the partition: %w", err)
		}
		w.bounded, w.next, w.end = true, max(next, w.next), end
	}
	return w.next >= w.end || w.Account().Open() >= w.cfg.Lookahead, nil
}
