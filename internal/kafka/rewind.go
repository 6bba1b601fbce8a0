package kafka

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// rewindPause is the least time between two moments at which partitions are set back: each ends every fetch that is under way.
const rewindPause = 100 * time.Millisecond

// A crammed room is looked at every crammedLook. Meanwhile the client is polled after crammedPoll, then twice as much, and so on
// to crammedRare: it fetches on only from what was polled, and what it opened for one broker comes forward by a poll alone.
const (
	crammedLook = 5 * time.Millisecond
	crammedPoll = 10 * time.Millisecond
	crammedRare = time.Second
)

// awaitRoom waits while the room is crammed, but not beyond the pause to the next poll. Partitions that hold make room at once,
// since nobody takes from their queues.
func (s *session) awaitRoom(ctx context.Context) {
	r := s.source.room
	if r.used() > r.most {
		r.refuse(0)
	}
	if r.ease() {
		s.patience, s.took = crammedPoll, 0
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
		case <-time.After(crammedLook):
		}
		s.collect()
		if r.ease() {
			return
		}
	}
	if s.patience = min(2*s.patience, crammedRare); s.patience == crammedRare {
		s.makeRoom()
	}
}

// collect finds the memory of what was dropped and of what the client let go of, if there may be much of it; nobody else looks for it
// while nothing is fetched. It takes a tenth of the time at most.
func (s *session) collect() {
	r, from := s.source.room, time.Now()
	if r.used()-r.queued.Load() <= r.most/4 || from.Before(s.collecting) {
		return
	}
	runtime.GC()
	s.collecting = time.Now().Add(10 * time.Since(from))
}

// makeRoom drops the queues that wait for their handlers, when nobody took anything since it was called last and a partition has
// nothing to go on with.
func (s *session) makeRoom() {
	all, before := s.assignments(), s.took
	if s.took = s.taken.Load(); s.took > before || !slices.ContainsFunc(all, (*Assignment).hungry) {
		return
	}
	for _, a := range all {
		if a.waits() >= crammedRare {
			a.drop()
		}
	}
}

// poll waits for what the client fetched; not for long while partitions are to be read again.
func (s *session) poll() kgo.Fetches {
	ctx := s.polling
	if slices.ContainsFunc(s.assignments(), (*Assignment).dropped) || s.source.room.crammed.Load() {
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(rewindPause, cancel).Stop()
		ctx = waiting
	}
	return s.client.PollRecords(ctx, -1)
}

// drop empties the queue of a partition: it is read again from there, once its handler waits for records and it holds no more.
// The records are known to nobody yet, so their memory is free. A batch that Ready promised stays.
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

// hungry says that the handler waits for a first record.
func (a *Assignment) hungry() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked && len(a.queue) == 0 && a.holds == 0 && !a.dead && !a.finished
}

// waits is for how long nothing was taken from the queue.
func (a *Assignment) waits() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.since)
}

// setBack makes the client read partitions again from where their queues were dropped. It is called between two polls, while the
// group cannot change: what was polled before is queued or dropped by then, and the client forgets what it fetched for them.
func (s *session) setBack() {
	if time.Since(s.rewound) < rewindPause {
		return
	}
	offsets := map[int32]kgo.EpochOffset{}
	var back []*Assignment
	for _, a := range s.assignments() {
		if a.dropped() && a.hungry() {
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
