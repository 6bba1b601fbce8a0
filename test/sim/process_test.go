//go:build synctests

package sim

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/fallback"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// errKilled is the error of every act of a process after it was killed.
var errKilled = errors.New("the process was killed")

// process is one life of a program. It is the real program, on connections and a disk of its own, so that it can be
// cut off between any two effects.
type process struct {
	w        *world
	slot     *slot
	name     string
	settings config.Settings
	program  *app.Program // nil for a desk
	registry *prometheus.Registry
	stop     context.CancelFunc
	ended    chan struct{} // closed when nothing of it is left
	killed   chan struct{} // closed when it was killed
	err      error         // of Run; read after ended
	began    time.Time
	endedAt  time.Time // read after ended
	shown    *shown

	mu        sync.Mutex
	dead      bool
	stopped   bool // told to stop, or killed
	stoppedAt time.Time
	gaveUp    []time.Time    // times at which it logged that it had given partitions up
	stood     [][2]time.Time // spans of its pauses
	standing  chan struct{}  // not nil while it is paused
	effects   int
	strike    *strike // strikes at one of the next effects
	conns     []*conn // open ones, in the order in which they were made
	locks     []interface{ Close() error }
}

// strike is a fault of a process at an effect.
type strike struct {
	at     int // number of the effect
	before bool
	do     func(*process)
	only   []string // name prefixes of effects; nil: any
	spared int      // of these
}

// effect lets an effect that is visible outside happen, unless the process is dead. It waits while the process is
// paused. The caller calls after when the effect took place.
func (p *process) effect(what string, size int) (after func(), err error) {
	for {
		p.mu.Lock()
		if p.dead {
			p.mu.Unlock()
			return nil, errKilled
		}
		standing := p.standing
		if standing == nil {
			break
		}
		p.mu.Unlock()
		<-standing
	}
	p.effects++
	p.w.history.effect(p.name, what, size)
	hit := p.strike
	if hit == nil || hit.at > p.effects || hit.spares(what) {
		p.mu.Unlock()
		return nothing, nil
	}
	p.strike = nil
	p.mu.Unlock()
	if !hit.before {
		return func() { hit.do(p) }, nil
	}
	hit.do(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil, errKilled
	}
	return nothing, nil
}

func nothing() {}

// arm makes do happen at the n-th effect from now.
func (p *process) arm(n int, before bool, do func(*process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strike = &strike{at: p.effects + n, before: before, do: do}
}

// only limits the armed strike to effects with these names, after spared of them.
func (p *process) only(spared int, names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.strike != nil {
		p.strike.only, p.strike.spared = names, spared
	}
}

// spares reports whether the strike skips an effect.
func (s *strike) spares(what string) bool {
	if s.only == nil {
		return false
	}
	if !slices.ContainsFunc(s.only, func(name string) bool { return strings.HasPrefix(what, name) }) {
		return true
	}
	s.spared--
	return s.spared >= 0
}

// kill is SIGKILL: from here on the process has no effects.
func (p *process) kill() {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	p.dead = true
	p.stops()
	conns, locks := p.conns, p.locks
	p.conns, p.locks = nil, nil
	standing := p.standing
	p.standing = nil
	p.mu.Unlock()
	close(p.killed)
	p.w.history.add("killed", p.name, "")
	for _, c := range conns {
		_ = c.Conn.Close()
	}
	for _, l := range locks {
		_ = l.Close()
	}
	if standing != nil {
		close(standing)
	}
	p.stop()
}

// stops notes that the process was told to stop, or killed.
func (p *process) stops() {
	if !p.stopped {
		p.stopped, p.stoppedAt = true, time.Now()
	}
}

// term is SIGTERM.
func (p *process) term() {
	p.mu.Lock()
	p.stops()
	p.mu.Unlock()
	p.w.history.add("told to stop", p.name, "")
	p.stop()
}

// pause is SIGSTOP for d, as seen from outside: its timers run, and their effects are late.
func (p *process) pause(d time.Duration) {
	p.mu.Lock()
	if p.dead || p.standing != nil {
		p.mu.Unlock()
		return
	}
	p.standing = make(chan struct{})
	p.stood = append(p.stood, [2]time.Time{time.Now(), time.Now().Add(d)})
	p.mu.Unlock()
	p.w.history.add("stands still", p.name, d.String())
	p.w.later(d, func() {
		if p.wake() {
			p.w.history.add("goes on", p.name, "")
		}
	})
}

// hasStood reports whether the process was ever paused. It may then read answers on connections that it had given up.
func (p *process) hasStood() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stood) > 0
}

