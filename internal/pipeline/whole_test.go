//go:build synctests

package pipeline_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/envelope"
	"docket/internal/errclass"
	"docket/internal/fallback"
	"docket/internal/fallback/fstest"
	"docket/internal/kafka"
	"docket/internal/kafkatest"
	"docket/internal/parking"
	"docket/internal/pipeline"
)

// serverError fails as a database server does, told by its behaviour alone.
type serverError string

func (e serverError) Error() string    { return "SQLSTATE " + string(e) }
func (e serverError) SQLState() string { return string(e) }

// database is a Store in memory that is away for the world's sake, or refuses rows for their own.
type database struct {
	mu   sync.Mutex
	rows map[string]int // id to times stored
	away func() error
	lost func() bool // stores, and loses the answer
}

func (d *database) Store(ctx context.Context, rows []pipeline.Row, _ bool) ([]pipeline.Outcome, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := errors.Join(ctx.Err(), d.away()); err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Log.Path.V == "refused" {
			return nil, serverError("23514")
		}
	}
	out := make([]pipeline.Outcome, len(rows))
	for i, r := range rows {
		out[i] = pipeline.Present
		if d.rows[r.Log.ID] == 0 {
			d.rows[r.Log.ID]++
			out[i] = pipeline.Stored
		}
	}
	if d.lost() {
		return nil, errclass.As(errors.New("the answer was lost"), errclass.CodeAmbiguousCommit)
	}
	return out, nil
}

func (d *database) Probe(ctx context.Context, _ time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(ctx.Err(), d.away())
}

// quiet is an Observer that only keeps the account.
type quiet struct {
	mu                   sync.Mutex
	took, gave, homed    int
	parked, dead, spills int
}

func (q *quiet) Took(n int)                                   { q.mu.Lock(); defer q.mu.Unlock(); q.took += n }
func (q *quiet) Gave(n int)                                   { q.mu.Lock(); defer q.mu.Unlock(); q.gave += n }
func (q *quiet) StoreFailed(errclass.Verdict)                 {}
func (q *quiet) Retried()                                     {}
func (q *quiet) Bisected(int)                                 {}
func (q *quiet) PublishFailed(string, error)                  {}
func (q *quiet) Held(string, int32, pipeline.Hold) (f func()) { return func() {} }
func (q *quiet) Homed(r pipeline.Report) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.homed += len(r.Decisions)
}

type spool struct{ *fallback.Spool }

func (s spool) Append(ctx context.Context, records []*kgo.Record, oversize bool) error {
	lines := make([]fallback.Line, len(records))
	for i, r := range records {
		lines[i] = fallback.Line{Record: r, Oversize: oversize}
	}
	return s.Spool.Append(ctx, lines)
}

// program is a consumer or a replayer: the real source, publisher, pipeline, gate and spool.
type program struct {
	stop func()
	told *quiet
}

func start(t *testing.T, c *kafkatest.Cluster, db *database, disk *fstest.FS, replay bool) *program {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg := kafka.Config{Brokers: c.Brokers(), Dialer: c.Dial, RebalanceTimeout: time.Minute, SessionTimeout: 10 * time.Second}
	sc := kafka.SourceConfig{Topic: "logs", Group: "docket", BatchRecords: 20, BatchWait: 50 * time.Millisecond, Drain: 20 * time.Second}
	if replay {
		sc.Topic, sc.Group = "parking", "docket-parking"
	}
	source, err := kafka.NewSource(cfg, sc, zerolog.Nop(), nil)
	must(err)
	publisher, err := kafka.NewPublisher(cfg, kafka.PublisherConfig{Timeout: 5 * time.Second}, zerolog.Nop(), nil)
	must(err)
	files, err := fallback.Open(fallback.Config{Dir: "spool", Instance: "one", MaxBytes: 1 << 20}, disk, zerolog.Nop())
	must(err)
	p := &program{told: &quiet{}}
	pipe := pipeline.New(pipeline.Config{
		DLQTopic: "dlq", ParkingTopic: "parking", ParkingDLQTopic: "parking-dlq", MaxRecordBytes: 1 << 20, BatchBytes: 1 << 20,
		RetryPauses: []time.Duration{time.Second, 2 * time.Second}, ParkBatches: 3, ProbeInterval: time.Second,
		Backoff: time.Minute, MaxBackoff: time.Hour, MaxAttempts: 5, Consumer: "docket/test", Replay: replay,
	}, db, publisher, spool{files}, p.told, zerolog.Nop())

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := source.Run(ctx, func(ctx context.Context, a *kafka.Assignment) error {
			if !replay {
				return pipe.Run(ctx, a)
			}
			return pipe.Run(ctx, parking.New(parking.Config{
				Lookahead: 50, LookaheadBytes: 1 << 20, MaxBackoff: time.Hour, BatchRecords: 20, BatchBytes: 1 << 20, BatchWait: 50 * time.Millisecond,
			}, a))
		})
		if err != nil {
			t.Errorf("source: %v", err)
		}
	})
	running.Go(func() {
		if err := files.Run(ctx, pipe.Idle, publisher); err != nil {
			t.Errorf("spool: %v", err)
		}
	})
	p.stop = func() {
		cancel()
		running.Wait()
		publisher.Close()
		if err := files.Close(); err != nil {
			t.Errorf("close the spool: %v", err)
		}
		if p.told.took != p.told.gave+p.told.homed {
			t.Errorf("took %d, gave back %d, homed %d", p.told.took, p.told.gave, p.told.homed)
		}
	}
	return p
}

