package kafka_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

// The client silently rejoins under a new name when the group forgot it during a rebalance. Another member may have
// owned the partition meanwhile, so the batch in hand must not be committed.
func TestRejoin_EndsEveryAssignment(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(10)...)
	inHand, result := make(chan struct{}), make(chan error, 1)
	var rounds atomic.Int64
	var seen book
	run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		if rounds.Add(1) > 1 {
			return storing(seen.note)(ctx, a)
		}
		b, err := a.Fetch(ctx)
		if err != nil {
			return err
		}
		close(inHand)
		<-ctx.Done()
		result <- a.Commit(context.WithoutCancel(ctx), settle(b))
		return nil
	})
	<-inHand
	first := c.GroupInfo(group).Members[0].MemberID
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Group: group, Err: kerr.UnknownMemberID, Count: 1,
		When: func(req kmsg.Request) bool { return req.(*kmsg.JoinGroupRequest).MemberID == first }})
	run(t, fast(c), small(), storing(seen.note)) // its arrival makes the first rejoin
	if err := <-result; !errors.Is(err, kafka.ErrNotOurs) {
		t.Errorf("got %v", err)
	}
	kafkatest.Eventually(t, "the records are handled by whoever has the partition", func() bool { return seen.len() == 10 })
}

func TestRejoin_PollNeverEntersALaterAssignment(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(10)...)
	s, err := kafka.NewSource(fast(c), small(), nop, nil)
	if err != nil {
		t.Fatal(err)
	}
	var polls, rounds atomic.Int64
	second := make(chan struct{})
	kafka.BetweenPollAndQueue(s, func() {
		if polls.Add(1) > 1 {
			return
		}
		c.Fail(kmsg.Heartbeat, kerr.UnknownMemberID, 1)
		select {
		case <-second:
			t.Error("the partition was assigned again while records of it were in hand")
		case <-time.After(1500 * time.Millisecond):
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	var seen book
	go func() {
		done <- s.Run(ctx, func(ctx context.Context, a *kafka.Assignment) error {
			if rounds.Add(1) == 1 {
				<-a.Leaving().Done()
				return nil
			}
			close(second)
			return storing(seen.note)(ctx, a)
		})
	}()
	kafkatest.Eventually(t, "the later assignment commits", func() bool { return c.Committed(t, group, topic)[0] == 10 })
	cancel()
	if err := <-done; err != nil || seen.len() != 10 {
		t.Errorf("err %v, %d records", err, seen.len())
	}
}

// Between the group's answer and the callback for it, the client has the new name and the old assignment has not
// ended. Nothing may be committed under the new name.
func TestRejoin_NoCommitForAnotherMember(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(10)...)
	inHand, result := make(chan struct{}), make(chan error, 1)
	var rounds atomic.Int64
	var seen book
	run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		if rounds.Add(1) > 1 {
			return storing(seen.note)(ctx, a)
		}
		b, err := a.Fetch(ctx)
		if err != nil {
			return err
		}
		was := kafka.Member(a)
		close(inHand)
		for kafka.Member(a) == was && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		commit, cancel := context.WithTimeout(context.WithoutCancel(ctx), kafkatest.Timeout)
		defer cancel()
		result <- a.Commit(commit, settle(b))
		<-ctx.Done()
		return nil
	})
	<-inHand
	first := c.GroupInfo(group).Members[0].MemberID
	c.ControlKey(int16(kmsg.SyncGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		c.SleepControl(func() { time.Sleep(200 * time.Millisecond) })
		return nil, nil, false
	})
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Group: group, Err: kerr.UnknownMemberID, Count: 1,
		When: func(req kmsg.Request) bool { return req.(*kmsg.JoinGroupRequest).MemberID == first }})
	run(t, fast(c), small(), storing(seen.note)) // its arrival makes the first rejoin
	if err := <-result; !errors.Is(err, kafka.ErrNotOurs) {
		t.Errorf("got %v", err)
	}
	kafkatest.Eventually(t, "the records are handled by whoever has the partition", func() bool { return seen.len() == 10 })
}
