//go:build integration

package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/output"
	"docket/internal/testkit/testenv"
)

// patience is the limit of every wait for something that has to come. It promises no time.
const patience = 3 * time.Minute

// The users of the console, each with the role in the name of its token.
const users = "vera:viewer:planted-token-of-viewer aude:auditor:planted-token-of-auditor olga:operator:planted-token-of-operator adam:admin:planted-token-of-admin"

func tokenOf(role string) string { return "planted-token-of-" + role }

// stack is a set of topics, a database and the programs that work on them.
type stack struct {
	t     testing.TB
	kafka *testenv.KafkaServer
	dsn   string
	topic string
	dir   string
	env   []string
	url   string // of the console
}

// newStack makes topics, whose names begin with p, and a migrated database.
func newStack(t testing.TB, kafka *testenv.KafkaServer, db *testenv.PostgresServer, p string) *stack {
	t.Helper()
	s := &stack{t: t, kafka: kafka, dsn: db.Database(t), topic: p + "logs", dir: t.TempDir()}
	topics := map[string]string{"DOCKET_KAFKA_TOPIC": s.topic, "DOCKET_KAFKA_DLQ_TOPIC": p + "logs-dlq", "DOCKET_KAFKA_PARKING_TOPIC": p + "logs-parking", "DOCKET_KAFKA_PARKING_DLQ_TOPIC": p + "logs-parking-dlq"}
	api := freeAddr(t)
	s.url = "http://" + api
	s.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "DOCKET_KAFKA_BROKERS=" + strings.Join(kafka.Brokers(), ","), "DOCKET_DATABASE_URL=" + s.dsn,
		"DOCKET_KAFKA_GROUP=" + p + "docket", "DOCKET_PARKING_GROUP=" + p + "replay", "DOCKET_DESK_GROUP=" + p + "desk",
		"DOCKET_KAFKA_SESSION_TIMEOUT=6s", "DOCKET_RETRY_PAUSES=200ms,400ms", "DOCKET_PROBE_INTERVAL=200ms", "DOCKET_SHUTDOWN_TIMEOUT=20s",
		"DOCKET_DESK_API_ADDR=" + api, "DOCKET_DESK_API_TOKENS=" + users, "DOCKET_DESK_RELAY_INTERVAL=100ms", "DOCKET_DESK_RETRY_KINDS=", "DOCKET_STATES=true",
	}
	for setting, topic := range topics {
		s.env = append(s.env, setting+"="+topic)
		var settings map[string]string
		if setting != "DOCKET_KAFKA_TOPIC" {
			settings = map[string]string{"max.message.bytes": "1052684"} // as docket topics create does: room for headers
		}
		kafka.CreateTopic(t, topic, 3, settings)
	}
	s.run("migrate")
	return s
}

func freeAddr(t testing.TB) string {
	t.Helper()
	addr, err := testenv.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// run runs a command of docket to its end.
func (s *stack) run(args ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "docket"), args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("docket %v: %v\n%s", args, err, out)
	}
}

// exec runs SQL in the database.
func (s *stack) exec(sql string, args ...any) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatalf("%.200s: %v", sql, err)
	}
}

// ask reads one value from the database.
func ask[T any](s *stack, sql string, args ...any) (value T) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(s.t.Context(), sql, args...).Scan(&value); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		s.t.Fatalf("%.200s: %v", sql, err)
	}
	return value
}

// send writes values as they are into the topic.
func (s *stack) send(values ...string) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Brokers()...), kgo.UnknownTopicRetries(-1), kgo.DefaultProduceTopic(s.topic), kgo.AlwaysRetryEOF())
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	var all []*kgo.Record
	for i, v := range values {
		all = append(all, &kgo.Record{Key: fmt.Append(nil, i%7), Value: []byte(v)})
	}
	if err := cl.ProduceSync(s.t.Context(), all...).FirstErr(); err != nil {
		s.t.Fatalf("produce: %v", err)
	}
}

// process is a running program.
type process struct {
	t     testing.TB
	name  string
	cmd   *exec.Cmd
	addr  string
	out   output.Buffer
	ended chan struct{}
}

func (s *stack) start(command string, env ...string) *process {
	s.t.Helper()
	p := &process{t: s.t, name: command, addr: freeAddr(s.t), ended: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(bin, "docket"), command)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.dir, &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Env = append(append([]string{}, s.env...), append([]string{"DOCKET_HTTP_ADDR=" + p.addr, "DOCKET_SPOOL_DIR=spool/" + command}, env...)...)
	if err := p.cmd.Start(); err != nil {
		s.t.Fatalf("start %s: %v", command, err)
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if s.t.Failed() {
			s.t.Logf("%s said:\n%s", p.name, last(p.out.String(), 4000))
		}
	})
	return p
}

func last(text string, n int) string { return text[max(0, len(text)-n):] }

// stop sends SIGTERM and waits for the end.
func (p *process) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s did not end after SIGTERM", p.name)
	}
}

// awaitReady waits until the program says that it is ready.
func (p *process) awaitReady() {
	p.t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	eventually(p.t, p.name+" is ready", func() error {
		answer, err := client.Get("http://" + p.addr + "/readyz")
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz: %d", answer.StatusCode)
		}
		return nil
	})
}

// desk starts a desk and waits until it is ready.
func (s *stack) desk() *process {
	s.t.Helper()
	p := s.start("desk")
	p.awaitReady()
	return p
}

// eventually asks again and again until f has no complaint.
func eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after %v still not so that %s: %v", patience, what, err)
		case <-t.Context().Done():
			t.Fatalf("ended while waiting until %s: %v", what, err)
		case <-tick.C:
		}
	}
}
