//go:build integration

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
	"docket/internal/errclass"
	"docket/internal/record/home"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
	"docket/sample"
)

// bin is where TestMain put the programs.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "docket-e2e-")
	if err == nil {
		bin = dir
		build := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir, "docket/cmd/consumer", "docket/cmd/parking-replayer", "docket/cmd/docket", "docket/cmd/collector")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: build the programs: %v\n", err)
		os.Exit(1)
	}
	// testenv.Main does not return. The folder holds only the programs; the system clears its temporary files.
	testenv.Main(m)
}

const maxRecordBytes = 1 << 20

// patience is the limit of every wait for something that has to come. It promises no time: a promise of a time has a bound
// of its own. So a busy machine may take long.
const patience = 3 * time.Minute

// brokers are where a system has its topics.
type brokers interface {
	Brokers() []string
	CreateTopic(t testing.TB, topic string, partitions int32, settings map[string]string)
}

// system is a set of topics, a database and the programs that work on them.
type system struct {
	t       *testing.T
	kafka   brokers
	dsn     string
	places  conservation.Places
	ledger  *conservation.Produced
	dir     string
	env     []string
	started int
	former  bool // programs of the previous release take part
	asking  *pgtest.Sessions
}

// newSystem makes four topics, and a database that is migrated.
func newSystem(t *testing.T, kafka brokers, db *testenv.PostgresServer, env ...string) *system {
	t.Helper()
	return partitioned(t, kafka, db, 6, env...)
}

// partitioned is newSystem with so many partitions of the source.
func partitioned(t *testing.T, kafka brokers, db *testenv.PostgresServer, n int32, env ...string) *system {
	t.Helper()
	s := bareSystem(t, kafka, db.Database(t), env...)
	for topic, partitions := range map[string]int32{
		s.places.Topic: n, s.places.DLQTopic: 3, s.places.ParkingTopic: min(4, n), s.places.ParkingDLQ: 2,
	} {
		kafka.CreateTopic(t, topic, partitions, nil)
	}
	s.migrate()
	return s
}

// bareSystem makes names only.
func bareSystem(t *testing.T, kafka brokers, dsn string, env ...string) *system {
	t.Helper()
	p := testenv.Prefix(t)
	s := &system{t: t, kafka: kafka, dsn: dsn, ledger: conservation.NewProduced(), dir: t.TempDir(), asking: &pgtest.Sessions{}}
	s.places = conservation.Places{
		Brokers: kafka.Brokers(), DatabaseURL: dsn, Topic: p + "logs", Group: p + "docket", ParkingTopic: p + "parking",
		ParkingGroup: p + "replay", DLQTopic: p + "dlq", ParkingDLQ: p + "parking-dlq",
	}
	s.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir,
		"DOCKET_KAFKA_BROKERS=" + strings.Join(s.places.Brokers, ","), "DOCKET_DATABASE_URL=" + dsn,
		"DOCKET_KAFKA_TOPIC=" + s.places.Topic, "DOCKET_KAFKA_DLQ_TOPIC=" + s.places.DLQTopic,
		"DOCKET_KAFKA_PARKING_TOPIC=" + s.places.ParkingTopic, "DOCKET_KAFKA_PARKING_DLQ_TOPIC=" + s.places.ParkingDLQ,
		"DOCKET_KAFKA_GROUP=" + s.places.Group, "DOCKET_PARKING_GROUP=" + s.places.ParkingGroup,
		"DOCKET_KAFKA_SESSION_TIMEOUT=6s", "DOCKET_RETRY_PAUSES=200ms,400ms", "DOCKET_PROBE_INTERVAL=200ms",
		"DOCKET_PARKING_BACKOFF=500ms", "DOCKET_PARKING_MAX_BACKOFF=2s", "DOCKET_BATCH_MAX_RECORDS=200",
		"DOCKET_PUBLISH_TIMEOUT=5s", "DOCKET_MAX_RECORD_BYTES=1MiB", "DOCKET_SHUTDOWN_TIMEOUT=20s",
	}, env...)
	return s
}

func (s *system) migrate() {
	s.t.Helper()
	if out, code := s.command(nil, "consumer", "migrate"); code != 0 {
		s.t.Fatalf("consumer migrate ended with %d:\n%s", code, out)
	}
}

