package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

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

	committing atomic.Int64 // commits that are on their way

	unlooked atomic.Bool // partitions were assigned since the last look

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
		if n := fetches.NumRecords(); n > 0 {
			s.awaitMore(s.polling, n)
		}
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
	s.stopLost(fetches)
	fetches.EachPartition(func(fp kgo.FetchTopicPartition) {
		a := s.assignmentOf(fp)
		if a == nil {
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
		switch {
		case isLoss(fp.Err): // stopped
		case errors.Is(fp.Err, errNoRoom): // all sets wait
		case fp.Err != nil:
			a.rest(fp.Err, time.Now())
		case len(fp.Records) > 0:
			a.well()
		}
		s.flow(a)
	})
}

// stopLost stops the partitions whose log was cut. In a poll the client has this news behind the records that it read from the
// cut on, which nobody may take.
func (s *session) stopLost(fetches kgo.Fetches) {
	fetches.EachPartition(func(fp kgo.FetchTopicPartition) {
		if a := s.assignmentOf(fp); a != nil && isLoss(fp.Err) {
			s.stopPartition(a, fp.Err)
		}
	})
}

func isLoss(err error) bool {
	loss := (*kgo.ErrDataLoss)(nil)
	return errors.As(err, &loss)
}

// assignmentOf returns the assignment of a part of a poll; nil: the partition is not assigned.
func (s *session) assignmentOf(fp kgo.FetchTopicPartition) *Assignment {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.parts[fp.Partition]; a != nil && a.topic == fp.Topic {
		return a
	}
	return nil
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

// carry runs the handler of one assignment.
func (s *session) carry(a *Assignment) {
	err := s.handle(a.ctx, a)
	if err == nil && s.source.sc.Once {
		a.commitMarks(a.ctx, true) // the session may end before the next look
	}
	a.finishTaken() // a partition that was stopped, or is done, stays assigned
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
