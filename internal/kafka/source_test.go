package kafka_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/record/home"
	"docket/internal/testkit/kafkatest"
)

func TestSource_ReadsAndCommitsEverything(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(3, topic))
	for p := range int32(3) {
		c.Values(t, topic, p, values(100)...)
	}
	var seen book
	m := run(t, fast(c), small(), storing(seen.note))
	kafkatest.Eventually(t, "all records are committed", func() bool {
		at := c.Committed(t, group, topic)
		return at[0] == 100 && at[1] == 100 && at[2] == 100
	})
	if seen.len() != 300 || !m.Joined() || m.Assigned() != 3 || m.Fault() != nil {
		t.Errorf("seen %d, joined %v, assigned %d, fault %v", seen.len(), m.Joined(), m.Assigned(), m.Fault())
	}
	for _, l := range m.Lag() {
		if l.Lag != 0 {
			t.Errorf("lag %+v after everything was committed", l)
		}
	}
	kafkatest.Eventually(t, "the number of partitions is known", func() bool { return m.Partitions() == 3 })
	if err := m.end(); err != nil {
		t.Fatal(err)
	}
	if m.Joined() || m.Assigned() != 0 {
		t.Error("still a member after the end")
	}
	if n := len(c.GroupInfo(group).Members); n != 0 {
		t.Errorf("%d members are left in the group", n)
	}
}

func TestCommit_OnlyAnUnbrokenPrefix(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(30)...)
	done := make(chan error, 1)
	run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		done <- func() error {
			first, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			second, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			if err := a.Commit(ctx, settle(second)); err != nil {
				return err
			}
			if at := c.Committed(t, group, topic); len(at) != 0 {
				t.Errorf("committed %v although the first batch has no home", at)
			}
			stale := settle(first)
			return a.Commit(ctx, stale)
		}()
		<-a.Leaving().Done()
		return nil
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if at := c.Committed(t, group, topic); at[0] != 20 {
		t.Errorf("committed %v, want 20", at)
	}
}

func TestCommit_RefusesOtherAssignments(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(5)...)
	got := make(chan error, 1)
	run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		other := home.NewAccount(topic, 0)
		records, err := a.Take(ctx, 5, 1<<20, time.Millisecond)
		if err != nil {
			return err
		}
		other.Enter(records...)
		got <- a.Commit(ctx, settle(other.Batch(records)))
		<-a.Leaving().Done()
		return nil
	})
	if err := <-got; !errors.Is(err, kafka.ErrNotOurs) {
		t.Errorf("got %v", err)
	}
	if at := c.Committed(t, group, topic); len(at) != 0 {
		t.Errorf("committed %v", at)
	}
}

func TestLeaving_FinishesTheBatchInHand(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(30)...)
	inHand := make(chan struct{})
	m := run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		b, err := a.Fetch(ctx)
		if err != nil {
			return err
		}
		close(inHand)
		<-a.Leaving().Done() // a pause between tries, cut short
		if err := a.Commit(ctx, settle(b)); err != nil {
			t.Errorf("commit while leaving: %v", err)
		}
		_, err = a.Fetch(ctx)
		if !errors.Is(err, kafka.ErrLeaving) {
			t.Errorf("fetch while leaving: %v", err)
		}
		return err
	})
	<-inHand
	if err := m.end(); err != nil {
		t.Fatal(err)
	}
	if at := c.Committed(t, group, topic); at[0] != 10 {
		t.Errorf("committed %v, want 10", at)
	}
}

func TestLeaving_CutsOffAfterTheDrain(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(30)...)
	sc := small()
	sc.Drain = 50 * time.Millisecond
	inHand := make(chan struct{})
	m := run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		b, err := a.Fetch(ctx)
		if err != nil {
			return err
		}
		close(inHand)
		<-ctx.Done()
		if err := a.Commit(context.WithoutCancel(ctx), settle(b)); !errors.Is(err, kafka.ErrNotOurs) {
			t.Errorf("commit after the drain: %v", err)
		}
		return nil
	})
	<-inHand
	if err := m.end(); err != nil {
		t.Fatal(err)
	}
	if at := c.Committed(t, group, topic); len(at) != 0 {
		t.Errorf("committed %v", at)
	}
}

func TestRun_HandlerErrorEndsTheSource(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]error{"with an error": errors.New("boom"), "with a cancelled context of its own": context.Canceled, "without an error": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := kafkatest.New(t, kfake.SeedTopics(2, topic))
			m := run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
				if a.Partition() == 1 {
					return fail
				}
				<-a.Leaving().Done()
				return nil
			})
			<-m.done
			if m.err == nil || (fail != nil && !errors.Is(m.err, fail)) {
				t.Errorf("Run returned %v", m.err)
			}
		})
	}
}

