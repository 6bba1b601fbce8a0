package lookup

import (
	"context"
	"sync"
	"time"
)

// Shared answers many requests with one scan of the topics at a time. After a scan that read many records or took long it
// pauses as long as that took. So it does not keep brokers busy that have much else to do.
type Shared struct {
	around func(ctx context.Context, id string) (Answer, bool)
	look   func(ctx context.Context, ids []string) (answers []Answer, read int64)
	turn   chan struct{} // its holder scans
	mu     sync.Mutex
	wait   []*asker
	near   map[string]*nearby // by id, the look-ups around it that wait or run
	pause  time.Time          // no scan before; only the holder of turn changes it
}

type asker struct {
	id   string
	done chan Answer
}

// NewShared makes a Shared. It remembers what its scans met, so that each reads only new records.
func NewShared(l *Look) *Shared {
	for _, one := range l.Shards {
		one.Look.seen = newSeen()
	}
	l.seen = newSeen()
	return &Shared{around: l.Around, look: l.all, turn: make(chan struct{}, 1)}
}

// nearby has the requests for one id. One of them looks at a time. It looks for all that came before it began, as an
// answer must not be older than its question.
type nearby struct {
	turn chan struct{} // its holder looks
	wait []*asker
	of   int // requests that wait or look
}

// Around is Find for the id of a stored decision. If nothing waits in Kafka, it needs no scan and no turn. Requests for
// the same id at the same time share a look.
func (s *Shared) Around(ctx context.Context, id string) (Answer, error) {
	me, at := s.approach(id)
	defer s.depart(id, at)
	select {
	case a := <-me.done:
		return s.orFind(ctx, id, a)
	case at.turn <- struct{}{}:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	defer func() { <-at.turn }()
	if len(me.done) == 0 {
		s.lookAround(ctx, id, at)
	}
	return s.orFind(ctx, id, <-me.done)
}

// orFind returns an answer, or that of Find if there is none.
func (s *Shared) orFind(ctx context.Context, id string, a Answer) (Answer, error) {
	if a.ID == "" {
		return s.Find(ctx, id)
	}
	return a, ctx.Err()
}

// lookAround looks once for all that wait. It outlives the request that began it. Its limits end it.
func (s *Shared) lookAround(ctx context.Context, id string, at *nearby) {
	s.mu.Lock()
	all := at.wait
	at.wait = nil
	s.mu.Unlock()
	var a Answer
	defer func() { // after a panic, too: they would wait for ever, and each later question behind them
		for _, one := range all {
			one.done <- a
		}
	}()
	if found, ok := s.around(context.WithoutCancel(ctx), id); ok {
		a = found
	}
}

func (s *Shared) approach(id string) (*asker, *nearby) {
	me := &asker{id, make(chan Answer, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.near == nil {
		s.near = map[string]*nearby{}
	}
	at := s.near[id]
	if at == nil {
		at = &nearby{turn: make(chan struct{}, 1)}
		s.near[id] = at
	}
	at.wait = append(at.wait, me)
	at.of++
	return me, at
}

func (s *Shared) depart(id string, at *nearby) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.of--; at.of == 0 {
		delete(s.near, id)
	}
}

// Find looks for an id. The error is that of its context.
func (s *Shared) Find(ctx context.Context, id string) (Answer, error) {
	me := &asker{id, make(chan Answer, 1)}
	s.mu.Lock()
	s.wait = append(s.wait, me)
	s.mu.Unlock()
	for {
		select {
		case a := <-me.done:
			return a, nil
		case s.turn <- struct{}{}:
			s.turned(ctx, me)
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
	}
}

// turned scans, unless another scan had the answer, and ends the turn: after a panic, too, or each later question would wait for ever.
func (s *Shared) turned(ctx context.Context, me *asker) {
	defer func() { <-s.turn }()
	if len(me.done) == 0 {
		s.scan(ctx)
	}
}

// scan searches once for all waiting requests. It outlives the request that began it. Its limits end it.
func (s *Shared) scan(ctx context.Context) {
	if left := time.Until(s.pause); left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
	s.mu.Lock()
	all := s.wait
	s.wait = nil
	s.mu.Unlock()
	if len(all) == 0 {
		return // another scan had the answer
	}
	var ids []string
	by := map[string][]*asker{}
	for _, a := range all {
		if by[a.id] == nil {
			ids = append(ids, a.id)
		}
		by[a.id] = append(by[a.id], a)
	}
	began, looked := time.Now(), false
	defer func() {
		if looked {
			return
		}
		for _, a := range all { // it ends in a panic, and nobody else answers them
			a.done <- Answer{ID: a.id, At: began, NotLooked: []Gap{{Name: "every place", Why: "the look-up failed: see the log of the desk"}}, Whole: true}
		}
	}()
	answers, read := s.look(context.WithoutCancel(ctx), ids)
	looked = true
	for _, answer := range answers {
		for _, a := range by[answer.ID] {
			a.done <- answer
		}
	}
	if took := time.Since(began); read > fewRecords || took > shortScan {
		s.pause = time.Now().Add(took)
	}
}

// A scan of so few records, or one that took no longer, costs a broker little.
const (
	fewRecords = 1000
	shortScan  = 250 * time.Millisecond
)
