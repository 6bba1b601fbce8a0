package cold

import (
	"context"
	"slices"
	"sync"
)

// mostTogether limits the questions of one scan, by their weight: each keeps an answer of its own in memory.
const (
	mostTogether = 256
	findWeight   = 1
	searchWeight = 32 // up to mostKept
)

// scans lets questions of any kind share the reading of an archive that has no index. An archive is read once at a time.
// Questions that come meanwhile share the next reading, as each of them needs all rows.
type scans struct {
	mu     sync.Mutex
	queues map[string][]*scan // by archive; the first is being read
}

// scan is one reading of an archive.
type scan struct {
	ctx     context.Context
	cancel  context.CancelFunc
	read    func(ctx context.Context, takers []*taker) error
	takers  []*taker
	weight  int // of all takers
	waiting int // takers that have not left
	done    chan struct{}
	err     error // of the reading, once done is closed
}

// taker is a question to the rows of an archive.
type taker struct {
	ctx    context.Context
	weight int
	maybe  func(line []byte) bool // a quick test whether the question needs a row
	take   func(r row, file string) error
	err    error // of take; no row follows it
}

// ended reports whether the taker needs no further row.
func (t *taker) ended() bool { return t.err != nil || t.ctx.Err() != nil }

// join has t take the rows of the next reading of an archive. read passes rows to takers, one at a time. The error is that
// of t, of read, or of the context of t. A reading ends early if all its questions have left. A question that has left may
// still be given a row.
func (s *scans) join(archive string, t *taker, read func(ctx context.Context, takers []*taker) error) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	one := s.enter(archive, t, read)
	select {
	case <-one.done:
	case <-t.ctx.Done():
		if s.leave(archive, one) {
			<-one.done // no reading outlives its questions
		}
		return t.ctx.Err()
	}
	if err := t.ctx.Err(); err != nil { // it was not given all rows
		return err
	}
	if t.err != nil {
		return t.err
	}
	return one.err
}

// enter adds a question to a scan that has not begun.
func (s *scans) enter(archive string, t *taker, read func(ctx context.Context, takers []*taker) error) *scan {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queues[archive]
	if n := len(queue); n < 2 || queue[n-1].weight+t.weight > mostTogether {
		one := &scan{read: read, done: make(chan struct{})}
		one.ctx, one.cancel = context.WithCancel(context.WithoutCancel(t.ctx))
		if s.queues == nil {
			s.queues = map[string][]*scan{}
		}
		queue = append(queue, one)
		s.queues[archive] = queue
		if n == 0 {
			go s.run(archive, one, []*taker{t})
		}
	}
	one := queue[len(queue)-1]
	one.takers = append(one.takers, t)
	one.weight += t.weight
	one.waiting++
	return one
}

// run reads for the takers of a scan, and begins the next one.
func (s *scans) run(archive string, one *scan, takers []*taker) {
	one.err = one.read(one.ctx, takers)
	one.cancel()
	close(one.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queues[archive][1:]
	if len(queue) == 0 {
		delete(s.queues, archive)
		return
	}
	s.queues[archive] = queue
	go s.run(archive, queue[0], queue[0].takers)
}

// leave gives up a scan. It reports whether nobody waits for it any more. Then it ends, or does not begin.
func (s *scans) leave(archive string, one *scan) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.waiting--; one.waiting > 0 {
		return false
	}
	one.cancel()
	if at := slices.Index(s.queues[archive], one); at > 0 {
		s.queues[archive] = slices.Delete(s.queues[archive], at, at+1)
		close(one.done)
	}
	return true
}
