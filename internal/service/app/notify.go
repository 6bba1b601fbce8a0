package app

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"docket/internal/service/telemetry"
)

// How often the service manager is told, and how long it may take to listen.
const (
	notifyEvery   = 5 * time.Second
	notifyTimeout = time.Second
)

// Served is a program that runs and can be asked how it is.
type Served interface {
	Self
	Run(ctx context.Context) error
	Close()
}

// lagging is a program that knows how many records it is behind.
type lagging interface{ Lag() []telemetry.Lag }

// Notified returns p.Run for a service manager that listens: systemd with Type=notify names its socket in NOTIFY_SOCKET. It
// gets READY=1 at the start, as faults that can heal are waited for inside the program. STATUS= follows /readyz, and
// WATCHDOG=1 comes only while /healthz is 200. Where nobody listens, p.Run is returned as it is. failed is told once if the
// socket cannot be used; the program runs all the same.
func Notified(environ []string, p Served, failed func(error)) func(context.Context) error {
	n := notifierOf(environ)
	if n == nil {
		return p.Run
	}
	return func(ctx context.Context) error {
		conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
		if err != nil {
			failed(fmt.Errorf("tell the service manager: %w", err))
			return p.Run(ctx)
		}
		ended, told := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(told)
			defer func() { _ = conn.Close() }()
			n.keep(ctx, ended, conn, p)
		}()
		err = p.Run(ctx)
		close(ended)
		select {
		case <-told:
		case <-time.After(2 * notifyTimeout): // a stuck program may not answer about itself
		}
		return err
	}
}

// notifier tells one service manager.
type notifier struct {
	socket string
	every  time.Duration
	pet    bool // it expects a sign of life
}

// notifierOf reads the variables of the service manager. nil: there is none.
func notifierOf(environ []string) *notifier {
	of := func(name string) string {
		i := slices.IndexFunc(environ, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		if i < 0 {
			return ""
		}
		return environ[i][len(name)+1:]
	}
	n := &notifier{socket: of("NOTIFY_SOCKET"), every: notifyEvery}
	if n.socket == "" {
		return nil
	}
	limit, err := strconv.ParseInt(of("WATCHDOG_USEC"), 10, 64)
	pid := of("WATCHDOG_PID")
	if err == nil && limit > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.pet = true
		n.every = min(n.every, max(time.Duration(limit)*time.Microsecond/3, time.Millisecond))
	}
	return n
}

// keep tells how the program is until it ended.
func (n *notifier) keep(ctx context.Context, ended <-chan struct{}, conn *net.UnixConn, p Self) {
	tick := time.NewTicker(n.every)
	defer tick.Stop()
	said, stopping := "", ctx.Done()
	once := []string{"READY=1"} // until the service manager takes it
	for {
		lines, health := slices.Clone(once), p.Health()
		status := statusOf(health, p)
		if status != said {
			lines = append(lines, "STATUS="+status)
		}
		if n.pet && health.Healthy {
			lines = append(lines, "WATCHDOG=1")
		}
		if len(lines) > 0 && send(conn, lines) {
			once, said = nil, status
		}
		select {
		case <-ended:
			if stopping != nil && ctx.Err() != nil { // the program was told to end, and did so at once
				send(conn, []string{"STOPPING=1"})
			}
			return
		case <-stopping:
			stopping, once = nil, append(once, "STOPPING=1")
		case <-tick.C:
		}
	}
}

// send reports whether the service manager took the lines. One that is busy gets them the next time.
func send(conn *net.UnixConn, lines []string) bool {
	if conn.SetWriteDeadline(time.Now().Add(notifyTimeout)) != nil {
		return false
	}
	_, err := conn.Write([]byte(strings.Join(lines, "\n")))
	return err == nil
}

// statusOf is the state of a program on one line. It has no text of a server or a payload.
func statusOf(h Health, p Self) string {
	if !h.Healthy {
		return "not healthy: " + named(h.Reasons)
	}
	r := p.Readiness()
	switch only := named(r.Reasons); {
	case only == "stopping", only == "joining", only == "starting":
		return only
	case !r.Ready && r.Groupless:
		return "not ready: " + only
	case !r.Ready:
		return "holding: " + only
	}
	text := "ready"
	if !r.Groupless {
		text = fmt.Sprintf("assigned %d partitions", r.Assigned)
		if r.Assigned == 1 {
			text = "assigned 1 partition"
		}
	}
	if l, ok := p.(lagging); ok && r.Assigned > 0 {
		var behind int64
		for _, one := range l.Lag() {
			behind += max(one.Records, 0)
		}
		text += fmt.Sprintf(", lag %d", behind)
	}
	if len(r.Reasons) > 0 {
		text += "; " + named(r.Reasons)
	}
	return text
}

// named are the names of reasons, each once.
func named(reasons []Reason) string {
	var names []string
	for _, r := range reasons {
		if !slices.Contains(names, r.Reason) {
			names = append(names, r.Reason)
		}
	}
	return strings.Join(names, ", ")
}

// Lag tells how far each partition of all lanes is behind.
func (p *Program) Lag() []telemetry.Lag { return p.source.Lag() }
