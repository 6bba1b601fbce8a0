package kafka

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// setBackPause is the least time between two moments at which partitions are set back: each ends every fetch that is under way.
const setBackPause = 50 * time.Millisecond

// listen is the context of the next poll, which [session.nudge] ends.
func (s *session) listen() context.Context {
	ctx, wake := context.WithCancel(s.polling)
	s.nudging.Lock()
	defer s.nudging.Unlock()
	if s.wake != nil {
		s.wake()
	}
	if s.wake = wake; s.rewinds {
		s.nudgeSoon()
	}
	return ctx
}

// nudge makes the loop of polls set partitions back.
func (s *session) nudge() {
	s.nudging.Lock()
	defer s.nudging.Unlock()
	s.rewinds = true
	s.nudgeSoon()
}

func (s *session) nudgeSoon() {
	if s.wake == nil {
		return
	}
	time.AfterFunc(setBackPause-time.Since(s.rewound), s.wake)
}

// setBack makes the client read partitions again from where their queues were dropped, once they hold no more. It is called
// between two polls, while the group cannot change: what was polled before is queued or dropped by then, and the client forgets
// what it fetched for them.
func (s *session) setBack() {
	s.nudging.Lock()
	due := s.rewinds && time.Since(s.rewound) >= setBackPause
	if due {
		s.rewinds, s.rewound = false, time.Now()
	}
	s.nudging.Unlock()
	if !due {
		return
	}
	offsets := map[int32]kgo.EpochOffset{}
	var back []*Assignment
	for _, a := range s.assignments() {
		if a.setBackIsDue() {
			a.mu.Lock()
			offsets[a.partition] = a.rewind.at
			a.mu.Unlock()
			back = append(back, a)
		}
	}
	if len(back) == 0 {
		return
	}
	s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{s.source.sc.Topic: offsets})
	for _, a := range back {
		a.mu.Lock()
		a.rewind = nil
		a.mu.Unlock()
		s.flow(a)
	}
}

// setBackIsDue says that the partition was dropped from its queue and holds no more.
func (a *Assignment) setBackIsDue() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rewind != nil && a.holds == 0 && !a.dead && !a.finished
}

// starve notes whether the partition waits for room, and says whether it did.
func (a *Assignment) starve(now bool) (before bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, a.starved = a.starved, now
	if now != before {
		a.session.starving.Add(map[bool]int64{true: 1, false: -1}[now])
		close(a.arrived) // who waits for more need not
		a.arrived = make(chan struct{})
	}
	return before
}

// feed lets those fetch again that found no room, once a quarter of the buffer is free.
func (s *session) feed() {
	if s.starving.Load() == 0 || s.source.room.queued.Load() > s.source.room.most*3/4 {
		return
	}
	for _, a := range s.assignments() {
		if a.starve(false) {
			s.flow(a)
		}
	}
}

// most is how many bytes a batch may have. While any partition holds, a batch may be held for long as well, and has no more
// than its partition's share of the buffer.
func (s *session) most() int64 {
	sc := s.source.sc
	if s.holding.Load() == 0 {
		return sc.BatchBytes
	}
	return min(sc.BatchBytes, sc.BufferBytes/max(s.sharing.Load(), 1))
}

// crowded says that a record has to wait in the queue, as it is larger than a share of the buffer, some partition holds, and
// batches in hand have the buffer's size with it already.
func (s *session) crowded(size int64) bool {
	held := s.inHand.Load()
	return held > 0 && s.holding.Load() > 0 && size > s.most() && held+size > s.source.sc.BufferBytes
}

// detach copies records that may be held for long out of the sets that they came in: one record keeps the memory of its
// whole set, and of a set most may have been dropped.
func (s *session) detach(taken []*kgo.Record) []*kgo.Record {
	if s.holding.Load() == 0 {
		return taken
	}
	for i, r := range taken {
		taken[i] = detached(r)
	}
	return taken
}

func detached(r *kgo.Record) *kgo.Record {
	own := *r
	own.Context = ownMemory{r.Context}
	own.Key, own.Value, own.Headers = slices.Clone(r.Key), slices.Clone(r.Value), slices.Clone(r.Headers)
	for i := range own.Headers {
		own.Headers[i].Key, own.Headers[i].Value = string([]byte(r.Headers[i].Key)), slices.Clone(r.Headers[i].Value)
	}
	r.Recycle()
	return &own
}

// ownMemory is the context of a record that is not the client's any more: the client would look there for the memory that
// it takes back.
type ownMemory struct{ context.Context }

// Value is of [context.Context]. The client's own key is a *string.
func (c ownMemory) Value(key any) any {
	if _, ours := key.(*string); ours || c.Context == nil {
		return nil
	}
	return c.Context.Value(key)
}
