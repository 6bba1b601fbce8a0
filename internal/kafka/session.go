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

// leaveTimeout limits the request to leave the group. Together with the drain it stays below the time that a program
// has to stop.
const leaveTimeout = 3 * time.Second

// onceSettle is how long an assignment must stay empty before Once believes it. The first round of a cooperative
// rebalance may assign nothing while others still give partitions up.
const onceSettle = 5 * time.Second

// session is one membership in the group. It ends when the program stops, or when the group silently made this client
// another member.
type session struct {
	source *Source
	handle Handler
	client *kgo.Client
	admin  *kadm.Client
	base   context.Context // of the client and of the handlers; it outlives the context of Run
	kill   context.CancelFunc

	polling context.Context
	stop    context.CancelCauseFunc // ends polling; run returns the cause

	flowing sync.Mutex // only one goroutine pauses or resumes partitions

	sharing atomic.Int64 // len(parts), readable without a lock: the number of partitions that share the buffer
	hand    hand
	taken   atomic.Int64 // counts the times that records were taken

	// Used by the poll loop only.
	rewound    time.Time     // the last rewind of partitions
	patience   time.Duration // until the next poll of a full room
	collecting time.Time     // no garbage is collected before
	took       int64         // value of taken at the last check

	mu       sync.Mutex
	parts    map[int32]*Assignment
	member   string
	joined   bool
	stopping bool
	broken   error
	changed  time.Time // time of the last assignment
}

// brokenError ends a session and not the source.
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
		s.rewindDropped()
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

// handlerError is the end of a handler whose partition was still assigned.
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

// take hands a poll to the queues. It runs while the group cannot change, so each record enters the assignment that
// it was polled for.
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
			first = fp.Records[0].Offset // after it is queued its memory may be reused
		}
		if err := a.append(fp.Records); err != nil {
			s.stopPartition(a, &kgo.ErrDataLoss{Topic: a.topic, Partition: a.partition, ResetTo: first})
			return
		}
		a.heard(fp.FetchPartition)
		switch loss := (*kgo.ErrDataLoss)(nil); {
		case errors.As(fp.Err, &loss):
			s.stopPartition(a, fp.Err)
		case errors.Is(fp.Err, errNoRoom): // all sets wait
		case fp.Err != nil:
			a.rest(fp.Err, time.Now())
		case len(fp.Records) > 0:
			a.well()
		}
		s.flow(a)
	})
}

// failed notes an error that concerns no assigned partition.
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

// flow pauses or resumes the partition in the client, as the assignment needs.
func (s *session) flow(a *Assignment) {
	s.flowing.Lock()
	defer s.flowing.Unlock()
	s.mu.Lock()
	ours := s.parts[a.partition] == a
	s.mu.Unlock()
	if !ours {
		return // a past assignment must not pause the present one
	}
	which := map[string][]int32{a.topic: {a.partition}}
	if a.paused() {
		s.client.PauseFetchPartitions(which)
	} else {
		s.client.ResumeFetchPartitions(which)
	}
}

// mark returns the size at which a partition's queue is full: its share of the buffer, and never more than the
// partition can use. So a slow partition takes nothing from the others.
func (s *session) mark() (records int, bytes int64) {
	sc := s.source.sc
	share := sc.BufferBytes / max(s.sharing.Load(), 1)
	return sc.BufferBatches * sc.BatchRecords, min(int64(sc.BufferBatches)*sc.BatchBytes, share)
}

// assigned begins an assignment for every new partition.
func (s *session) assigned(_ context.Context, client *kgo.Client, added map[string][]int32) {
	member, _ := client.GroupMetadata()
	var begun []*Assignment
	s.mu.Lock()
	switch {
	case s.stopping || s.broken != nil:
		s.mu.Unlock()
		return
	case s.member != member && len(s.parts) > 0:
		// The group forgot this member and took it in again as a new one. The client continues where it was, but
		// another member may have read on too.
		s.mu.Unlock()
		s.endSession(errFenced)
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

// offsets notes the committed offsets of the group.
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
	// Check this context too: a waiter on it may wake before leaving is done and before dead is set.
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

// finishOnce ends the session when every partition is done. An empty assignment counts after onceSettle.
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

// revoked gives partitions up in good order: the batch in hand may be finished and committed.
func (s *session) revoked(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	s.mu.Lock()
	s.changed = time.Now()
	s.mu.Unlock()
	s.giveUp(s.pick(lost), s.source.sc.Drain)
}

// lost ends assignments whose partitions already belong to another member.
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

// giveUp ends assignments and waits for their handlers. With a drain the handlers may work on for that long. Without
// one nothing is committed from the first moment on.
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
			timer.Reset(0) // the time is over for the others too
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

// endFenced ends an assignment from inside its own commit, because the group refused the commit.
func (s *session) endFenced(a *Assignment, err error) {
	a.mu.Lock()
	a.dead = true
	a.mu.Unlock()
	a.cancel()
	s.endSession(err)
}

// stopPartition stops an assignment whose log has changed behind the records that were read. The partition stays assigned
// and is not read: an operator has to decide what the offsets mean now.
func (s *session) stopPartition(a *Assignment, err error) {
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

// endSession ends the session because the client's state of the group cannot be trusted.
func (s *session) endSession(err error) {
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

	// After that time the client's context ends all waits for a broker. Leaving is part of closing: a separate
	// request makes the client leave a goroutine behind.
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
