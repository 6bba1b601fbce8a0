package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// leaveTimeout is how long the group may take to hear that we leave. With the drain it stays below what a program
// grants its stopping.
const leaveTimeout = 3 * time.Second

// onceSettle is how long an empty assignment must stand before Once believes it: the first round of a cooperative
// rebalance may give nothing while others still give up.
const onceSettle = 5 * time.Second

// session is one life of a client in the group. It ends when the program stops, or when the group made another member
// of us without saying so.
type session struct {
	source *Source
	handle Handler
	client *kgo.Client
	admin  *kadm.Client
	base   context.Context // of the client and of the handlers; outlives the program's wish to stop
	kill   context.CancelFunc

	polling context.Context
	stop    context.CancelCauseFunc // ends polling; the cause is what run returns

	flowing sync.Mutex // one decision at a time on what is paused

	sharing atomic.Int64 // how many share the buffer: len(parts), for those who must not lock
	hand    hand
	taken   atomic.Int64 // how often any records were

	// Of the loop of polls alone.
	rewound    time.Time     // when partitions were set back last
	patience   time.Duration // with a crammed room, until the next poll
	collecting time.Time     // before it, no garbage is collected for the room's sake
	took       int64         // taken, as it was when it was looked at last

	mu       sync.Mutex
	parts    map[int32]*Assignment
	member   string
	joined   bool
	stopping bool
	broken   error
	changed  time.Time // of the last assignment
}

// brokenError ends a session, not the source.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return "session ended: " + e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

func newSession(ctx context.Context, s *Source, handle Handler) (*session, error) {
	sess := &session{source: s, handle: handle, parts: make(map[int32]*Assignment)}
	sess.base, sess.kill = context.WithCancel(context.WithoutCancel(ctx))
	sess.polling, sess.stop = context.WithCancelCause(ctx)
	client, err := kgo.NewClient(s.options(sess.base, sess)...)
	if err != nil {
		sess.kill()
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	sess.client, sess.admin = client, kadm.NewClient(client)
	return sess, nil
}

// run polls until the session is to end, and takes it down.
func (s *session) run(ctx context.Context) error {
	defer s.kill()
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(s.polling) })
	watching.Go(func() { s.passMarks(s.polling) })
	s.awaitNeeded(s.polling)
	// The topic comes last: its callbacks need the client, which exists only now.
	s.client.AddConsumeTopics(s.source.sc.Topic)
	for s.polling.Err() == nil {
		s.awaitRoom(s.polling)
		fetches := s.poll()
		s.source.polled()
		s.take(fetches)
		s.setBack()
		s.client.AllowRebalance()
	}
	watching.Wait()
	s.close()

	if failed := (*handlerError)(nil); errors.As(context.Cause(s.polling), &failed) {
		return failed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil && ctx.Err() == nil {
		return &brokenError{s.broken}
	}
	return nil
}

// handlerError is a handler that ended although its partition was ours.
type handlerError struct {
	topic     string
	partition int32
	err       error
}

func (e *handlerError) Error() string {
	return fmt.Sprintf("handle %s/%d: %v", e.topic, e.partition, e.err)
}
func (e *handlerError) Unwrap() error { return e.err }

var errEnded = errors.New("the handler ended although the partition is ours")

// take hands a poll to the queues. It runs while the group cannot change, so no record enters an assignment that it
// was not polled for.
func (s *session) take(fetches kgo.Fetches) {
	fetches.EachPartition(func(fp kgo.FetchTopicPartition) {
		s.mu.Lock()
		a := s.parts[fp.Partition]
		s.mu.Unlock()
		if a == nil || fp.Topic != a.topic {
			s.failed(fp.Topic, fp.Partition, fp.Err)
			return
		}
		first := int64(-1)
		if len(fp.Records) > 0 {
			first = fp.Records[0].Offset // once it is queued its memory can be another's at any time
		}
		if err := a.append(fp.Records); err != nil {
			s.condemn(a, &kgo.ErrDataLoss{Topic: a.topic, Partition: a.partition, ResetTo: first})
			return
		}
		a.heard(fp.FetchPartition)
		switch loss := (*kgo.ErrDataLoss)(nil); {
		case errors.As(fp.Err, &loss):
			s.condemn(a, fp.Err)
		case errors.Is(fp.Err, errNoRoom): // all wait
		case fp.Err != nil:
			a.rest(fp.Err, time.Now())
		case len(fp.Records) > 0:
			a.well()
		}
		s.flow(a)
	})
}

