package lookup

import (
	"context"
	"sync"
	"time"
)

// Shared answers many requests with one scan of the topics at a time. Between two scans it pauses as long as the last
// one took, so it uses the brokers at most half of the time.
type Shared struct {
	around func(ctx context.Context, id string) (Answer, bool)
	look   func(ctx context.Context, ids []string) []Answer
	turn   chan struct{} // its holder scans
	mu     sync.Mutex
	wait   []*asker
	pause  time.Time // no scan before; only the holder of turn changes it
}

type asker struct {
	id   string
	done chan Answer
}

// NewShared makes a Shared.
func NewShared(l *Look) *Shared {
	return &Shared{around: l.Around, look: l.All, turn: make(chan struct{}, 1)}
}

// Around is Find for the id of a stored decision. If nothing waits in Kafka, it needs no scan and no turn.
func (s *Shared) Around(ctx context.Context, id string) (Answer, error) {
	if a, ok := s.around(ctx, id); ok {
		return a, ctx.Err()
	}
	return s.Find(ctx, id)
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
			if len(me.done) == 0 {
				s.scan(ctx)
			}
			<-s.turn
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
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
	began := time.Now()
	for _, answer := range s.look(context.WithoutCancel(ctx), ids) {
		for _, a := range by[answer.ID] {
			a.done <- answer
		}
	}
	s.pause = time.Now().Add(time.Since(began))
}
