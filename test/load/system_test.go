//go:build integration

package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/testenv"
)

// patience is the limit of every wait for something that has to come.
const patience = 3 * time.Minute

// stand has the servers of all scenarios.
type stand struct {
	kafka    *testenv.KafkaServer
	postgres *testenv.PostgresServer
}

// walFiles are of 16 MiB, and together what min_wal_size keeps.
const walFiles = 256

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{
		kafka: testenv.OwnKafkaWith(t, testenv.KafkaOptions{HostNetwork: true}),
		postgres: testenv.OwnPostgresWith(t, testenv.PostgresOptions{HostNetwork: true, Settings: []string{
			"shared_buffers=512MB", "max_wal_size=6GB", "min_wal_size=4GB", "backend_flush_after=512kB",
		}}),
	}
	if *whole {
		s.fillLog(t)
	}
	return s
}

// fillLog makes the files of the write-ahead log, which a server that has run for a day has. A new one makes each when it is
// needed. Every commit waits for that, up to a second on a busy disk.
func (s *stand) fillLog(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.postgres.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for range walFiles {
		if _, err := conn.Exec(t.Context(), "SELECT pg_switch_wal() FROM pg_logical_emit_message(true, 'docket', '')"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), "CHECKPOINT"); err != nil {
		t.Fatal(err)
	}
}

// The lanes, by the ends of their topics' names.
const (
	byDefault = ""
	urgent    = "-urgent"
	bulk      = "-bulk"
)

// partitions of each lane's topic.
const partitions = 4

// system is the topics of three lanes, a database that is migrated, and the programs on them.
type system struct {
	t       *testing.T
	stand   *stand
	topic   string // of the default lane
	group   string // of the default lane
	dsn     string // past all proxies
	dir     string
	env     []string
	client  *kgo.Client
	pool    *pgxpool.Pool
	started int
}

func (s *stand) system(t *testing.T) *system {
	t.Helper()
	p := testenv.Prefix(t)
	y := &system{t: t, stand: s, topic: p + "logs", group: p + "docket", dsn: s.postgres.Database(t), dir: t.TempDir()}
	y.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + y.dir, "DOCKET_KAFKA_BROKERS=" + strings.Join(s.kafka.Brokers(), ","),
		"DOCKET_KAFKA_TOPIC=" + y.topic, "DOCKET_KAFKA_GROUP=" + y.group, "DOCKET_PARKING_GROUP=" + y.group + "-parking", "DOCKET_DESK_GROUP=" + y.group + "-desk",
		"DOCKET_KAFKA_DLQ_TOPIC=" + y.topic + "-dlq", "DOCKET_KAFKA_PARKING_TOPIC=" + y.topic + "-parking", "DOCKET_KAFKA_PARKING_DLQ_TOPIC=" + y.topic + "-parking-dlq",
		"DOCKET_LANES=urgent,bulk", "DOCKET_KAFKA_SESSION_TIMEOUT=6s",
	}
	for _, lane := range []string{byDefault, urgent, bulk} {
		s.kafka.CreateTopic(t, y.topic+lane, partitions, nil)
	}
	for _, home := range []string{"-dlq", "-parking", "-parking-dlq"} {
		s.kafka.CreateTopic(t, y.topic+home, 2, nil)
	}
	y.command("migrate")
	var err error
	y.client, err = kgo.NewClient(kgo.SeedBrokers(s.kafka.Brokers()...), kgo.UnknownTopicRetries(-1), kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerLinger(2*time.Millisecond), kgo.MaxBufferedRecords(20_000))
	y.must(err)
	t.Cleanup(y.client.Close)
	y.pool, err = pgxpool.New(t.Context(), y.dsn)
	y.must(err)
	t.Cleanup(y.pool.Close)
	return y
}

func (y *system) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

// command runs docket to its end, against the database past all proxies, and returns what it printed.
func (y *system) command(args ...string) string {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "docket"), args...)
	cmd.Dir, cmd.Env = y.dir, append(append([]string{}, y.env...), "DOCKET_DATABASE_URL="+y.dsn)
	text, err := cmd.CombinedOutput()
	if err != nil {
		y.t.Fatalf("docket %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return string(text)
}

// number asks the database for one.
func (y *system) number(sql string, args ...any) (n int64) {
	y.t.Helper()
	y.must(y.pool.QueryRow(y.t.Context(), sql, args...).Scan(&n))
	return n
}

// until waits for a condition.
func (y *system) until(what string, done func() bool) {
	y.t.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			y.t.Fatalf("waited in vain until %s", what)
		}
		y.pause(10 * time.Millisecond)
	}
}