func TestOnce_EndsWhenEveryPartitionIsDone(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(3, topic))
	c.Values(t, topic, 0, values(25)...)
	c.Values(t, topic, 2, values(5)...)
	sc := small()
	sc.Once = true
	var seen book
	m := run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		for {
			next, end, err := a.Bounds(ctx)
			if err != nil {
				return err
			}
			if next >= end {
				return nil
			}
			b, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			for _, r := range b.Records() {
				seen.note(r.Partition, r.Offset)
			}
			if err := a.Commit(ctx, settle(b)); err != nil {
				return err
			}
		}
	})
	<-m.done
	if at := c.Committed(t, group, topic); m.err != nil || seen.len() != 30 || at[0] != 25 || at[2] != 5 {
		t.Errorf("err %v, seen %d, committed %v", m.err, seen.len(), at)
	}
}

func TestSource_SlowPartitionStopsNoOther(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(2, topic))
	c.Values(t, topic, 0, values(5000)...)
	c.Values(t, topic, 1, values(5000)...)
	sc := small()
	sc.BufferBatches = 2
	sc.FetchMaxPartitionBytes = 4 << 10
	var others atomic.Int64
	release := make(chan struct{})
	var slow book
	m := run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		if a.Partition() == 0 {
			select {
			case <-release:
			case <-a.Leaving().Done():
			}
			return storing(slow.note)(ctx, a)
		}
		return storing(func(int32, int64) { others.Add(1) })(ctx, a)
	})
	kafkatest.Eventually(t, "the other partition is read to its end", func() bool { return others.Load() == 5000 })
	close(release)
	kafkatest.Eventually(t, "the slow one goes on once it can", func() bool { return slow.len() == 5000 })
	if err := m.end(); err != nil {
		t.Fatal(err)
	}
}

func TestHold_PausesAndResumes(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	held, release := make(chan struct{}), make(chan struct{})
	var seen book
	m := run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		one, two := a.Hold(), a.Hold()
		one()
		one() // counts once
		close(held)
		<-release
		two()
		return storing(seen.note)(ctx, a)
	})
	<-held
	var fetched atomic.Int64
	stop := c.Watch(kmsg.Fetch, func(req kmsg.Request) {
		for _, topic := range req.(*kmsg.FetchRequest).Topics {
			fetched.Add(int64(len(topic.Partitions)))
		}
	})
	c.Values(t, topic, 0, values(50)...)
	kafkatest.Eventually(t, "the lag of a held partition is known", func() bool {
		l := m.Lag()
		return len(l) == 1 && l[0].Lag == 50
	})
	stop()
	if seen.len() != 0 {
		t.Error("records were handled while held")
	}
	close(release)
	kafkatest.Eventually(t, "held records are read", func() bool { return seen.len() == 50 })
}

func TestCommit_RetriesUntilTaken(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.RebalanceInProgress, kerr.GroupAuthorizationFailed} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			c := kafkatest.New(t, kfake.SeedTopics(1, topic))
			c.Values(t, topic, 0, values(10)...)
			c.Fail(kmsg.OffsetCommit, code, 3)
			var seen book
			m := run(t, fast(c), small(), storing(seen.note))
			kafkatest.Eventually(t, "the commit goes through", func() bool { return c.Committed(t, group, topic)[0] == 10 })
			kafkatest.Eventually(t, "no fault is left", func() bool { return m.Fault() == nil })
		})
	}
}

func TestCommit_FencedIsNotRetried(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.FencedInstanceID} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			c := kafkatest.New(t, kfake.SeedTopics(1, topic))
			c.Values(t, topic, 0, values(10)...)
			c.Fail(kmsg.OffsetCommit, code, 1)
			var refused, rounds atomic.Int64
			run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
				rounds.Add(1)
				b, err := a.Fetch(ctx)
				if err != nil {
					return err
				}
				s := settle(b)
				if err := a.Commit(ctx, s); err != nil {
					if again := a.Commit(context.WithoutCancel(ctx), s); !errors.Is(err, kafka.ErrNotOurs) || !errors.Is(again, kafka.ErrNotOurs) {
						t.Errorf("first %v, again %v", err, again)
					}
					refused.Add(1)
					return err
				}
				<-a.Leaving().Done()
				return nil
			})
			kafkatest.Eventually(t, "a new assignment commits", func() bool { return c.Committed(t, group, topic)[0] == 10 })
			if refused.Load() != 1 || rounds.Load() != 2 {
				t.Errorf("refused %d times in %d assignments", refused.Load(), rounds.Load())
			}
		})
	}
}

