//go:build integration

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/testenv"
)

// Topics and settings of the servers are those of docs/performance.md.
const (
	partitions = 8
	logs       = "decision-logs"
)

var postgresSettings = []string{"shared_buffers=1GB", "max_wal_size=8GB", "checkpoint_timeout=30min"}

var kafkaEnv = map[string]string{
	"KAFKA_HEAP_OPTS": "-Xms1g -Xmx1g", "KAFKA_JVM_PERFORMANCE_OPTS": "-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20",
	"KAFKA_TRANSACTION_MAX_TIMEOUT_MS": "3600000",
}

// bench is everything that a run has.
type bench struct {
	Options
	began     time.Time
	dir       string
	bin       string // the consumer
	replayer  string
	collector string
	kafka     *testenv.KafkaServer
	postgres  *testenv.PostgresServer
	redis     *testenv.RedisServer // where the limit is measured
	dsn       string
	client    *kgo.Client
	topics    map[string]topic
	started   int // processes and groups so far
	sessions  int // most that the worker was seen to use at the same time
	runs      map[string][]Run
	order     []string // names of runs, as they came
	rows      []Row
	tables    []string        // that come behind the page
	columns   map[string]bool // names of runs whose rows were compared with Docket's
	former    edition         // the consumer of another commit, where there is one
}

type section struct {
	name string
	run  func(ctx context.Context) error
}

func (b *bench) sections() []section {
	return []section{
		{"drain", b.drain}, {"again", b.again}, {"bad", b.bad}, {"replay", b.replay}, {"latency", b.latency}, {"outage", b.outage}, {"scale", b.scale},
		{"memory", b.memory}, {"growth", b.growth}, {"desk", b.desk}, {"states", b.states}, {"limit", b.limit}, {"collect", b.collect}, {"against", b.against}, {"peers", b.peers},
		{"budget", b.budget}, {"profile", b.profile},
	}
}

func newBench(t *testing.T, o Options) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "docket-bench-") //nolint:usetesting // the logs stay when something broke
	check(t, err)
	b := &bench{Options: o, began: time.Now(), dir: dir, bin: filepath.Join(dir, "consumer"), replayer: filepath.Join(dir, "parking-replayer"), collector: filepath.Join(dir, "collector"), topics: map[string]topic{}, runs: map[string][]Run{}, columns: map[string]bool{}}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	// Without -trimpath and with cgo, unlike make build: so the packages that other tests compiled are used again. Neither
	// changes the code that is measured.
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", b.dir, "docket/cmd/consumer", "docket/cmd/parking-replayer", "docket/cmd/collector")
	build.Stderr = os.Stderr
	check(t, build.Run())
	b.postgres = testenv.OwnPostgresWith(t, testenv.PostgresOptions{Settings: postgresSettings, HostNetwork: true})
	b.kafka = testenv.OwnKafkaWith(t, testenv.KafkaOptions{Env: kafkaEnv, HostNetwork: true})
	b.dsn = b.postgres.Database(t)
	check(t, b.migrate(t.Context(), b.dsn))
	if o.Does("limit") {
		b.redis = testenv.OwnRedisOnHost(t)
	}
	if o.Does("against") {
		b.former = edition{bin: o.Against, dsn: b.postgres.Database(t)}
		check(t, b.as(b.former, func() error { return b.migrate(t.Context(), b.dsn) }))
	}
	b.client, err = kgo.NewClient(kgo.SeedBrokers(b.kafka.Brokers()...), kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.MaxBufferedRecords(20_000), kgo.ProducerLinger(20*time.Millisecond))
	check(t, err)
	t.Cleanup(b.client.Close)
	for _, name := range []string{"dlq", "parking", "parking-dlq"} {
		b.kafka.CreateTopic(t, logs+"-"+name, 3, nil)
	}
	b.say("Kafka and Postgres are up; %d decisions, %d rounds", o.N, o.Rounds)
	return b
}

// migrate makes the table by Docket's own migrations.
func (b *bench) migrate(ctx context.Context, dsn string) error {
	cmd := exec.CommandContext(ctx, b.bin, "migrate")
	cmd.Env = []string{"DOCKET_DATABASE_URL=" + dsn}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("consumer migrate: %w\n%s", err, out)
	}
	return nil
}

// say tells how far the run is.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.0f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// sql runs statements, each by itself, over a connection of its own.
func (b *bench) sql(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%.60s: %w", statement, err)
		}
	}
	return nil
}

// number asks for one number.
func (b *bench) number(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = b.one(ctx, &n, query, args...)
	return n, err
}

// one asks for one value.
func (b *bench) one(ctx context.Context, into any, query string, args ...any) error {
	conn, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := conn.QueryRow(ctx, query, args...).Scan(into); err != nil {
		return fmt.Errorf("%.60s: %w", query, err)
	}
	return nil
}

// emptied makes the table empty and what is on disk settled, so that every run pays its own way.
func (b *bench) emptied(ctx context.Context) error {
	return b.sql(ctx, "TRUNCATE decision_logs", "CHECKPOINT")
}

// with is the database with one more parameter in its address.
func with(dsn, name, value string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// judge adds a line to the page.
func (b *bench) judge(what string, f Figure, goal *Goal, format, note string) {
	b.rows = append(b.rows, Row{What: what, Measured: f, Goal: goal, Format: format, Note: note})
}

// keep remembers a run under its name.
func (b *bench) keep(name string, r Run) {
	if _, seen := b.runs[name]; !seen {
		b.order = append(b.order, name)
	}
	b.runs[name] = append(b.runs[name], r)
}

// repeatUntil is how long runs are made again; on a machine that is never quiet a whole run has to end all the same.
const repeatUntil = 20 * time.Minute

// measure makes a run, again where others used too much of the machine, and keeps the one that they disturbed least.
func (b *bench) measure(ctx context.Context, name string, run func(context.Context) (Run, error)) (Run, error) {
	var best Run
	for try := 0; ; try++ {
		r, err := run(ctx)
		if err != nil {
			return Run{}, fmt.Errorf("%s: %w", name, err)
		}
		b.say("%-50s %s", name, r)
		if try == 0 || r.Foreign < best.Foreign {
			best = r
		}
		if !best.Noisy() || try == b.Repeat || time.Since(b.began) > repeatUntil {
			b.keep(name, best)
			return best, nil
		}
	}
}

// rounds does all acts in each round, in another order each time, so that none is always first.
func (b *bench) rounds(n int, acts ...func() error) error {
	rng := rand.New(rand.NewPCG(b.Seed, uint64(n)))
	for range n {
		for _, i := range rng.Perm(len(acts)) {
			if err := acts[i](); err != nil {
				return err
			}
		}
	}
	return nil
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