// pause waits, unless the test ends.
func (y *system) pause(d time.Duration) {
	select {
	case <-y.t.Context().Done():
		y.t.Fatal("the test ends")
	case <-time.After(d):
	}
}

// program is a running docket.
type program struct {
	y      *system
	name   string
	addr   string // of /metrics and /readyz
	api    string // of the desk's API
	log    string
	cmd    *exec.Cmd
	ended  chan struct{}
	client *http.Client
}

// consume starts a consumer and waits until it has partitions of all lanes and is ready.
func (y *system) consume(settings ...string) *program {
	y.t.Helper()
	p := y.start("consume", settings...)
	p.awaitReady()
	return p
}

// start starts a program of docket. It is stopped at the end of the test.
func (y *system) start(name string, settings ...string) *program {
	y.t.Helper()
	y.started++
	addr, err := testenv.FreeAddr()
	y.must(err)
	api, err := testenv.FreeAddr()
	y.must(err)
	p := &program{y: y, name: fmt.Sprintf("%s-%d", name, y.started), addr: addr, api: api, ended: make(chan struct{}), client: &http.Client{Timeout: patience, Transport: &http.Transport{DisableCompression: true}}}
	p.log = filepath.Join(y.dir, p.name+".log")
	file, err := os.Create(p.log)
	y.must(err)
	p.cmd = exec.Command(filepath.Join(bin, "docket"), name) // ended below
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = y.dir, file, file
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Env = append(append(append([]string{}, y.env...), "DOCKET_DATABASE_URL="+y.dsn, "DOCKET_HTTP_ADDR="+addr, "DOCKET_SPOOL_DIR="+filepath.Join(y.dir, "spool-"+p.name), "DOCKET_DESK_API_ADDR="+api), settings...)
	y.must(p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // stop looks at the exit code
		_ = file.Close() // the program had a handle of its own
		close(p.ended)
	}()
	y.t.Cleanup(func() {
		p.kill()
		p.client.CloseIdleConnections()
		if y.t.Failed() {
			text, _ := os.ReadFile(p.log)
			y.t.Logf("%s:\n%s", p.name, text[max(0, len(text)-8<<10):])
		}
	})
	return p
}

// kill ends the program at once. One that has ended stays as it is.
func (p *program) kill() {
	_ = p.cmd.Process.Kill() // fails only for one that has ended
	<-p.ended
}

// get asks the program over HTTP. The caller closes the body.
func (p *program) get(url string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(p.y.t.Context(), http.MethodGet, "http://"+url, nil)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return p.client.Do(req)
}

// readiness returns the status of /readyz and its body. The status is 0 while nobody answers.
func (p *program) readiness() (int, string) {
	resp, err := p.get(p.addr + "/readyz")
	if err != nil {
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }() // only read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(text)
}

func (p *program) awaitReady() {
	p.y.t.Helper()
	p.y.until(p.name+" is ready", func() bool {
		select {
		case <-p.ended:
			p.y.t.Fatalf("%s has ended", p.name)
		default:
		}
		status, _ := p.readiness()
		return status == http.StatusOK
	})
}

// metric returns the sum of the series of a metric, of those that have all of these labels, written as label="value".
func (p *program) metric(name string, labels ...string) float64 {
	p.y.t.Helper()
	resp, err := p.get(p.addr + "/metrics")
	p.y.must(err)
	defer func() { _ = resp.Body.Close() }() // only read
	sum := 0.0
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		series, text, _ := strings.Cut(lines.Text(), " ")
		short, of, _ := strings.Cut(series, "{")
		if short != name || !hasAll(of, labels) {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		p.y.must(err)
		sum += value
	}
	p.y.must(lines.Err())
	return sum
}

func hasAll(text string, labels []string) bool {
	for _, l := range labels {
		if !strings.Contains(text, l) {
			return false
		}
	}
	return true
}

// connect returns a connection of its own to the database, without a plan that reads the whole table.
func (y *system) connect() *pgx.Conn {
	y.t.Helper()
	conn, err := pgx.Connect(y.t.Context(), y.dsn)
	y.must(err)
	y.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(y.t.Context(), "SET enable_seqscan = off") // planned while the table is all but empty
	y.must(err)
	return conn
}
