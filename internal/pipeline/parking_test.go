package pipeline

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/errclass"
	"docket/internal/home"
)

// away is a Store that takes nothing, for a reason that is parked without another try.
type away struct{ writes int }

func (a *away) Store(context.Context, []Row, bool) ([]Outcome, error) {
	a.writes++
	return nil, sqlstate("HV00N")
}
func (a *away) Probe(context.Context, time.Time) error { return nil }

// taking is a Kafka that takes everything and keeps nothing.
type taking struct {
	calls, records int
	errs           []error
}

func (k *taking) Publish(_ context.Context, records []*kgo.Record) []error {
	k.calls++
	k.records += len(records)
	if len(k.errs) < len(records) {
		k.errs = make([]error, len(records))
	}
	return k.errs[:len(records)]
}

// deaf hears nothing.
type deaf struct{}

func (deaf) Took(int)                        {}
func (deaf) Gave(int)                        {}
func (deaf) StoreFailed(errclass.Verdict)    {}
func (deaf) Retried()                        {}
func (deaf) Bisected(int)                    {}
func (deaf) PublishFailed(string, error)     {}
func (deaf) Held(string, int32, Hold) func() { return func() {} }
func (deaf) Homed(Report)                    {}

// stream is a partition that has the same records again and again, in one batch each time.
type stream struct {
	of        []*kgo.Record
	account   *home.Account
	left      int
	next      int64 // offset
	committed int64
}

func streamOf(of []*kgo.Record) *stream {
	return &stream{of: of, account: home.NewAccount("decision-logs", 0)}
}

func (s *stream) Topic() string            { return "decision-logs" }
func (s *stream) Partition() int32         { return 0 }
func (s *stream) Leaving() context.Context { return context.Background() }
func (s *stream) Hold() func()             { return func() {} }

func (s *stream) Ready(context.Context) error {
	if s.left == 0 {
		return ErrDone
	}
	return nil
}

func (s *stream) Fetch(context.Context) (*home.Batch, error) {
	s.left--
	records, batch := make([]kgo.Record, len(s.of)), make([]*kgo.Record, len(s.of))
	for i, r := range s.of {
		records[i] = kgo.Record{Topic: "decision-logs", Offset: s.next, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
		batch[i] = &records[i]
		s.next++
	}
	s.account.Enter(batch...)
	return s.account.Batch(batch), nil
}

func (s *stream) Commit(_ context.Context, to home.Settled) error {
	s.committed = to.Offset()
	return nil
}

// carried returns the act of carrying one more batch of n decisions, from the source topic or, to replay, from parking.
func carried(t testing.TB, n int, replay bool, db Store) (kafka *taking, carry func()) {
	t.Helper()
	cfg := newWorld().config
	cfg.Replay, cfg.ParkBatches, cfg.BatchBytes = replay, 0, 1<<30
	kafka = &taking{}
	p := New(cfg, db, kafka, nil, deaf{}, zerolog.Nop())
	s := streamOf(recordsOf(0, good(named(n)...)...))
	if replay {
		s = streamOf(parkedOf(1, named(n)...))
	}
	return kafka, func() {
		s.left++
		if err := p.Run(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if s.committed != s.next {
			t.Fatalf("committed %d of %d", s.committed, s.next)
		}
	}
}

//nolint:paralleltest // it measures what is the whole process's
func TestParkedDecisionCostsFewAllocationsOneWriteAndOnePublishForAll(t *testing.T) {
	const n, most = 2000, 1.5 // per decision: its id for the log, and what a failed write leaves behind
	db := &away{}
	kafka, carry := carried(t, n, false, db)
	carry()
	if db.writes != 1 || kafka.calls != 1 || kafka.records != n {
		t.Errorf("%d writes, %d calls to publish %d records, want 1, 1 and %d", db.writes, kafka.calls, kafka.records, n)
	}
	if each := testing.AllocsPerRun(5, carry) / n; each > most {
		t.Errorf("%.2f allocations for each parked decision, want %v at most", each, most)
	} else {
		t.Logf("%.3f", each)
	}
}

//nolint:paralleltest // it measures what is the whole process's
func TestReplayedDecisionCostsNextToNoAllocationsAndNoMoreWritesThanTheFirst(t *testing.T) {
	const n, most = 2000, 0.1
	db := &tallied{counting: newCounting(n)}
	kafka, carry := carried(t, n, true, db)
	carry()
	if db.writes != 1 || kafka.calls != 0 {
		t.Errorf("%d writes, %d calls to publish, want 1 and none", db.writes, kafka.calls)
	}
	if each := testing.AllocsPerRun(5, carry) / n; each > most {
		t.Errorf("%.2f allocations for each replayed decision, want %v at most", each, most)
	} else {
		t.Logf("%.3f", each)
	}
}

// tallied counts the writes of a Store.
type tallied struct {
	*counting
	writes int
}

func (s *tallied) Store(ctx context.Context, rows []Row, fresh bool) ([]Outcome, error) {
	s.writes++
	return s.counting.Store(ctx, rows, fresh)
}

func BenchmarkCarry(b *testing.B) {
	const n = 5000
	for _, way := range []struct {
		name   string
		replay bool
		db     func() Store
	}{
		{"stored", false, func() Store { return newCounting(n) }},
		{"parked", false, func() Store { return &away{} }},
		{"replayed", true, func() Store { return newCounting(n) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			_, carry := carried(b, n, way.replay, way.db())
			for b.Loop() {
				carry()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/decision")
		})
	}
}