func TestLost_IsNotCommitted(t *testing.T) {
	t.Parallel()
	// With ILLEGAL_GENERATION the client keeps its member id, so the check of the member id does not see it.
	for _, code := range []*kerr.Error{kerr.UnknownMemberID, kerr.IllegalGeneration} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			loseAndCommit(t, code)
		})
	}
}

func loseAndCommit(t *testing.T, code *kerr.Error) {
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(10)...)
	var rounds atomic.Int64
	result := make(chan error, 1)
	run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		b, err := a.Fetch(ctx)
		if err != nil {
			return err
		}
		if rounds.Add(1) > 1 {
			<-a.Leaving().Done()
			return nil
		}
		c.Fail(kmsg.Heartbeat, code, 1)
		<-ctx.Done()
		result <- a.Commit(context.WithoutCancel(ctx), settle(b))
		return nil
	})
	if err := <-result; !errors.Is(err, kafka.ErrNotOurs) {
		t.Errorf("got %v", err)
	}
	kafkatest.Eventually(t, "the partition is assigned again", func() bool { return rounds.Load() > 1 })
	if at := c.Committed(t, group, topic); len(at) != 0 {
		t.Errorf("committed %v", at)
	}
}

func TestRevoked_EndsAPauseAndCommits(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(2, topic))
	c.Values(t, topic, 0, values(10)...)
	c.Values(t, topic, 1, values(10)...)
	var inHand, left atomic.Int64
	waiting := func(ctx context.Context, a *kafka.Assignment) error {
		b, err := a.Fetch(ctx)
		if err != nil {
			return err
		}
		inHand.Add(1)
		<-a.Leaving().Done()
		left.Add(1)
		return a.Commit(ctx, settle(b))
	}
	run(t, fast(c), small(), waiting)
	kafkatest.Eventually(t, "both partitions are in hand", func() bool { return inHand.Load() == 2 })
	var seen book
	second := run(t, fast(c), small(), storing(seen.note))
	kafkatest.Eventually(t, "the second member has one partition", func() bool { return second.Assigned() == 1 })
	if left.Load() != 1 {
		t.Errorf("%d assignments left, want 1", left.Load())
	}
	if at := c.Committed(t, group, topic); len(at) != 1 || seen.len() != 0 {
		t.Errorf("committed %v, handled twice: %d", at, seen.len())
	}
}

func TestSource_WaitsForAMissingTopic(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t)
	var seen book
	m := run(t, fast(c), small(), storing(seen.note))
	kafkatest.Eventually(t, "the fault names the topic", func() bool { return reason(m.Fault()) == kafka.ReasonTopicMissing })
	if m.Joined() {
		t.Error("joined without a topic")
	}
	if err := c.CreateTopic(topic, 1, nil); err != nil {
		t.Fatal(err)
	}
	c.Values(t, topic, 0, values(10)...)
	kafkatest.Eventually(t, "reading starts by itself", func() bool { return seen.len() == 10 && m.Fault() == nil })
}

func TestNeededTopic_MissingAtTheStartIsAHold(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(10)...)
	sc := small()
	sc.Needs = []string{"parking", "dlq"}
	var seen book
	m := run(t, fast(c), sc, storing(seen.note))
	for _, missing := range sc.Needs {
		kafkatest.Eventually(t, "the fault names the topic", func() bool {
			f := (*kafka.FaultError)(nil)
			return errors.As(m.Fault(), &f) && f.Reason == kafka.ReasonTopicMissing && f.Topic == missing
		})
		if m.Joined() || seen.len() > 0 {
			t.Errorf("%d records are read although %s is missing", seen.len(), missing)
		}
		if err := c.CreateTopic(missing, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	kafkatest.Eventually(t, "reading starts by itself", func() bool { return seen.len() == 10 && m.Fault() == nil })
}

func TestNeededTopic_DeletedLaterStopsNothing(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic, "dlq"))
	c.Values(t, topic, 0, values(10)...)
	sc := small()
	sc.Needs = []string{"dlq"}
	var seen book
	m := run(t, fast(c), sc, storing(seen.note))
	kafkatest.Eventually(t, "records are read", func() bool { return seen.len() == 10 })
	client := c.Client(t)
	defer client.Close()
	if _, err := kadm.NewClient(client).DeleteTopics(t.Context(), "dlq"); err != nil {
		t.Fatal(err)
	}
	c.Fail(kmsg.OffsetCommit, kerr.UnknownMemberID, 1) // the next session does not look for it
	c.Values(t, topic, 0, values(10)...)
	kafkatest.Eventually(t, "reading goes on", func() bool { return seen.len() == 20 && c.Committed(t, group, topic)[0] == 20 })
	if err := m.Fault(); err != nil {
		t.Error(err)
	}
}