// wake resumes a process, and reports whether it was paused.
func (p *process) wake() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.standing == nil {
		return false
	}
	close(p.standing)
	p.standing = nil
	return true
}

// cut breaks every connection of a kind.
func (p *process) cut(kind string) {
	p.mu.Lock()
	var broken []*conn
	for _, c := range p.conns {
		if c.kind == kind {
			broken = append(broken, c)
		}
	}
	p.mu.Unlock()
	for _, c := range broken {
		c.sever()
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *process) standsStill() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.standing != nil
}

func (p *process) wasStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// The kinds of connection.
const (
	toKafka    = "kafka"
	toDatabase = "database"
)

// dialer returns how a process connects to a server.
func (p *process) dialer(kind string, dial app.Dial) app.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		after, err := p.effect("dial "+kind, 0)
		if err != nil || p.w.net.refuses(kind) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errRefused}
		}
		defer after()
		inner, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: inner, p: p, kind: kind}
		if kind == toDatabase {
			p.w.witness.dialled(p, inner)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.dead {
			_ = inner.Close()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errRefused}
		}
		p.conns = append(p.conns, c)
		return c, nil
	}
}

// conn is a connection of a process.
type conn struct {
	net.Conn
	p     *process
	kind  string
	given atomic.Bool // its client seemed to give it up
}

func (c *conn) Write(b []byte) (int, error) {
	if len(b) > 0 && !isFarewell(b) && c.given.CompareAndSwap(true, false) {
		c.p.w.witness.dialled(c.p, c.Conn) // a context ended just when its call was done, and the connection stays open
	}
	after, err := c.p.effect(label(c.kind, b), len(b))
	if err != nil {
		return 0, err
	}
	defer after()
	switch c.p.w.net.fate(c.kind) {
	case cutBefore:
		c.sever()
		return 0, net.ErrClosed
	case cutAfter:
		_, _ = c.Conn.Write(b)
		c.sever()
		return 0, net.ErrClosed
	case swallowed:
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// isFarewell reports whether a write to the database ends with Terminate. The driver may send a pending ROLLBACK in
// the same write. Nobody reads its answer either.
func isFarewell(b []byte) bool { return bytes.HasSuffix(b, []byte{'X', 0, 0, 0, 4}) }

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for {
		c.p.mu.Lock()
		dead, standing := c.p.dead, c.p.standing
		c.p.mu.Unlock()
		if dead {
			return 0, errKilled
		}
		if standing == nil {
			return n, err
		}
		<-standing
	}
}

// sever ends the connection.
func (c *conn) sever() {
	c.desert()
	_ = c.Conn.Close()
}

// desert notes that the process no longer reads.
func (c *conn) desert() {
	if c.kind == toDatabase {
		c.p.w.witness.deserted(c.Conn)
	}
}

// SetDeadline in the past is how the database client gives up a connection.
func (c *conn) SetDeadline(t time.Time) error {
	if !t.IsZero() && !t.After(time.Now()) {
		c.desert()
		c.given.Store(c.kind == toDatabase)
	}
	return c.Conn.SetDeadline(t)
}

func (c *conn) Close() error {
	c.desert()
	c.p.mu.Lock()
	if i := slices.Index(c.p.conns, c); i >= 0 {
		c.p.conns = slices.Delete(c.p.conns, i, i+1)
	}
	c.p.mu.Unlock()
	return c.Conn.Close()
}

// disk is the disk of its slot as a process sees it.
type disk struct {
	p     *process
	inner fallback.FS
}
