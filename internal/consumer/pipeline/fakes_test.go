package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"docket/internal/errclass"
	"docket/internal/record/envelope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serverError is an error of a database server. Only its methods tell.
type serverError struct{ code, table, column, constraint string }

func (e *serverError) Error() string          { return "SQLSTATE " + e.code }
func (e *serverError) SQLState() string       { return e.code }
func (e *serverError) TableName() string      { return e.table }
func (e *serverError) ColumnName() string     { return e.column }
func (e *serverError) ConstraintName() string { return e.constraint }

// rowError is an error that names the row of the write at which the server stopped.
type rowError struct {
	error
	row int
}

func (e *rowError) Unwrap() error    { return e.error }
func (e *rowError) Row() (int, bool) { return e.row, e.row >= 0 }

func sqlstate(code string) error {
	return &serverError{code: code, table: "decision_logs", column: "c", constraint: "k"}
}

// table is a Store in memory. It calls refuse for every row of a write, and away before every write and every probe.
type table struct {
	mu     sync.Mutex
	rows   map[string]string // identity to payload
	writes [][]string        // ids of each write
	fresh  []bool
	probes int

	refuse func(id string) error       // nil: refuses none
	odd    func(r Row) error           // as refuse, for the whole row; nil: refuses none
	tells  func(row int) int           // the row that a refusal names, -1: none; nil: the error names no row
	away   func() error                // nil: the database is there
	probe  func(at time.Time) error    // nil: as away
	hook   func(ctx context.Context)   // runs inside every write
	probed func(n int, when time.Time) // called at every probe

	foresee func(id string) bool                 // rows that a CHECK would refuse; nil: the table foresees none
	asks    func(ids []string, again bool) error // runs inside Refusals
	looks   []string                             // constraints that were asked about
	asked   [][]string                           // ids of each Refusals
}

func (t *table) Store(ctx context.Context, rows []Row, fresh bool) ([]Outcome, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.Log.ID
	}
	t.writes, t.fresh = append(t.writes, ids), append(t.fresh, fresh)
	if t.hook != nil {
		t.hook(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.away != nil {
		if err := t.away(); err != nil {
			return nil, err
		}
	}
	if t.refuse != nil {
		for i, id := range ids {
			if err := t.refuse(id); err != nil {
				if t.tells != nil {
					err = &rowError{err, t.tells(i)}
				}
				return nil, err
			}
		}
	}
	if t.odd != nil {
		for _, r := range rows {
			if err := t.odd(r); err != nil {
				return nil, err
			}
		}
	}
	out := make([]Outcome, len(rows))
	for i, r := range rows {
		key := r.Log.ID + r.Log.Time.String()
		switch was, ok := t.rows[key]; {
		case !ok:
			if t.rows == nil {
				t.rows = map[string]string{}
			}
			t.rows[key], out[i] = string(r.Log.Raw), Stored
		case was == string(r.Log.Raw):
			out[i] = Present
		default:
			out[i] = Conflicting
		}
	}
	return out, nil
}

func (t *table) Probe(ctx context.Context, at time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.probes++
	if t.probed != nil {
		t.probed(t.probes, at)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case t.probe != nil:
		return t.probe(at)
	case t.away != nil:
		return t.away()
	}
	return nil
}

func (t *table) has(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.rows {
		if strings.HasPrefix(key, id+"20") {
			return true
		}
	}
	return false
}

// broker is a Publisher in memory.
type broker struct {
	mu   sync.Mutex
	took []*kgo.Record
	fail func(r *kgo.Record) error
}

func (b *broker) Publish(ctx context.Context, records []*kgo.Record) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := make([]error, len(records))
	for i, r := range records {
		if errs[i] = ctx.Err(); errs[i] == nil && b.fail != nil {
			errs[i] = b.fail(r)
		}
		if errs[i] == nil {
			b.took = append(b.took, r)
		}
	}
	return errs
}

// sent returns the records of a topic as "offset/index code attempt".
func (b *broker) sent(topic string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, r := range b.took {
		if r.Topic == topic {
			out = append(out, told(r))
		}
	}
	return out
}

func told(r *kgo.Record) string {
	h := map[string]string{}
	for _, hh := range r.Headers {
		h[hh.Key] = string(hh.Value)
	}
	return fmt.Sprintf("%s/%s %s %s %s", h[envelope.OriginalOffset], h[envelope.OriginalIndex], h[envelope.FailureKind], h[envelope.FailureCode], h[envelope.RetryAttempt])
}