// failed notes an error that is of no assigned partition.
func (s *session) failed(topic string, partition int32, err error) {
	group := (*kgo.ErrGroupSession)(nil)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
	case errors.As(err, &group):
		s.source.faults.set(faultGroup, ofGroup("join the group "+s.source.sc.Group, s.source.sc.Group, "", -1, err))
	case topic != "":
		s.source.faults.set(faultTopic, fault("read", topic, partition, err))
	default:
		s.source.faults.set(faultCluster, fault("read", "", -1, err))
	}
}

// flow makes the client do what the assignment wants: its partition is paused or not.
func (s *session) flow(a *Assignment) {
	s.flowing.Lock()
	defer s.flowing.Unlock()
	s.mu.Lock()
	ours := s.parts[a.partition] == a
	s.mu.Unlock()
	if !ours {
		return // what a past assignment wants must not reach the present one
	}
	which := map[string][]int32{a.topic: {a.partition}}
	if a.paused() {
		s.client.PauseFetchPartitions(which)
	} else {
		s.client.ResumeFetchPartitions(which)
	}
}

// mark is when the queue of one partition is full: at its share of the buffer, so that one that is slow takes nothing
// from the others, and never beyond what is of use to it alone.
func (s *session) mark() (records int, bytes int64) {
	sc := s.source.sc
	share := sc.BufferBytes / max(s.sharing.Load(), 1)
	return sc.BufferBatches * sc.BatchRecords, min(int64(sc.BufferBatches)*sc.BatchBytes, share)
}

// assigned begins an assignment for every partition that is new.
func (s *session) assigned(_ context.Context, client *kgo.Client, added map[string][]int32) {
	member, _ := client.GroupMetadata()
	var begun []*Assignment
	s.mu.Lock()
	switch {
	case s.stopping || s.broken != nil:
		s.mu.Unlock()
		return
	case s.member != member && len(s.parts) > 0:
		// The group forgot us and took us in again as somebody else. The client goes on where it was; another member
		// may have gone on meanwhile too.
		s.mu.Unlock()
		s.breakOff(errFenced)
		return
	}
	s.member, s.joined, s.changed = member, true, time.Now()
	for _, p := range added[s.source.sc.Topic] {
		a := newAssignment(s.base, s, s.source.sc.Topic, p, member)
		s.parts[p] = a
		begun = append(begun, a)
	}
	total := len(s.parts)
	s.sharing.Store(int64(total))
	s.mu.Unlock()

	s.source.faults.clear(faultGroup)
	if total > 0 {
		s.source.faults.clear(faultTopic)
	}
	for _, a := range begun {
		s.flow(a) // a pause outlives the loss of a partition
		go s.carry(a)
	}
	if len(begun) > 0 {
		s.source.logger.Info().Ints32("partitions", added[s.source.sc.Topic]).Int("assigned", total).Msg("partitions assigned")
	}
}

// offsets learns from where the group says to go on.
func (s *session) offsets(_ context.Context, at map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, o := range at[s.source.sc.Topic] {
		if a := s.parts[p]; a != nil && o.EpochOffset().Offset >= 0 {
			a.startAt(o.EpochOffset().Offset)
		}
	}
	return at, nil
}

// carry runs the handler of one assignment.
func (s *session) carry(a *Assignment) {
	err := s.handle(a.ctx, a)
	if err == nil && s.source.sc.Once {
		a.commitMarks(a.ctx) // the session may end before the next look
	}
	a.mu.Lock()
	// Its context is asked itself: who waits for that one wakes before the one below it, and dead, say so.
	given := a.dead || a.ctx.Err() != nil || a.leaving.Err() != nil
	a.finished = !given
	if a.finished {
		a.empty()
	}
	a.mu.Unlock()
	close(a.done)
	switch {
	case given:
	case err != nil:
		s.stop(&handlerError{a.topic, a.partition, err})
	case !s.source.sc.Once:
		s.stop(&handlerError{a.topic, a.partition, errEnded})
	default:
		s.flow(a)
		s.finishOnce(time.Now())
	}
}

var errOnce = errors.New("everything is done")

