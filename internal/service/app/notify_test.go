package app

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/internal/service/telemetry"
)

// told is a program that says what it is told to say.
type told struct {
	mu     sync.Mutex
	health Health
	ready  Readiness
	lag    []telemetry.Lag
	ran    chan struct{}
}

func (p *told) set(change func(*told)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *told) Health() Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health
}

func (p *told) Readiness() Readiness {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func (p *told) Lag() []telemetry.Lag {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lag
}

var errTold = errors.New("ended")

func (p *told) Run(ctx context.Context) error {
	close(p.ran)
	<-ctx.Done()
	return errTold
}

func (p *told) Close() {}

func newTold() *told {
	return &told{health: Health{Healthy: true}, ready: Readiness{Ready: true, Joined: true, Assigned: 12}, lag: []telemetry.Lag{{Records: 100}, {Records: 200}, {Records: -1}}, ran: make(chan struct{})}
}

// manager is a service manager that listens.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
	pets int // signs of life so far
}

func listening(t *testing.T) (*manager, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") //nolint:usetesting // the name of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), os.RemoveAll(dir) })
	return &manager{t: t, conn: conn}, path
}

// await reads until a line comes, and counts signs of life on the way.
func (m *manager) await(line string) {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		m.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	var seen []string
	for {
		n, err := m.conn.Read(buf)
		if err != nil {
			m.t.Fatalf("%s did not come: %v; seen %q", line, err, seen)
		}
		found := false
		for l := range strings.SplitSeq(string(buf[:n]), "\n") {
			if l == "WATCHDOG=1" {
				m.pets++
				l = "WATCHDOG=1 " + strconv.Itoa(m.pets)
			}
			seen = append(seen, l)
			found = found || l == line
		}
		if found {
			return
		}
	}
}

func run(t *testing.T, p *told, environ ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Notified(environ, p, func(err error) { t.Error(err) })(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, errTold) {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestNotified_StatusFollowsReadyz(t *testing.T) {
	t.Parallel()
	m, socket := listening(t)
	p := newTold()
	stop := run(t, p, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=3000")
	defer stop()
	m.await("READY=1")
	for _, step := range []struct {
		change func(*told)
		status string
	}{
		{func(p *told) { p.ready.Assigned = 11 }, "assigned 11 partitions, lag 300"},
		{func(p *told) {
			p.ready.Ready, p.ready.Reasons = false, []Reason{{Reason: "database_away"}, {Reason: "database_away", Code: "57P03"}, {Reason: "kafka_away"}}
		}, "holding: database_away, kafka_away"},
		{func(p *told) { p.ready.Reasons = []Reason{{Reason: "joining"}} }, "joining"},
		{func(p *told) {
			p.ready.Ready, p.ready.Assigned, p.ready.Reasons = true, 1, []Reason{{Reason: "yielding"}}
		}, "assigned 1 partition, lag 300; yielding"},
		{func(p *told) { p.ready = Readiness{Groupless: true, Reasons: []Reason{{Reason: "kafka_away"}}} }, "not ready: kafka_away"},
		{func(p *told) { p.ready = Readiness{Groupless: true, Ready: true} }, "ready"},
	} {
		p.set(step.change)
		m.await("STATUS=" + step.status)
	}
	go stop()
	m.await("STOPPING=1")
	stop()
}

// TestNotified_WedgedIsNotPetted: no sign of life comes between two states of a program that is not healthy.
func TestNotified_WedgedIsNotPetted(t *testing.T) {
	t.Parallel()
	m, socket := listening(t)
	p := newTold()
	defer run(t, p, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=3000", "WATCHDOG_PID="+strconv.Itoa(os.Getpid()))()
	m.await("READY=1")
	m.await("WATCHDOG=1 " + strconv.Itoa(m.pets+3))
	wedged := func(name string) func(*told) {
		return func(p *told) { p.health = Health{Reasons: []Reason{{Reason: name}}} }
	}
	p.set(wedged("wedged"))
	m.await("STATUS=not healthy: wedged")
	pets := m.pets
	for _, name := range []string{"again", "still", "for ever"} {
		p.set(wedged(name))
		m.await("STATUS=not healthy: " + name)
	}
	if m.pets != pets {
		t.Errorf("%d signs of life of a program that is stuck", m.pets-pets)
	}
	p.set(func(p *told) { p.health = Health{Healthy: true} })
	m.await("WATCHDOG=1 " + strconv.Itoa(m.pets+1))
}

func TestNotified_Variables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		want    *notifier
	}{
		"nobody listens":     {[]string{"WATCHDOG_USEC=1000000"}, nil},
		"no watchdog":        {[]string{"NOTIFY_SOCKET=/run/s"}, &notifier{"/run/s", notifyEvery, false}},
		"a long watchdog":    {[]string{"NOTIFY_SOCKET=@s", "WATCHDOG_USEC=120000000"}, &notifier{"@s", notifyEvery, true}},
		"a short watchdog":   {[]string{"NOTIFY_SOCKET=/run/s", "WATCHDOG_USEC=3000000"}, &notifier{"/run/s", time.Second, true}},
		"of another process": {[]string{"NOTIFY_SOCKET=/run/s", "WATCHDOG_USEC=3000000", "WATCHDOG_PID=1"}, &notifier{"/run/s", notifyEvery, false}},
		"nonsense":           {[]string{"NOTIFY_SOCKET=/run/s", "WATCHDOG_USEC=soon"}, &notifier{"/run/s", notifyEvery, false}},
	} {
		got := notifierOf(c.environ)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestNotified_RunsWithoutAManager: a socket that is not there is told once, and the program runs.
func TestNotified_RunsWithoutAManager(t *testing.T) {
	t.Parallel()
	for _, environ := range [][]string{nil, {"NOTIFY_SOCKET=" + filepath.Join(t.TempDir(), "none")}} {
		p := newTold()
		var said []error
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- Notified(environ, p, func(err error) { said = append(said, err) })(ctx) }()
		<-p.ran
		cancel()
		if err := <-ended; !errors.Is(err, errTold) || len(said) != len(environ) {
			t.Errorf("%v: %v, said %v", environ, err, said)
		}
	}
}
