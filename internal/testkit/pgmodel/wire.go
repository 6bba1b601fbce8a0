package pgmodel

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// addr is the address of an end of a connection, by name.
type addr string

// Network is always tcp.
func (addr) Network() string { return "tcp" }

// String is host and port.
func (a addr) String() string { return string(a) }

// end is one end of a connection in memory. Writing never blocks, because the buffer grows. It waits only on channels
// and conditions, so that a bubble of testing/synctest sees the waits.
type end struct {
	in, out       *flow
	local, remote addr
}

// newWire makes the two ends of a connection from client to server.
func newWire(client, server addr) (*end, *end) {
	up, down := newFlow(), newFlow()
	return &end{in: down, out: up, local: client, remote: server}, &end{in: up, out: down, local: server, remote: client}
}

func (e *end) Read(b []byte) (int, error)  { return e.in.read(b) }
func (e *end) Write(b []byte) (int, error) { return e.out.write(b) }

// Close ends both directions. Written bytes can still be read at the other end, followed by EOF.
func (e *end) Close() error {
	e.in.abandon()
	e.out.finish()
	return nil
}

func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.remote }

func (e *end) SetDeadline(t time.Time) error {
	e.in.limitRead(t)
	e.out.limitWrite(t)
	return nil
}

func (e *end) SetReadDeadline(t time.Time) error {
	e.in.limitRead(t)
	return nil
}

func (e *end) SetWriteDeadline(t time.Time) error {
	e.out.limitWrite(t)
	return nil
}

// flow is one direction of a connection.
type flow struct {
	mu        sync.Mutex
	changed   *sync.Cond
	buf       []byte
	read0     int  // how much of buf was read
	finished  bool // nothing more will be written
	abandoned bool // the reader is gone
	readBy    time.Time
	writeBy   time.Time
	alarm     *time.Timer
}

func newFlow() *flow {
	f := &flow{}
	f.changed = sync.NewCond(&f.mu)
	return f
}

func (f *flow) read(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.abandoned:
			return 0, net.ErrClosed
		case !f.readBy.IsZero() && !time.Now().Before(f.readBy):
			return 0, os.ErrDeadlineExceeded
		case f.read0 < len(f.buf):
			n := copy(b, f.buf[f.read0:])
			if f.read0 += n; f.read0 == len(f.buf) {
				f.buf, f.read0 = f.buf[:0], 0
			}
			return n, nil
		case f.finished:
			return 0, io.EOF
		}
		f.changed.Wait()
	}
}

// write accepts everything. Bytes without a reader are dropped without an error, as in TCP before it notices.
func (f *flow) write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.finished:
		return 0, net.ErrClosed
	case !f.writeBy.IsZero() && !time.Now().Before(f.writeBy):
		return 0, os.ErrDeadlineExceeded
	case !f.abandoned:
		f.buf = append(f.buf, b...)
		f.changed.Broadcast()
	}
	return len(b), nil
}

func (f *flow) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finished = true
	f.changed.Broadcast()
}

func (f *flow) abandon() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abandoned, f.buf, f.read0 = true, nil, 0
	if f.alarm != nil {
		f.alarm.Stop()
	}
	f.changed.Broadcast()
}

func (f *flow) limitRead(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readBy = t
	if f.alarm != nil {
		f.alarm.Stop()
		f.alarm = nil
	}
	if left := time.Until(t); !t.IsZero() && !f.abandoned && left > 0 {
		f.alarm = time.AfterFunc(left, f.wake)
	}
	f.changed.Broadcast()
}

func (f *flow) limitWrite(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writeBy = t
}

func (f *flow) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed.Broadcast()
}