// exec runs SQL in the system's database.
func (s *system) exec(sql string, args ...any) {
	s.t.Helper()
	err := s.connected(func(conn *pgx.Conn) error {
		_, err := conn.Exec(s.t.Context(), sql, args...)
		return err
	})
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// dropping drops a trigger and its function while programs write. The table is locked first: a DROP locks the partitions
// before it, as no writer does, and can end as a deadlock.
func dropping(name string) string {
	return "BEGIN; LOCK TABLE decision_logs; DROP FUNCTION " + name + " CASCADE; COMMIT"
}

// connect returns a connection that stays until the end of the test.
func (s *system) connect() *pgx.Conn {
	s.t.Helper()
	conn, err := s.dial()
	if err != nil {
		s.t.Fatalf("connect to Postgres: %v", err)
	}
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (s *system) dial() (*pgx.Conn, error) {
	url, err := s.writable()
	if err != nil {
		return nil, err
	}
	return pgx.Connect(s.t.Context(), url)
}

// writable returns the URL of the database for the test itself, whatever it made of the database.
func (s *system) writable() (string, error) {
	u, err := url.Parse(s.dsn)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set("default_transaction_read_only", "off")
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// connected calls f with a connection that nobody else has meanwhile. A question that is repeated until its answer fits uses
// the same one each time.
func (s *system) connected(f func(*pgx.Conn) error) error {
	url, err := s.writable()
	if err != nil {
		return err
	}
	return s.asking.With(s.t.Context(), s.t, url, f)
}

// scan reads one row into dest.
func (s *system) scan(sql string, args []any, dest ...any) error {
	return s.connected(func(conn *pgx.Conn) error { return conn.QueryRow(s.t.Context(), sql, args...).Scan(dest...) })
}

func (s *system) rows(where string) (n int) {
	s.t.Helper()
	if err := s.scan("SELECT count(*) FROM decision_logs WHERE "+where, nil, &n); err != nil {
		s.t.Fatalf("count rows: %v", err)
	}
	return n
}

// command runs a program to its end and returns what it printed.
func (s *system) command(env []string, name string, args ...string) (string, int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	cmd.Dir, cmd.Env = s.dir, append(append([]string{}, s.env...), env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		s.t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// eventually asks again and again until f has no complaint.
func eventually(t *testing.T, limit time.Duration, what string, f func() error) {
	t.Helper()
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(limit)
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after %v still not so that %s: %v", limit, what, err)
		case <-t.Context().Done():
			t.Fatalf("ended while waiting until %s: %v", what, err)
		case <-tick.C:
		}
	}
}

// producer writes decisions of every shape into the source topic and remembers where they went.
type producer struct {
	s      *system
	cl     *kgo.Client
	gen    *conservation.Generator
	wg     sync.WaitGroup
	enough atomic.Bool // ends the sending in the background
}

// unhurried is the pause between records where each step of a test waits for some more, and the test itself ends the load. It
// has to last for the last step, on a machine that is slow as well, and not to pile up on it.
const unhurried = 5 * time.Millisecond

// generate starts making n records by seed; the table must refuse what carries the generator's marker.
func (s *system) generate(n int, seed uint64) *producer {
	s.t.Helper()
	s.exec(conservation.RefuseSQL)
	gen, err := conservation.New(conservation.Config{
		Records: n, Seed: seed, Samples: sample.DecisionLogs(), Start: time.Now().Add(-time.Hour), MaxRecordBytes: maxRecordBytes,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	// A proxy can close a connection while the broker behind it restarts.
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1), kgo.DefaultProduceTopic(s.places.Topic), kgo.AlwaysRetryEOF())
	if err != nil {
		s.t.Fatal(err)
	}
	p := &producer{s: s, cl: cl, gen: gen}
	s.t.Cleanup(func() { // a test that gave up has no use for more, and no place for errors of it
		p.enough.Store(true)
		p.wg.Wait()
		flush, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = cl.Flush(flush) // each record without an acknowledgement was counted
		cl.Close()
	})
	return p
}

// produce sends the next n records, or all that are left where n is 0, and waits until the broker has them.
func (p *producer) produce(n int) {
	p.s.t.Helper()
	p.background(n, 0)
	p.wg.Wait()
	if err := p.cl.Flush(p.s.t.Context()); err != nil {
		p.s.t.Fatalf("produce: %v", err)
	}
}

// background sends records with a pause between them, while the test continues.
func (p *producer) background(n int, pause time.Duration) {
	p.wg.Go(func() {
		for i := 0; (n == 0 || i < n) && !p.enough.Load(); i++ {
			r, ok := p.gen.Next()
			if !ok {
				return
			}
			p.cl.Produce(context.Background(), &kgo.Record{Key: r.Key, Value: r.Value, Headers: r.Headers}, func(k *kgo.Record, err error) {
				if err != nil {
					p.s.t.Errorf("produce: %v", err)
					return
				}
				p.s.ledger.Acknowledged(k.Topic, k.Partition, k.Offset, r)
			})
			if pause > 0 {
				time.Sleep(pause) // the load's own pace
			}
		}
	})
}

// send writes values as they are into the source topic.
func (s *system) send(values ...string) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1), kgo.DefaultProduceTopic(s.places.Topic), kgo.AlwaysRetryEOF())
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	var rs []*kgo.Record
	for i, v := range values {
		rs = append(rs, &kgo.Record{Key: []byte(strconv.Itoa(i % 7)), Value: []byte(v)})
	}
	if err := cl.ProduceSync(s.t.Context(), rs...).FirstErr(); err != nil {
		s.t.Fatalf("produce: %v", err)
	}
}