func TestFault_BrokersAreAway(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	var down atomic.Bool
	down.Store(true)
	cfg := fast(c)
	cfg.Dialer = downable(&down)
	var seen book
	m := run(t, cfg, small(), storing(seen.note))
	kafkatest.Eventually(t, "the fault says unreachable", func() bool { return reason(m.Fault()) == kafka.ReasonUnreachable })
	down.Store(false)
	c.Values(t, topic, 0, values(10)...)
	kafkatest.Eventually(t, "reading starts by itself", func() bool { return seen.len() == 10 && m.Fault() == nil })
}

func TestFault_GroupIsForbidden(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true, Err: kerr.GroupAuthorizationFailed, Count: -1})
	var seen book
	m := run(t, fast(c), small(), storing(seen.note))
	kafkatest.Eventually(t, "the fault says authorization", func() bool { return reason(m.Fault()) == kafka.ReasonAuthorization })
	fault.Remove()
	c.Values(t, topic, 0, values(10)...)
	kafkatest.Eventually(t, "reading starts by itself", func() bool { return seen.len() == 10 && m.Fault() == nil })
}

func TestFault_OffsetIsGone(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(2, topic))
	c.Values(t, topic, 0, values(50)...)
	var first book
	m := run(t, fast(c), small(), storing(first.note))
	kafkatest.Eventually(t, "the first part is committed", func() bool { return c.Committed(t, group, topic)[0] == 50 })
	m.end()
	c.Values(t, topic, 0, values(50)...)
	c.Values(t, topic, 1, values(50)...)
	if err := c.DeleteRecords(topic, 0, 80); err != nil {
		t.Fatal(err)
	}
	var second book
	m = run(t, fast(c), small(), storing(second.note))
	kafkatest.Eventually(t, "the fault says out of range", func() bool { return reason(m.Fault()) == kafka.ReasonOutOfRange })
	kafkatest.Eventually(t, "the other partition is read", func() bool { return second.len() == 50 })
	if at := c.Committed(t, group, topic); at[0] != 50 {
		t.Errorf("jumped to %d", at[0])
	}
	if f := (*kafka.FaultError)(nil); !errors.As(m.Fault(), &f) || f.Offset != 50 || f.Partition != 0 {
		t.Errorf("fault %+v", f)
	}
}

func TestFault_PollErrorDropsNoRecords(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(3, topic))
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Partitions: []int32{1}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	for p := range int32(3) {
		c.Values(t, topic, p, values(200)...)
	}
	var seen book
	m := run(t, fast(c), small(), storing(seen.note))
	kafkatest.Eventually(t, "the healthy partitions are read whole", func() bool { return seen.len() == 400 })
	kafkatest.Eventually(t, "the fault names the partition", func() bool { return reason(m.Fault()) == kafka.ReasonAuthorization })
	if fault.Hits() > 50 {
		t.Errorf("a refused partition was asked for %d times", fault.Hits())
	}
	fault.Remove()
	kafkatest.Eventually(t, "the third is read when it may be", func() bool { return seen.len() == 600 && m.Fault() == nil })
}

func TestFault_LogWasCut(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(20)...)
	result := make(chan error, 1)
	m := run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		b, err := a.Fetch(ctx)
		if err != nil {
			return err
		}
		kafka.Poll(a, &kgo.Record{Topic: topic, Partition: 0, Offset: 3})
		<-ctx.Done()
		result <- a.Commit(context.WithoutCancel(ctx), settle(b))
		return ctx.Err()
	})
	if err := <-result; !errors.Is(err, kafka.ErrNotOurs) {
		t.Errorf("commit: %v", err)
	}
	kafkatest.Eventually(t, "the fault says truncated", func() bool { return reason(m.Fault()) == kafka.ReasonTruncated })
	if at := c.Committed(t, group, topic); len(at) != 0 {
		t.Errorf("committed %v", at)
	}
}
