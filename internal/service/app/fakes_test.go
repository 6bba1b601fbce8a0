package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"docket/internal/consumer/pipeline"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
	"docket/internal/testkit/output"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a program on parts in memory.
type world struct {
	t       *testing.T
	program *Program
	reg     *prometheus.Registry
	log     *output.Buffer
	source  *fakeSource
	db      *fakeDB
	sent    *fakePublisher
	spool   *fakeSpool
	parts   *Parts
	ended   chan error
	stop    context.CancelFunc

	mu     sync.Mutex
	events []string
}

func (w *world) note(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
}

func settings(t *testing.T, p config.Program, env ...string) config.Settings {
	t.Helper()
	s, _, err := config.Load(p, append([]string{
		"DOCKET_DATABASE_URL=postgres://u:p@127.0.0.1:1/x", "DOCKET_HTTP_ADDR=127.0.0.1:0", "DOCKET_PROBE_INTERVAL=10ms",
		"DOCKET_SHUTDOWN_TIMEOUT=1s", "DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_SPOOL_DIR=" + t.TempDir() + "/spool",
	}, env...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func setup(t *testing.T, name config.Program, o Options, env ...string) *world {
	t.Helper()
	w := &world{t: t, reg: prometheus.NewRegistry(), log: &output.Buffer{}, ended: make(chan error, 1)}
	w.source = &fakeSource{w: w, joined: true, assigned: 1}
	w.db = &fakeDB{}
	w.sent = &fakePublisher{}
	w.spool = &fakeSpool{w: w}
	w.parts = &Parts{Sources: []Source{w.source}, Database: w.db, Publisher: w.sent, Spool: w.spool, Close: func() { w.note("parts closed") }}
	o.Parts = w.parts
	of := settings(t, name, env...)
	for _, l := range lanesOf(name, of)[1:] { // the other lanes have a partition and no records
		w.parts.Sources = append(w.parts.Sources, &laneSource{fakeSource: &fakeSource{w: w, joined: true, assigned: 1, partitions: 1}, topic: l.Topic})
	}
	var err error
	w.program, err = New(name, of, zerolog.New(w.log), w.reg, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// run starts the program; it is stopped and closed at the end of the test.
func (w *world) run() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go func() { w.ended <- w.program.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		w.program.Close()
	})
}

const patient = time.Minute

func (w *world) end() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(patient):
		w.t.Fatal("the program did not end")
		return nil
	}
}

// until waits for something that another goroutine brings about.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.NewTimer(patient)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			w.t.Fatalf("waited in vain until %s; log:\n%s", what, w.log)
		case <-tick.C:
		}
	}
}

// get is the status and body of an answer.
func (w *world) get(path string, body any) int {
	w.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + w.program.Addr().String() + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	switch b := body.(type) {
	case *string:
		*b = string(text)
	case nil:
	default:
		if err := json.Unmarshal(text, body); err != nil {
			w.t.Fatalf("%s: %s: %v", path, text, err)
		}
	}
	return resp.StatusCode
}

func (w *world) ready() (int, Readiness) {
	var r Readiness
	return w.get("/readyz", &r), r
}

type fakeSource struct {
	w           *world
	assignments []Assignment
	once        bool // ends when all assignments are done
	err         error
	stuck       chan struct{} // Run does not end before it is closed

	mu         sync.Mutex
	joined     bool
	assigned   int
	partitions int
	fault      error
}

func (s *fakeSource) set(f func(*fakeSource)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *fakeSource) Run(ctx context.Context, carry func(context.Context, Assignment) error) error {
	s.w.note("source began")
	defer s.w.note("source ended")
	if s.err != nil {
		return s.err
	}
	var all sync.WaitGroup
	errs := make(chan error, len(s.assignments))
	for _, a := range s.assignments {
		all.Go(func() { errs <- carry(ctx, a) })
	}
	if s.once {
		all.Wait()
		return nil
	}
	<-ctx.Done()
	if s.stuck != nil {
		<-s.stuck
	}
	all.Wait()
	return nil
}

// Partitions are those of all members.
func (s *fakeSource) Partitions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partitions
}

func (s *fakeSource) Assigned() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.assigned
}

func (s *fakeSource) Joined() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joined
}

func (s *fakeSource) Fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

func (s *fakeSource) Lag() []telemetry.Lag {
	return []telemetry.Lag{{Topic: "decision-logs", Partition: 0, Records: 5, Oldest: time.Now().Add(-time.Hour)}}
}

func (s *fakeSource) LastCommit() time.Time { return time.Unix(1700000000, 0) }

func (s *fakeSource) Retention() map[string]time.Duration {
	return map[string]time.Duration{"decision-logs": 7 * 24 * time.Hour, "decision-logs-parking": -1}
}