// disk is a Spool in memory.
type disk struct {
	mu       sync.Mutex
	lines    []*kgo.Record
	oversize []*kgo.Record
	fail     func() error
}

func (d *disk) Append(ctx context.Context, records []*kgo.Record, oversize bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		if err := d.fail(); err != nil {
			return err
		}
	}
	if oversize {
		d.oversize = append(d.oversize, records...)
	} else {
		d.lines = append(d.lines, records...)
	}
	return nil
}

// watcher is an Observer that remembers.
type watcher struct {
	mu       sync.Mutex
	taken    int
	given    int
	retries  int
	bisected []int
	failures []string
	unsent   int
	holding  map[string]int
	held     []string
	hints    []string       // of held
	tally    map[string]int // decisions by home
}

func (w *watcher) with(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}
func (w *watcher) Took(n int) { w.with(func() { w.taken += n }) }
func (w *watcher) Gave(n int) { w.with(func() { w.given += n }) }
func (w *watcher) StoreFailed(v errclass.Classification) {
	w.with(func() { w.failures = append(w.failures, v.Code) })
}
func (w *watcher) Retried()                    { w.with(func() { w.retries++ }) }
func (w *watcher) Bisected(n int)              { w.with(func() { w.bisected = append(w.bisected, n) }) }
func (w *watcher) PublishFailed(string, error) { w.with(func() { w.unsent++ }) }
func (w *watcher) Homed(r HomedBatch) {
	w.with(func() {
		if w.tally == nil {
			w.tally = map[string]int{}
		}
		for d := range r.Decisions {
			w.tally[d.Home.String()]++
		}
	})
}
func (w *watcher) Held(_ string, _ int32, h Hold) func() {
	w.with(func() {
		if w.holding == nil {
			w.holding = map[string]int{}
		}
		w.holding[h.Reason]++
		w.held = append(w.held, h.Reason+" "+h.Code)
		w.hints = append(w.hints, h.Hint)
	})
	return func() { w.with(func() { w.holding[h.Reason]-- }) }
}

func (w *watcher) homes() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.tally)
}

// logOf is a decision with this id, distinct by n.
func logOf(id string) string {
	return fmt.Sprintf(`{"decision_id":%q,"timestamp":"2026-03-01T12:00:00.5Z","path":"a/b","result":true}`, id)
}

// recordsOf makes records of values from offset on.
func recordsOf(offset int64, values ...string) []*kgo.Record {
	rs := make([]*kgo.Record, len(values))
	for i, v := range values {
		rs[i] = &kgo.Record{Topic: "decision-logs", Offset: offset + int64(i), Key: []byte("k"), Value: []byte(v), Timestamp: time.Now()}
	}
	return rs
}

func good(ids ...string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = logOf(id)
	}
	return out
}

func named(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("d%03d", i)
	}
	return ids
}

// world is a pipeline with everything around it.
type world struct {
	db     *table
	kafka  *broker
	spool  *disk
	told   *watcher
	pipe   *Pipeline
	config Config
}

func newWorld(change ...func(*world)) *world {
	w := &world{db: &table{}, kafka: &broker{}, spool: &disk{}, told: &watcher{}, config: Config{
		Program: "consumer", DLQTopic: "dlq", ParkingTopic: "parking", ParkingDLQTopic: "parking-dlq",
		MaxRecordBytes: 1 << 20, BatchBytes: 1 << 20, RetryPauses: []time.Duration{time.Second, 2 * time.Second}, ParkBatches: 3,
		ProbeInterval: time.Second, Backoff: time.Minute, MaxBackoff: time.Hour, MaxAttempts: 5, Consumer: "docket/test",
	}}
	for _, c := range change {
		c(w)
	}
	var spool Spool
	if w.spool != nil {
		spool = w.spool
	}
	w.pipe = New(w.config, w.db, w.kafka, spool, w.told, zerolog.Nop())
	return w
}

// settledAccount checks, while nothing is in hand, that the decisions taken are those with homes and those given
// back.
func (w *world) settledAccount(t *testing.T) {
	t.Helper()
	sum := 0
	for _, n := range w.told.homes() {
		sum += n
	}
	if w.told.taken != sum+w.told.given {
		t.Errorf("took %d decisions, gave homes to %d and %d back", w.told.taken, sum, w.told.given)
	}
	for reason, n := range w.told.holding {
		if n != 0 {
			t.Errorf("still holding for %s", reason)
		}
	}
	if !w.pipe.Idle() {
		t.Error("a batch is still in hand")
	}
}

var errTooLarge = fmt.Errorf("publish: %w", kerr.MessageTooLarge)

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
