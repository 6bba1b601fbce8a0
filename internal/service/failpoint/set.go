package failpoint

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// Set is what is armed in a process, and how often each point was reached. It is safe for concurrent use.
type Set struct {
	wires    []wire
	topics   Topics
	replayer bool

	signal func(syscall.Signal) // to this process; does not return after SIGKILL
	say    func(line string)

	mu      sync.Mutex
	reached map[Point]int
	ids     map[[16]byte]string // of topics, as the brokers number them
}

// Topics are those whose records are told apart on the wire.
type Topics struct{ DLQ, Parking, ParkingDLQ string }

// New arms the points of a specification; an empty one arms none. replayer says in which of the two programs this is.
// An error is a [*SpecError].
func New(spec string, topics Topics, replayer bool) (*Set, error) {
	wires, err := parse(spec)
	if err != nil {
		return nil, err
	}
	return &Set{
		wires: wires, topics: topics, replayer: replayer, signal: signalSelf, say: sayOnStderr,
		reached: map[Point]int{}, ids: map[[16]byte]string{},
	}, nil
}

// Error is what an operation gets that a point made fail.
type Error struct {
	Point Point
	errno syscall.Errno
}

// Error names the point.
func (e *Error) Error() string { return "failed at failpoint " + string(e.Point) }

// Unwrap is the error of the operating system that is played: a broken connection or a broken disk.
func (e *Error) Unwrap() error { return e.errno }

// armed says that something may happen at the point sooner or later.
func (s *Set) armed(p Point) bool {
	for _, w := range s.wires {
		if w.point == p {
			return true
		}
	}
	return false
}

// reach counts that the point was reached and does what it is armed with. Its error is an [*Error].
func (s *Set) reach(p Point, errno syscall.Errno) error {
	if !s.armed(p) {
		return nil
	}
	s.mu.Lock()
	s.reached[p]++
	n := s.reached[p]
	s.mu.Unlock()
	for _, w := range s.wires {
		if w.point != p || n < w.first || n > w.first && !w.on {
			continue
		}
		// One write, before the act: so the last line has the reason of a sudden end.
		s.say(fmt.Sprintf("{\"failpoint\":%q,\"n\":%d,\"action\":%q}\n", string(p), n, w.named))
		switch w.does {
		case kill:
			s.signal(syscall.SIGKILL)
		case stop:
			s.signal(syscall.SIGSTOP)
		case sleep:
			time.Sleep(w.pause)
		case fail:
			return &Error{p, errno}
		}
	}
	return nil
}

// broken is the error of a connection.
const broken = syscall.ECONNRESET

// pass is reach for a point at which nothing can fail.
func (s *Set) pass(p Point) { _ = s.reach(p, broken) }

func signalSelf(sig syscall.Signal) {
	_ = syscall.Kill(os.Getpid(), sig)
	if sig == syscall.SIGKILL {
		select {} // the signal takes a moment, and nothing may be done in it
	}
	time.Sleep(stopTakes)
}

// stopTakes is longer than it takes until a SIGSTOP has stopped every thread. Nothing after the point may begin in
// between.
const stopTakes = 200 * time.Millisecond

func sayOnStderr(line string) { _, _ = os.Stderr.WriteString(line) }