// storms says how many seeds to run: `go test ./internal/pipeline -run Whole -tags synctests -storms 200`.
var storms = flag.Uint64("storms", 6, "seeds of the whole pipeline under faults")

// TestWholePipelineLosesNothingUnderSeededFaults runs consumer and replayer against a broker inside the process, in
// virtual time: the database goes and comes, the broker refuses, loses answers and commits, the disk fails, the consumer is
// stopped and started. In the end every decision has exactly the home that it deserves.
func TestWholePipelineLosesNothingUnderSeededFaults(t *testing.T) {
	t.Parallel()
	for seed := range *storms {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { storm(t, seed) })
		})
	}
}

func storm(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 11))
	c := kafkatest.NewVirtual(t, kfake.SeedTopics(3, "logs"), kfake.SeedTopics(2, "parking", "dlq", "parking-dlq"))
	defer c.Close()
	healed := time.Now().Add(time.Duration(2+rng.IntN(15)) * time.Minute)
	var dice sync.Mutex
	fate := rand.New(rand.NewPCG(seed, 12)) // rng is for this goroutine alone
	strikes := func(chance float64) bool {
		dice.Lock()
		defer dice.Unlock()
		return time.Now().Before(healed) && fate.Float64() < chance
	}
	codes := []string{"08006", "57P01", "57P03", "40001", "53300", "25006", "42P01", "53100"}
	awayUntil, code := time.Time{}, ""
	db := &database{rows: map[string]int{}, lost: func() bool { return strikes(0.05) }}
	db.away = func() error {
		if time.Now().After(awayUntil) && strikes(0.1) {
			dice.Lock()
			awayUntil, code = time.Now().Add(time.Duration(fate.IntN(300))*time.Second), codes[fate.IntN(len(codes))]
			dice.Unlock()
		}
		if time.Now().Before(awayUntil) && time.Now().Before(healed) {
			return serverError(code)
		}
		return nil
	}

	disk := fstest.New()
	spools := []*fstest.FS{disk, fstest.New()}
	consumer := start(t, c, db, disk, false)
	replayer := start(t, c, db, spools[1], true)

	want := map[string]string{} // id to row or dead
	n := 0
	for time.Now().Before(healed) {
		var rs []*kgo.Record
		for range 1 + rng.IntN(30) {
			id := fmt.Sprintf("d%05d", n)
			n++
			r := &kgo.Record{Topic: "logs", Partition: int32(rng.IntN(3)), Key: []byte(id)}
			log := fmt.Sprintf(`{"decision_id":%q,"timestamp":"2026-03-01T12:00:00Z"`, id)
			switch rng.IntN(12) {
			case 0:
				r.Value, want[id] = []byte(log), "dead" // cut off
			case 1:
				r.Value, want[id] = []byte(log+`,"path":"refused"}`), "dead"
			default:
				r.Value, want[id] = []byte(log+"}"), "row"
			}
			rs = append(rs, r)
		}
		heal := []func(){}
		switch rng.IntN(8) { // what happens to Kafka and the disk while these are carried
		case 0:
			heal = append(heal, c.LoseAnswers("dlq"))
		case 1:
			heal = append(heal, c.FailTopic(kmsg.Produce, "parking", kerr.NotEnoughReplicas, -1).Remove)
		case 2:
			heal = append(heal, c.Fail(kmsg.OffsetCommit, kerr.CoordinatorNotAvailable, 3).Remove)
		case 3:
			heal = append(heal, c.FailTopic(kmsg.Produce, "dlq", kerr.TopicAuthorizationFailed, -1).Remove)
			disk.Fail(fstest.Fault{Op: fstest.OpSync, N: 1, Err: syscall.EIO, Forever: true})
			heal = append(heal, disk.Heal)
		case 4:
			consumer.stop()
			consumer = start(t, c, db, disk, false)
		}
		c.Produce(t, rs...)
		time.Sleep(time.Duration(rng.IntN(60)) * time.Second) // virtual
		for _, f := range heal {
			f()
		}
	}

	// Everything is healed: after the longest back-off and a little work nothing may be on its way any more.
	time.Sleep(90 * time.Minute)
	dead := map[string]int{}
	for _, r := range c.ReadAll(t, "dlq") {
		for _, h := range r.Headers {
			if h.Key == envelope.DeadLetterID {
				dead[string(r.Key)]++
			}
		}
	}
	for id, home := range want {
		if (home == "row") != (db.rows[id] == 1) || (home == "dead") != (dead[id] > 0) {
			t.Errorf("seed %d: %s should be %s: %d rows, %d dead letters", seed, id, home, db.rows[id], dead[id])
		}
	}
	if left := len(c.ReadAll(t, "parking-dlq")); left > 0 {
		t.Errorf("seed %d: %d good records went to the parking dead-letter topic", seed, left)
	}
	for _, group := range [][2]string{{"docket", "logs"}, {"docket-parking", "parking"}} {
		committed := c.Committed(t, group[0], group[1])
		for p := range int32(3) {
			if info := c.PartitionInfo(group[1], p); info != nil && info.HighWatermark > 0 && committed[p] != info.HighWatermark {
				t.Errorf("seed %d: %s/%d committed %d of %d", seed, group[1], p, committed[p], info.HighWatermark)
			}
		}
	}
	for _, d := range spools {
		if files := d.Files("."); len(files) > 1 { // the lock stays
			t.Errorf("seed %d: left in the spool: %v", seed, files)
		}
	}
	consumer.stop()
	replayer.stop()
}