type fakeDB struct {
	block      chan struct{} // Store waits for it, deaf to its context
	refuse     func() error  // the error of Store; nil: it does not fail
	migrate    func() (int, error)
	probe      func() error
	partitions func(ahead int) (int, error)

	mu     sync.Mutex
	stored int
	ids    []string // of the decisions, in the order in which they were stored
}

func (d *fakeDB) Store(_ context.Context, rows []pipeline.Row, _ bool) ([]pipeline.Outcome, error) {
	if d.block != nil {
		<-d.block
	}
	if d.refuse != nil {
		if err := d.refuse(); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stored += len(rows)
	for _, r := range rows {
		d.ids = append(d.ids, r.Log.ID)
	}
	out := make([]pipeline.Outcome, len(rows))
	for i := range out {
		out[i] = pipeline.Stored
	}
	return out, nil
}

func (d *fakeDB) rows() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stored
}

func (d *fakeDB) order() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ids)
}

func (d *fakeDB) Foresee(context.Context, []pipeline.Row, string) ([]int, error) { return nil, nil }
func (d *fakeDB) Refusals(_ context.Context, rows []pipeline.Row, _ time.Time) ([]error, error) {
	return make([]error, len(rows)), nil
}

func (d *fakeDB) Probe(context.Context, time.Time) error {
	if d.probe != nil {
		return d.probe()
	}
	return nil
}

func (d *fakeDB) Migrate(context.Context) (int, error) {
	if d.migrate == nil {
		return 0, errors.New("nobody asked for it")
	}
	return d.migrate()
}

func (d *fakeDB) MakePartitions(_ context.Context, ahead int) (int, error) {
	if d.partitions == nil {
		return 0, nil
	}
	return d.partitions(ahead)
}

type fakePublisher struct{}

func (*fakePublisher) Publish(_ context.Context, records []*kgo.Record) []error {
	return make([]error, len(records))
}

type fakeSpool struct{ w *world }

func (*fakeSpool) Append(context.Context, []*kgo.Record, bool) error { return nil }

func (s *fakeSpool) Run(ctx context.Context, idle func() bool, _ pipeline.Publisher) error {
	idle()
	<-ctx.Done()
	s.w.note("spool ended")
	return nil
}

func (*fakeSpool) Stats() telemetry.Spool { return telemetry.Spool{Files: 2} }

// partition is an assignment in memory. It is left when its context ends.
type partition struct {
	account *home.Account
	records []*kgo.Record
	leaving context.Context
	leave   context.CancelFunc
	more    chan struct{} // closed when there are no more

	mu        sync.Mutex
	committed int64
}

func newPartition(topic string, records ...*kgo.Record) *partition {
	p := &partition{account: home.NewAccount(topic, 0), records: records, more: make(chan struct{}), committed: -1}
	for i, r := range records {
		r.Topic, r.Offset = topic, int64(i)
	}
	p.leaving, p.leave = context.WithCancel(context.Background())
	return p
}

func decisionLog(i int, headers ...kgo.RecordHeader) *kgo.Record {
	return &kgo.Record{
		Value:     fmt.Appendf(nil, `{"decision_id":"d%d","timestamp":"2026-11-21T03:00:00Z"}`, i),
		Timestamp: time.Now(), Headers: headers,
	}
}

func notBefore(d time.Duration) kgo.RecordHeader {
	return kgo.RecordHeader{Key: envelope.NotBefore, Value: []byte(strconv.FormatInt(time.Now().Add(d).UnixMilli(), 10))}
}

func (p *partition) Topic() string            { return p.account.Topic() }
func (p *partition) Partition() int32         { return 0 }
func (p *partition) Account() *home.Account   { return p.account }
func (p *partition) Leaving() context.Context { return p.leaving }
func (p *partition) Hold() func()             { return func() {} }
func (p *partition) Done(int64)               {}
func (p *partition) Allowed() int64           { return 1 << 20 }

func (p *partition) Failing() error { return nil }

func (p *partition) Bounds(context.Context) (next, end int64, err error) {
	return 0, int64(len(p.records)), nil
}

func (p *partition) Ready(ctx context.Context) error {
	if len(p.records) == 0 {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (p *partition) Take(ctx context.Context, n int, _ int64, _ time.Duration) ([]*kgo.Record, error) {
	if len(p.records) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	n = min(n, len(p.records))
	out := p.records[:n]
	p.records = p.records[n:]
	return out, nil
}

func (p *partition) Fetch(ctx context.Context) (*home.Batch, error) {
	rs, err := p.Take(ctx, 100, 0, 0)
	if err != nil {
		return nil, err
	}
	p.account.Enter(rs...)
	return p.account.Batch(rs), nil
}

func (p *partition) Commit(_ context.Context, s home.Settled) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.committed = s.Offset()
	return nil
}

func (p *partition) offset() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.committed
}

var _ Assignment = (*partition)(nil)
