package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"docket/internal/consumer/lanes"
	"docket/internal/errclass"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// away is a Store that takes nothing. Its failure is parked without another try.
type away struct{ writes int }

func (a *away) Store(context.Context, []Row, bool) ([]Outcome, error) {
	a.writes++
	return nil, sqlstate("HV00N")
}
func (a *away) Foresee(context.Context, []Row, string) ([]int, error) { return nil, nil }
func (a *away) Refusals(_ context.Context, rows []Row, _ time.Time) ([]error, error) {
	return make([]error, len(rows)), nil
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

// deaf is an Observer that ignores everything.
type deaf struct{}

func (deaf) Took(int)                            {}
func (deaf) Gave(int)                            {}
func (deaf) StoreFailed(errclass.Classification) {}
func (deaf) Retried()                            {}
func (deaf) Bisected(int)                        {}
func (deaf) PublishFailed(string, error)         {}
func (deaf) Held(string, int32, Hold) func()     { return func() {} }
func (deaf) Homed(HomedBatch)                    {}

// stream is a partition that delivers the same records again and again, in one batch each time.
type stream struct {
	number    int32
	after     time.Duration // before the first batch
	of        []*kgo.Record
	account   *home.Account
	left      int
	next      int64 // offset
	committed int64
}

func streamOf(number int32, of []*kgo.Record) *stream {
	return &stream{number: number, of: of, account: home.NewAccount("decision-logs", number)}
}

func (s *stream) Topic() string            { return "decision-logs" }
func (s *stream) Partition() int32         { return s.number }
func (s *stream) Leaving() context.Context { return context.Background() }
func (s *stream) Hold() func()             { return func() {} }

func (s *stream) Ready(ctx context.Context) error {
	if s.after > 0 && s.next == 0 {
		if err := pass(ctx, s.after); err != nil {
			return err
		}
	}
	if s.left == 0 {
		return ErrDone
	}
	return nil
}

func (s *stream) Fetch(context.Context) (*home.Batch, error) {
	s.left--
	records, batch := make([]kgo.Record, len(s.of)), make([]*kgo.Record, len(s.of))
	for i, r := range s.of {
		records[i] = kgo.Record{Topic: "decision-logs", Partition: s.number, Offset: s.next, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
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

// carried returns a func that carries one more batch of n decisions: from the source topic or, as a replay, from
// parking.
func carried(t testing.TB, n int, replay bool, db Store) (kafka *taking, carry func()) {
	t.Helper()
	cfg := newWorld().config
	cfg.Replay, cfg.ParkBatches, cfg.BatchBytes = replay, 0, 1<<30
	kafka = &taking{}
	p := New(cfg, db, kafka, nil, deaf{}, zerolog.Nop())
	s := streamOf(0, recordsOf(0, good(named(n)...)...))
	if replay {
		s = streamOf(0, parkedOf(1, named(n)...))
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
func TestPark_CostOfADecision(t *testing.T) {
	const n, most = 2 * together, 1.1 // per decision: its id, for the log
	db := &away{}
	kafka, carry := carried(t, n, false, db)
	carry()
	if db.writes != 1 || kafka.calls != n/together || kafka.records != n {
		t.Errorf("%d writes, %d calls to publish %d records, want 1, %d and %d", db.writes, kafka.calls, kafka.records, n/together, n)
	}
	if each := testing.AllocsPerRun(5, carry) / n; each > most {
		t.Errorf("%.2f allocations for each parked decision, want %v at most", each, most)
	}
	if bytes := bytesPer(carry) / n; bytes > mostBytes {
		t.Errorf("%.0f bytes for each parked decision, want %d at most", bytes, mostBytes)
	}
}

// mostBytes limits the memory of a parked decision: its decoded form, which is not used again after a failed write,
// its history and its headers. 1904 bytes were measured.
const mostBytes = 2000

// bytesPer returns how many bytes a call of act allocates.
func bytesPer(act func()) float64 {
	const times = 5
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	for range times {
		act()
	}
	runtime.ReadMemStats(&to)
	return float64(to.TotalAlloc-from.TotalAlloc) / times
}

// TestForward_DeadlineOfOnePublish has a slow Kafka. The records that it has no time for go into the spool, in one
// append.
func TestForward_DeadlineOfOnePublish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 5 * together
		kafka, spool, heard := &slow{each: 4 * time.Second}, &pieces{}, &watcher{}
		cfg := newWorld().config
		cfg.ParkBatches, cfg.PublishTimeout = 0, 10*time.Second
		p := New(cfg, &away{}, kafka, spool, heard, zerolog.Nop())
		s := streamOf(0, recordsOf(0, good(named(n)...)...))
		s.left = 1
		from := time.Now()
		if err := p.Run(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(from); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		if len(kafka.took) != 2*together || fmt.Sprint(spool.sizes) != fmt.Sprint([]int{3 * together}) || heard.unsent != 3*together || s.committed != n {
			t.Errorf("%d published, %v spooled, %d told of, committed %d", len(kafka.took), spool.sizes, heard.unsent, s.committed)
		}
		for i, r := range append(kafka.took, spool.lines...) {
			if got := headerOf(r, envelope.OriginalOffset); got != strconv.Itoa(i) {
				t.Fatalf("record %d is that of offset %s", i, got)
			}
		}
	})
}

// TestForward_KeepsItsTurnWhileKafkaTakesIt has one turn for two partitions. One parks a large batch, and the other
// comes half a second later.
func TestForward_KeepsItsTurnWhileKafkaTakesIt(t *testing.T) {
	t.Parallel()
	for _, kafka := range []struct {
		what  string
		fails error
		n     int
		want  time.Duration // when the other writes
	}{
		{"much is taken", nil, 3 * together, 3 * time.Second},
		{"much is not taken", errors.New("away"), 3 * together, time.Second},
		{"little", nil, together, 500 * time.Millisecond},
	} {
		t.Run(kafka.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				from, wrote := time.Now(), time.Duration(0)
				db := &keeper{keep: func(rows []Row) error {
					if rows[0].Partition == 0 {
						return sqlstate("HV00N")
					}
					wrote = time.Since(from)
					return nil
				}}
				cfg := newWorld().config
				cfg.ParkBatches, cfg.Turns = 0, lanes.New(lanes.Alone(1))
				p := New(cfg, db, &slow{each: time.Second, fails: kafka.fails}, &disk{}, &watcher{}, zerolog.Nop())
				parks, other := streamOf(0, recordsOf(0, good(named(kafka.n)...)...)), streamOf(1, recordsOf(0, good("a")...))
				parks.left, other.left, other.after = 1, 1, 500*time.Millisecond
				var running errgroup.Group
				running.Go(func() error { return p.Run(t.Context(), parks) })
				running.Go(func() error { return p.Run(t.Context(), other) })
				if err := running.Wait(); err != nil {
					t.Fatal(err)
				}
				held, _ := cfg.Turns.Count(lanes.Default)
				if wrote != kafka.want || parks.committed != int64(kafka.n) || other.committed != 1 || held != 0 {
					t.Errorf("the other wrote after %v, want %v; committed %d and %d, %d turns not given back", wrote, kafka.want, parks.committed, other.committed, held)
				}
			})
		})
	}
}

// slow is a Kafka that takes a while for each call.
type slow struct {
	each  time.Duration
	fails error
	took  []*kgo.Record
}

func (k *slow) Publish(ctx context.Context, records []*kgo.Record) []error {
	errs := make([]error, len(records))
	select {
	case <-time.After(k.each):
		if k.fails == nil {
			k.took = append(k.took, records...)
			return errs
		}
	case <-ctx.Done():
	}
	for i := range errs {
		errs[i] = cmp.Or(k.fails, ctx.Err())
	}
	return errs
}

// pieces is a Spool that counts its appends.
type pieces struct {
	disk
	sizes []int
}

func (p *pieces) Append(ctx context.Context, records []*kgo.Record, oversize bool) error {
	p.sizes = append(p.sizes, len(records))
	return p.disk.Append(ctx, records, oversize)
}

//nolint:paralleltest // it measures what is the whole process's
func TestReplay_CostOfADecision(t *testing.T) {
	const n, most = 2000, 0.1
	db := &tallied{counting: newCounting(n)}
	kafka, carry := carried(t, n, true, db)
	carry()
	if db.writes != 1 || kafka.calls != 0 {
		t.Errorf("%d writes, %d calls to publish, want 1 and none", db.writes, kafka.calls)
	}
	if each := testing.AllocsPerRun(5, carry) / n; each > most {
		t.Errorf("%.2f allocations for each replayed decision, want %v at most", each, most)
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
