package lookup

import (
	"context"
	"sync"
	"time"
)

// Shared lets many ask at once without a scan of the topics for each: one scan runs at a time and answers all who wait for it. Between two
// scans it pauses for as long as the last one took, so askers take half of the time of the brokers at most that one of them alone takes.
type Shared struct {
	look  func(ctx context.Context, ids []string) []Answer
	turn  chan struct{} // who has it, scans
	mu    sync.Mutex
	wait  []*asker
	pause time.Time // until when nobody scans; the one with the turn changes it
}

type asker struct {
	id   string
	done chan Answer
}

// NewShared makes one of a look.
func NewShared(l *Look) *Shared { return &Shared{look: l.All, turn: make(chan struct{}, 1)} }

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

// scan looks once, for all who wait. It outlives the request that began it: the others wait for it, too. It is bounded by its limits.
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
		return // another one's scan had the answer
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
