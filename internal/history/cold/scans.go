package cold

import (
	"context"
	"slices"
	"sync"
	"time"

	"docket/internal/history/claims"
)

// Limits of the readings of one archive that has no index.
const (
	// mostReadings is how many there are at once.
	mostReadings = 2
	// mostTogether limits the questions of one reading, by their weight: each keeps an answer of its own in memory. A question
	// with more has a reading for itself.
	mostTogether = 256
	// searchWeight is that of a search, which keeps up to mostKept bytes. A look-up has that of its ids.
	searchWeight = 128
)

// scans lets questions of any kind share the reading of an archive that has no index. Questions that come while mostReadings
// are in progress wait for one of them, and then share the next: each of them needs all rows.
type scans struct {
	mu       sync.Mutex
	archives map[string]*readings
}

// readings are those of one archive.
type readings struct {
	running int
	next    []*scan // that have not begun
}

// scan is one reading of an archive.
type scan struct {
	ctx     context.Context
	cancel  context.CancelFunc
	takers  []*taker
	weight  int           // of all takers
	waiting int           // takers that have not left
	done    chan struct{} // closed at its end, or if it will not begin
	err     error         // of the reading, once done is closed
}

// taker is a question to the rows of an archive.
type taker struct {
	ctx     context.Context
	weight  int
	patient bool                   // it reads for itself in no case
	maybe   func(line []byte) bool // a quick test whether the question needs a row
	take    func(r row, file string) error
	err     error // of take; no row follows it
}

// ended reports whether the taker needs no further row.
func (t *taker) ended() bool { return t.err != nil || t.ctx.Err() != nil }

// result is the error of a question whose reading has ended.
func (t *taker) result(err error) error {
	if err := t.ctx.Err(); err != nil { // it was not given all rows
		return err
	}
	if t.err != nil {
		return t.err
	}
	return err
}

// join has t take the rows of the next reading of an archive. read passes rows to takers, one at a time. The error is that
// of t, of read, or of the context of t. If no reading begins within half of the time of t, it reads for itself, unless it is
// patient. A reading ends early if all its questions have left. A question that has left may still be given a row.
func (s *scans) join(archive string, t *taker, read func(ctx context.Context, takers []*taker) error) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	one := s.enter(archive, t, read)
	var half <-chan time.Time
	if !t.patient {
		half = claims.HalfOf(t.ctx)
	}
	for {
		select {
		case <-one.done:
			return t.result(one.err)
		case <-half:
			if s.takeBack(archive, one, t) {
				return t.result(read(t.ctx, []*taker{t}))
			}
			half = nil
		case <-t.ctx.Done():
			if s.leave(archive, one) {
				<-one.done // no reading outlives its questions
			}
			return t.ctx.Err()
		}
	}
}

// enter adds a question to a scan that begins now, or to one that has not begun.
func (s *scans) enter(archive string, t *taker, read func(ctx context.Context, takers []*taker) error) *scan {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.archives == nil {
		s.archives = map[string]*readings{}
	}
	of := s.archives[archive]
	if of == nil {
		of = &readings{}
		s.archives[archive] = of
	}
	if n := len(of.next); n > 0 && of.next[n-1].weight+t.weight <= mostTogether {
		of.next[n-1].add(t)
		return of.next[n-1]
	}
	one := &scan{done: make(chan struct{})}
	one.ctx, one.cancel = context.WithCancel(context.WithoutCancel(t.ctx))
	one.add(t)
	if of.running == mostReadings {
		of.next = append(of.next, one)
		return one
	}
	of.running++
	go s.run(archive, one, read)
	return one
}

func (s *scan) add(t *taker) {
	s.takers = append(s.takers, t)
	s.weight += t.weight
	s.waiting++
}

// run reads for the takers of a scan, and begins the next one. A running scan gets no further takers.
func (s *scans) run(archive string, one *scan, read func(ctx context.Context, takers []*taker) error) {
	one.err = read(one.ctx, one.takers)
	one.cancel()
	close(one.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.archives[archive]
	if len(of.next) == 0 {
		if of.running--; of.running == 0 {
			delete(s.archives, archive)
		}
		return
	}
	var next *scan
	next, of.next = of.next[0], of.next[1:]
	go s.run(archive, next, read)
}

// leave gives up a scan. It reports whether nobody waits for it any more. Then it ends, or does not begin.
func (s *scans) leave(archive string, one *scan) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.waiting--; one.waiting > 0 {
		return false
	}
	one.cancel()
	s.drop(archive, one)
	return true
}

// takeBack takes a question out of a scan, and reports whether that had not begun.
func (s *scans) takeBack(archive string, one *scan, t *taker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.archives[archive]; of == nil || !slices.Contains(of.next, one) {
		return false
	}
	one.takers = slices.DeleteFunc(one.takers, func(o *taker) bool { return o == t })
	one.weight -= t.weight
	if one.waiting--; one.waiting == 0 {
		one.cancel()
		s.drop(archive, one)
	}
	return true
}

// drop removes a scan that has not begun. The caller has the lock.
func (s *scans) drop(archive string, one *scan) {
	of := s.archives[archive]
	if of == nil {
		return
	}
	if at := slices.Index(of.next, one); at >= 0 {
		of.next = slices.Delete(of.next, at, at+1)
		close(one.done)
	}
}
