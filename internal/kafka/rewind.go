package kafka

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// rewindPause is the least time between two rewinds of partitions. Each rewind ends all running fetches.
const rewindPause = 100 * time.Millisecond

// A full room is checked every fullLook. Meanwhile the client is polled after fullPoll, then after twice as
// long, up to fullRare. The client fetches more only after a poll, and hands out the records that it opened only
// in a poll.
const (
	fullLook = 5 * time.Millisecond
	fullPoll = 10 * time.Millisecond
	fullRare = time.Second
)

// sharedPoll is the longest poll of a source that shares memory.
const sharedPoll = 250 * time.Millisecond

// awaitRoom waits while the room is full, but at most until the next poll. Partitions that hold make room at once,
// because nobody takes from their queues.
func (s *session) awaitRoom(ctx context.Context) {
	r := s.source.room
	if r.used() > r.most.Load() {
		r.refuse(0)
	}
	if r.ease() {
		s.patience, s.took = fullPoll, 0
		return
	}
	for from := time.Now(); time.Since(from) < s.patience; {
		for _, a := range s.assignments() {
			if a.holding() && !r.low() {
				a.drop()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(fullLook):
		}
		s.collect()
		if r.ease() {
			return
		}
	}
	if s.patience = min(2*s.patience, fullRare); s.patience == fullRare {
		s.makeRoom()
	}
}

// collect runs the garbage collector if much memory of dropped records may be free. While nothing is fetched, nothing
// else would run it. It takes a tenth of the time at most.
func (s *session) collect() {
	r, from := s.source.room, time.Now()
	most := r.most.Load() / 4
	if r.memory.pressed(r) {
		most = 1 << 20
	}
	if r.used()-r.queued.Load() <= most || from.Before(s.collecting) {
		return
	}
	runtime.GC()
	s.collecting = time.Now().Add(10 * time.Since(from))
}

// makeRoom drops the queues that wait for their handlers. It does so if no records were taken since the last call and
// a handler waits for records. It also does so if another source waits for the memory.
func (s *session) makeRoom() {
	all, before := s.assignments(), s.took
	s.took = s.taken.Load()
	if !s.source.room.memory.pressed(s.source.room) && (s.took > before || !slices.ContainsFunc(all, (*Assignment).awaitsFirst)) {
		return
	}
	for _, a := range all {
		if a.waits() >= fullRare {
			a.drop()
		}
	}
}

// poll waits for fetched records. The wait is short while partitions are to be read again. It has an end if another
// source may want the memory that this one borrowed.
func (s *session) poll() kgo.Fetches {
	ctx, wait := s.polling, time.Duration(0)
	switch {
	case slices.ContainsFunc(s.assignments(), (*Assignment).dropped) || s.source.room.full.Load():
		wait = rewindPause
	case s.source.sc.Memory != nil:
		wait = sharedPoll
	}
	if wait > 0 {
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(wait, cancel).Stop()
		ctx = waiting
	}
	return s.client.PollRecords(ctx, -1)
}

// drop empties the queue of a partition. The records are read again once the handler waits for records and does not
// hold. Nobody has seen the records, so their memory is free. A batch that Ready promised stays.
func (a *Assignment) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 || a.dead || a.finished || a.promised {
		return
	}
	first := a.queue[0]
	a.rewind = &kgo.EpochOffset{Epoch: first.LeaderEpoch, Offset: first.Offset}
	a.position, a.full = first.Offset, false
	a.account.Return(first.Offset)
	a.count(a.queue, -1)
	recycle(a.queue)
	a.queue = nil
	a.quit()
}

func recycle(records []*kgo.Record) {
	for _, r := range records {
		r.Recycle()
	}
}

func (a *Assignment) dropped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rewind != nil
}

func (a *Assignment) holding() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.holds > 0
}

// awaitsFirst reports whether the handler waits for a first record.
func (a *Assignment) awaitsFirst() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked && len(a.queue) == 0 && a.holds == 0 && !a.dead && !a.finished
}

// waits returns how long nothing was taken from the queue.
func (a *Assignment) waits() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.since)
}

// rewindDropped rewinds partitions in the client to where their queues were dropped. It is called between two polls, while
// the group cannot change. Records polled before are queued or dropped by then. The client forgets those that it
// fetched ahead.
func (s *session) rewindDropped() {
	if time.Since(s.rewound) < rewindPause {
		return
	}
	offsets := map[int32]kgo.EpochOffset{}
	var back []*Assignment
	for _, a := range s.assignments() {
		if a.dropped() && a.awaitsFirst() {
			offsets[a.partition] = *a.rewind
			back = append(back, a)
		}
	}
	if len(back) == 0 {
		return
	}
	s.rewound = time.Now()
	s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{s.source.sc.Topic: offsets})
	for _, a := range back {
		a.mu.Lock()
		a.rewind = nil
		a.mu.Unlock()
		s.flow(a)
	}
}
