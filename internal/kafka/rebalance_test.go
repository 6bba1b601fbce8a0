package kafka_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/record/home"
	"docket/internal/testkit/kafkatest"
)

// seeds returns how many histories are tried; DOCKET_TEST_SEEDS sets it.
func seeds() int {
	if n, err := strconv.Atoi(os.Getenv("DOCKET_TEST_SEEDS")); err == nil {
		return n
	}
	return 6
}

// Members join, leave and are thrown out at random moments while they work. Every record below a committed offset
// must have been finished by a handler. Committed offsets never decrease. One partition never has two live
// assignments in one process. At the end everything is committed.
func TestRebalance_SkipsNoRecord(t *testing.T) {
	t.Parallel()
	for seed := range seeds() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			history(t, uint64(seed))
		})
	}
}

func history(t *testing.T, seed uint64) {
	const partitions, records = 4, 400
	random := rand.New(rand.NewPCG(seed, 0))
	c := kafkatest.New(t, kfake.SeedTopics(partitions, topic))
	for p := range int32(partitions) {
		c.Values(t, topic, p, values(records)...)
	}
	var done book
	commits := newObserver(t, c)
	sc := small()
	sc.BufferBatches = 1 + int(seed%3)
	sc.FetchMaxPartitionBytes = 1 << 10
	sc.Drain = []time.Duration{20 * time.Millisecond, time.Second}[seed%2]

	var members []*member
	join := func() { members = append(members, run(t, fast(c), sc, erratic(seed, &done))) }
	join()
	for range 12 {
		pause := time.Duration(random.IntN(250)) * time.Millisecond
		commits.during(pause)
		switch dice := random.IntN(10); {
		case dice < 3 && len(members) < 4:
			join()
		case dice < 5 && len(members) > 1:
			i := random.IntN(len(members))
			if err := members[i].end(); err != nil {
				t.Errorf("Run: %v", err)
			}
			members = append(members[:i], members[i+1:]...)
		case dice < 7:
			c.Fail(kmsg.Heartbeat, kerr.UnknownMemberID, 1)
		case dice < 8:
			c.Fail(kmsg.OffsetCommit, kerr.UnknownMemberID, 1)
		case dice < 9:
			c.Fail(kmsg.OffsetCommit, kerr.CoordinatorNotAvailable, 2)
		default:
			c.Fail(kmsg.JoinGroup, kerr.UnknownMemberID, 1)
		}
	}
	defer func() {
		for i, m := range members {
			if t.Failed() {
				t.Logf("member %d: joined %v, %d partitions, fault %v, lag %v; committed %v", i, m.Joined(), m.Assigned(), m.Fault(), m.Lag(), commits.last)
			}
		}
	}()
	kafkatest.Eventually(t, "everything is committed", func() bool {
		for _, at := range commits.during(10 * time.Millisecond) {
			if at < records {
				return false
			}
		}
		return len(commits.last) == partitions
	})
	for _, m := range members {
		if err := m.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	if lost := done.missing(commits.last); len(lost) > 0 {
		t.Errorf("committed without a home: %v", lost)
	}
}

// erratic handles batches at random speed, sometimes two at a time in the wrong order, sometimes with a hold.
func erratic(seed uint64, done *book) kafka.Handler {
	var mu sync.Mutex
	live := map[int32]bool{}
	return func(ctx context.Context, a *kafka.Assignment) error {
		mu.Lock()
		if live[a.Partition()] {
			panic("two live assignments of one partition")
		}
		live[a.Partition()] = true
		mu.Unlock()
		defer func() {
			mu.Lock()
			live[a.Partition()] = false
			mu.Unlock()
		}()
		random := rand.New(rand.NewPCG(seed, uint64(a.Partition())))
		work := func(b *home.Batch) error {
			pause := time.Duration(random.IntN(20)) * time.Millisecond
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err() // uncommitted: without a home
			}
			for _, r := range b.Records() {
				done.note(r.Partition, r.Offset)
			}
			return a.Commit(ctx, settle(b))
		}
		for {
			first, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			if random.IntN(4) == 0 {
				release := a.Hold()
				time.AfterFunc(time.Duration(random.IntN(30))*time.Millisecond, release)
			}
			if random.IntN(4) == 0 {
				soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond) // there may be no second
				second, err := a.Fetch(soon)
				cancel()
				if err == nil {
					err = work(second)
				}
				if ctx.Err() != nil {
					return err
				}
			}
			if err := work(first); err != nil {
				return err
			}
		}
	}
}

// observer watches the committed offsets.
type observer struct {
	t     *testing.T
	admin *kadm.Client
	last  map[int32]int64
}

func newObserver(t *testing.T, c *kafkatest.Cluster) *observer {
	client := c.Client(t)
	t.Cleanup(client.Close)
	return &observer{t: t, admin: kadm.NewClient(client), last: map[int32]int64{}}
}

// during checks again and again for a while that no offset decreases.
func (o *observer) during(d time.Duration) map[int32]int64 {
	for end := time.Now().Add(d); ; {
		offsets, _ := o.admin.FetchOffsets(context.Background(), group)
		offsets.Each(func(at kadm.OffsetResponse) {
			if at.At < o.last[at.Partition] {
				o.t.Errorf("the committed offset of %d went from %d to %d", at.Partition, o.last[at.Partition], at.At)
			}
			o.last[at.Partition] = at.At
		})
		if time.Now().After(end) {
			return o.last
		}
		time.Sleep(time.Millisecond)
	}
}
