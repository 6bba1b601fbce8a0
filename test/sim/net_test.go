//go:build synctests

package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// network is a loopback in memory. A write never waits for its reader, like with a socket's buffer, because a paused
// process must not block its server. All waits use channels, which a bubble's clock can see.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
}

func newNetwork() *network { return &network{listeners: map[string]*listener{}} }

type listener struct {
	n       *network
	address string
	arrived chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

type addr string

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }

// errRefused is the error of a dial without a listener. After an unknown error the Kafka client would retry without a
// pause.
var errRefused = os.NewSyscallError("connect", syscall.ECONNREFUSED)

// Listen takes host:port and uses only the port.
func (n *network) Listen(_, address string) (net.Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[port] != nil {
		return nil, errors.New("address already in use")
	}
	l := &listener{n: n, address: net.JoinHostPort("localhost", port), arrived: make(chan net.Conn, 64), closed: make(chan struct{})}
	n.listeners[port] = l
	return l, nil
}

// Dial connects to a listener.
func (n *network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	n.mu.Lock()
	l := n.listeners[port]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errRefused}
	}
	here, there := pipe(address)
	select {
	case l.arrived <- there:
		return here, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errRefused}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.arrived:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.n.mu.Lock()
		defer l.n.mu.Unlock()
		for port, other := range l.n.listeners {
			if other == l {
				delete(l.n.listeners, port)
			}
		}
		for {
			select {
			case c := <-l.arrived:
				_ = c.Close()
			default:
				return
			}
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return addr(l.address) }

// transit is the time of a write. Without it a client that retries at once would do so for ever in no time. Docket's
// client does that after NOT_ENOUGH_REPLICAS_AFTER_APPEND when its caller has given up.
const transit = 200 * time.Microsecond

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex
	buf      []byte
	at       int
	ended    bool // nothing more will be written
	gone     bool // the reader is gone
	deadline time.Time
	news     chan struct{}
}

func newStream() *stream { return &stream{news: make(chan struct{}, 1)} }

func (s *stream) tell() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

func (s *stream) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.ended {
		return 0, io.ErrClosedPipe
	}
	if s.at == len(s.buf) {
		s.buf, s.at = s.buf[:0], 0
	}
	s.buf = append(s.buf, p...)
	s.tell()
	return len(p), nil
}

func (s *stream) read(p []byte) (int, error) {
	for {
		s.mu.Lock()
		var wait <-chan time.Time
		switch {
		case s.gone:
			s.mu.Unlock()
			return 0, net.ErrClosed
		case !s.deadline.IsZero():
			left := time.Until(s.deadline)
			if left <= 0 {
				s.mu.Unlock()
				return 0, os.ErrDeadlineExceeded
			}
			if s.at == len(s.buf) && !s.ended {
				timer := time.NewTimer(left)
				defer timer.Stop()
				wait = timer.C
			}
		}
		if s.at < len(s.buf) {
			n := copy(p, s.buf[s.at:])
			s.at += n
			s.mu.Unlock()
			return n, nil
		}
		ended := s.ended
		s.mu.Unlock()
		if ended {
			return 0, io.EOF
		}
		select {
		case <-s.news:
		case <-wait:
		}
	}
}

// end closes one end: the writer's when writing, else the reader's.
func (s *stream) end(writing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if writing {
		s.ended = true
	} else {
		s.gone, s.buf = true, nil
		s.at = 0
	}
	s.tell()
}

func (s *stream) until(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	s.tell()
}

// end of a connection.
type end struct {
	in, out       *stream
	local, remote addr
	mu            sync.Mutex
	writeBy       time.Time
}

func pipe(address string) (here, there *end) {
	a, b := newStream(), newStream()
	return &end{in: a, out: b, local: "localhost:0", remote: addr(address)}, &end{in: b, out: a, local: addr(address), remote: "localhost:0"}
}

func (e *end) Read(p []byte) (int, error) { return e.in.read(p) }

func (e *end) Write(p []byte) (int, error) {
	e.mu.Lock()
	by := e.writeBy
	e.mu.Unlock()
	if !by.IsZero() && !time.Now().Before(by) {
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(transit)
	return e.out.write(p)
}

func (e *end) Close() error {
	e.in.end(false)
	e.out.end(true)
	return nil
}

func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.remote }

func (e *end) SetDeadline(t time.Time) error {
	e.in.until(t)
	return e.SetWriteDeadline(t)
}

func (e *end) SetReadDeadline(t time.Time) error {
	e.in.until(t)
	return nil
}

func (e *end) SetWriteDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writeBy = t
	return nil
}