// logOf is a plain decision with extra members, as in `,"a":1`.
func logOf(id, extra string) string {
	return fmt.Sprintf(`{"decision_id":%q,"timestamp":%q,"path":"e2e/allow","result":true%s}`, id, time.Now().UTC().Format(time.RFC3339Nano), extra)
}

// drained waits until both groups have committed everything and the spools are empty.
func (s *system) drained(limit time.Duration) {
	s.t.Helper()
	eventually(s.t, limit, "everything is committed and the spools are empty", func() error {
		source, parking, err := s.places.Lag(s.t.Context())
		if err != nil {
			return err
		}
		if source+parking > 0 {
			return fmt.Errorf("lag of the source %d, of parking %d", source, parking)
		}
		for _, dir := range s.places.SpoolDirs {
			if files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl.gz")); len(files) > 0 {
				return fmt.Errorf("%d files in %s", len(files), dir)
			}
		}
		return nil
	})
}

// account drains and then counts: every decision that was produced has exactly one home, the right one.
func (s *system) account(limit time.Duration) *conservation.Account {
	s.t.Helper()
	a := s.settled(limit)
	if err := a.Err(); err != nil {
		s.t.Errorf("the account does not add up: %v", err)
	}
	return a
}

// settled drains and then counts.
func (s *system) settled(limit time.Duration) *conservation.Account {
	s.t.Helper()
	s.drained(limit)
	ev, err := conservation.Gather(s.t.Context(), s.places, s.ledger)
	if err != nil {
		s.t.Fatal(err)
	}
	ev.Live = s.former
	a := conservation.Reconcile(s.ledger, ev)
	const code = errclass.CodeOutOfRange
	if found := a.DeadLetters[code]; s.former && found > a.Planted[code] { // it refuses what has a twin now
		a.Planted[code] = found
	}
	s.t.Logf("produced %d = %v, dead letters %v", a.Produced, a.Homes, a.DeadLetters)
	return a
}

// forwarded counts the records of a home by failure code.
func (s *system) forwarded(topic string, h home.Home) map[string]int {
	s.t.Helper()
	found, err := conservation.ReadTopic(s.t.Context(), s.places.Brokers, topic, h, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	codes := map[string]int{}
	for _, f := range found {
		codes[f.Code]++
	}
	return codes
}

// sound checks what holds of a process whenever nothing is in hand.
func (p *process) sound() {
	p.t.Helper()
	eventually(p.t, patience, p.name+" accounts for everything", func() error {
		if n := p.metric("docket_unaccounted_records"); n != 0 {
			return fmt.Errorf("docket_unaccounted_records is %v", n)
		}
		return nil
	})
	for line := range strings.Lines(p.out.String()) {
		if !json.Valid([]byte(line)) {
			p.t.Errorf("%s logged a line that is not JSON: %q", p.name, line)
		}
	}
}