// finishOnce ends the session when every partition is done. An empty assignment counts when it has stood for a while.
func (s *session) finishOnce(now time.Time) {
	if !s.source.sc.Once {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.joined || s.broken != nil || s.stopping {
		return
	}
	if len(s.parts) == 0 && now.Sub(s.changed) < onceSettle {
		return
	}
	for _, a := range s.parts {
		a.mu.Lock()
		finished := a.finished
		a.mu.Unlock()
		if !finished {
			return
		}
	}
	s.stop(errOnce)
}

// revoked gives partitions up in good order: what is in hand may be finished and committed.
func (s *session) revoked(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	s.mu.Lock()
	s.changed = time.Now()
	s.mu.Unlock()
	s.giveUp(s.pick(lost), s.source.sc.Drain)
}

// lost ends assignments whose partitions belong to somebody else already.
func (s *session) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	s.mu.Lock()
	s.joined = false
	s.mu.Unlock()
	s.giveUp(s.pick(lost), 0)
}

func (s *session) pick(which map[string][]int32) []*Assignment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var picked []*Assignment
	for _, p := range which[s.source.sc.Topic] {
		if a := s.parts[p]; a != nil {
			picked = append(picked, a)
		}
	}
	return picked
}

// giveUp ends assignments and waits for their handlers. With a drain they may go on for that long; without one
// nothing is committed any more from the first moment on.
func (s *session) giveUp(gone []*Assignment, drain time.Duration) {
	if len(gone) == 0 {
		return
	}
	for _, a := range gone {
		if drain <= 0 {
			a.kill()
		}
		a.leave()
	}
	timer := time.NewTimer(drain)
	defer timer.Stop()
	for _, a := range gone {
		select {
		case <-a.done:
			continue
		case <-timer.C:
			timer.Reset(0) // the time is over for all that follow too
		}
		a.cancel()
		<-a.done
	}
	for _, a := range gone {
		a.kill()
		s.source.faults.clearCommit(a.topic, a.partition)
		s.mu.Lock()
		if s.parts[a.partition] == a {
			delete(s.parts, a.partition)
			s.sharing.Store(int64(len(s.parts)))
		}
		s.mu.Unlock()
	}
	numbers := make([]int32, len(gone))
	for i, a := range gone {
		numbers[i] = a.partition
	}
	s.source.logger.Info().Ints32("partitions", numbers).Msg("partitions given up")
}

// disown ends an assignment on the group's word, from inside its own commit.
func (s *session) disown(a *Assignment, err error) {
	a.mu.Lock()
	a.dead = true
	a.mu.Unlock()
	a.cancel()
	s.breakOff(err)
}

// condemn stops an assignment whose log is not what was read before. The partition stays ours and stands still: what
// the offsets mean from here on is for an operator to judge.
func (s *session) condemn(a *Assignment, err error) {
	f := a.explain(err)
	a.mu.Lock()
	a.dead = true
	a.empty()
	a.faulty = &partFault{err: f, resting: true, final: true}
	a.mu.Unlock()
	a.cancel()
	s.flow(a)
	s.source.logger.Error().Err(f).Str("hint", f.Hint).Msg("partition stopped")
}

// breakOff ends the session: the client's idea of the group cannot be trusted.
func (s *session) breakOff(err error) {
	s.mu.Lock()
	if s.broken == nil && !s.stopping {
		s.broken = err
	}
	s.mu.Unlock()
	s.stop(err)
}

// close gives everything up and leaves the group.
func (s *session) close() {
	s.mu.Lock()
	s.stopping = true
	drain := s.source.sc.Drain
	if s.broken != nil {
		drain = 0
	}
	s.mu.Unlock()
	s.giveUp(s.assignments(), drain)

	// What still waits for a broker after that time ends with the client's context. Leaving is part of closing: asked
	// for apart from it, the client leaves a goroutine behind.
	timer := time.AfterFunc(leaveTimeout, s.kill)
	defer timer.Stop()
	s.client.CloseAllowingRebalance()
}

func (s *session) assignments() []*Assignment {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Assignment, 0, len(s.parts))
	for _, a := range s.parts {
		all = append(all, a)
	}
	slices.SortFunc(all, func(x, y *Assignment) int { return int(x.partition - y.partition) })
	return all
}
