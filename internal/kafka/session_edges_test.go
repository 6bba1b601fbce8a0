package kafka_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/output"
)

var nop = zerolog.Nop()

func TestHold_DoesNotPauseTheNextAssignment(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(10)...)
	var rounds atomic.Int64
	releases := make(chan func(), 1)
	var seen book
	run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		if rounds.Add(1) == 1 {
			releases <- a.Hold() // not released during the test
			c.Fail(kmsg.Heartbeat, kerr.UnknownMemberID, 1)
			<-ctx.Done()
			return nil
		}
		return storing(seen.note)(ctx, a)
	})
	release := <-releases
	kafkatest.Eventually(t, "the next assignment reads", func() bool { return seen.len() == 10 })
	release()
	c.Values(t, topic, 0, values(10)...)
	kafkatest.Eventually(t, "a late release changes nothing", func() bool { return seen.len() == 20 })
}

func TestOnce_EndsBehindTransactionMarkers(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(3)...)
	client := c.Client(t, kgo.TransactionalID("tx"), kgo.DefaultProduceTopic(topic))
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), kafkatest.Timeout)
	defer cancel()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(ctx, kgo.StringRecord("in a transaction")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(ctx, end); err != nil {
			t.Fatal(err)
		}
	}
	sc := small()
	sc.Once = true
	var taken atomic.Int64
	m := run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		for {
			next, end, err := a.Bounds(ctx)
			if err != nil || next >= end {
				return err
			}
			soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			records, err := a.Take(soon, 10, 1<<20, 0)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			taken.Add(int64(len(records)))
		}
	})
	<-m.done
	if m.err != nil || taken.Load() != 4 {
		t.Errorf("err %v, %d records taken, want 4: the aborted one and the marks are none", m.err, taken.Load())
	}
}

func TestTake_LosesNothingWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(5)...)
	result := make(chan int, 1)
	run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		for {
			soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			records, err := a.Take(soon, 10, 1<<20, time.Hour) // it would gather for an hour
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || len(records) > 0 {
				t.Errorf("%d records, %v", len(records), err)
			}
			if n, _ := kafka.Queued(a); n == 5 {
				break
			}
		}
		records, err := a.Take(ctx, 10, 1<<20, 0)
		result <- len(records)
		<-a.Leaving().Done()
		return err
	})
	if n := <-result; n != 5 {
		t.Errorf("%d records", n)
	}
}

func TestFetch_Limits(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	large := string(make([]byte, 10_000))
	c.Values(t, topic, 0, "a", "b", large, "c", large, large)
	sizes := make(chan []int, 1)
	run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		for n := 0; n < 6; n, _ = kafka.Queued(a) {
			time.Sleep(time.Millisecond)
		}
		var got []int
		for sum := 0; sum < 6; {
			records, err := a.Take(ctx, 10, 5000, 0)
			if err != nil {
				return err
			}
			got, sum = append(got, len(records)), sum+len(records)
		}
		sizes <- got
		<-a.Leaving().Done()
		return nil
	})
	got := <-sizes
	want := []int{2, 1, 1, 1, 1}
	if len(got) != len(want) {
		t.Fatalf("batches of %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("batches of %v, want %v", got, want)
		}
	}
}

func TestQueue_BoundedInBytes(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	random := string(noise(80 << 10)) // does not compress: inflated sets have a limit of their own
	var set []string
	for i := range 10 {
		set = append(set, random[i<<13:(i+1)<<13])
	}
	for range 40 {
		c.Values(t, topic, 0, set...)
	}
	sc := small()
	sc.BatchRecords, sc.BatchBytes, sc.BufferBatches = 1000, 64<<10, 4
	sc.FetchMaxPartitionBytes = 64 << 10
	started, release := make(chan *kafka.Assignment, 1), make(chan struct{})
	var most atomic.Int64
	var seen book
	run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		started <- a
		<-release
		return storing(func(p int32, o int64) {
			if _, bytes := kafka.Queued(a); bytes > most.Load() {
				most.Store(bytes)
			}
			seen.note(p, o)
		})(ctx, a)
	})
	a := <-started
	kafkatest.Eventually(t, "the queue is full", func() bool { _, b := kafka.Queued(a); return b >= 256<<10 })
	close(release)
	kafkatest.Eventually(t, "all is read", func() bool { return seen.len() == 400 })
	if bound := int64(256<<10 + 90<<10); most.Load() > bound {
		t.Errorf("%d bytes were queued, bound %d", most.Load(), bound)
	}
	if n, b := kafka.Queued(a); n != 0 || b != 0 {
		t.Errorf("an empty queue counts %d records of %d bytes", n, b)
	}
}

func TestSetTooLarge_IsAFault(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(2, topic))
	c.Values(t, topic, 0, string(make([]byte, 3<<20)))
	c.Values(t, topic, 1, values(10)...)
	sc := small()
	sc.MaxDecompressBytes = 1 << 20
	var seen book
	m := run(t, fast(c), sc, storing(seen.note))
	kafkatest.Eventually(t, "the fault says set_too_large", func() bool { return reason(m.Fault()) == kafka.ReasonSetTooLarge })
	kafkatest.Eventually(t, "the other partition is read", func() bool { return seen.len() == 10 })
}

func TestSetTooLarge_StaysAFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.NewVirtual(t, kfake.SeedTopics(1, topic))
		defer c.Close()
		c.Values(t, topic, 0, string(make([]byte, 3<<20)))
		cfg := kafka.Config{Brokers: c.Brokers(), Dialer: c.Dial}
		s, err := kafka.NewSource(cfg, kafka.SourceConfig{Topic: topic, Group: group, MaxDecompressBytes: 1 << 20}, nop, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		var seen book
		go func() { ended <- s.Run(ctx, storing(seen.note)) }()
		time.Sleep(time.Hour)
		if reason(s.Fault()) != kafka.ReasonSetTooLarge {
			t.Errorf("after an hour the fault is %v", s.Fault())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestHold_OfADay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.NewVirtual(t, kfake.SeedTopics(1, topic))
		defer c.Close()
		c.Values(t, topic, 0, values(20)...)
		cfg := kafka.Config{Brokers: c.Brokers(), Dialer: c.Dial}
		s, err := kafka.NewSource(cfg, kafka.SourceConfig{Topic: topic, Group: group, BatchRecords: 10}, nop, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		err = s.Run(ctx, func(ctx context.Context, a *kafka.Assignment) error {
			for _, hold := range []time.Duration{24 * time.Hour, time.Hour} {
				b, err := a.Fetch(ctx)
				if err != nil {
					return err
				}
				release := a.Hold()
				time.Sleep(hold)
				release()
				if err := a.Commit(ctx, settle(b)); err != nil {
					return err
				}
			}
			cancel()
			<-a.Leaving().Done()
			return nil
		})
		if at := c.Committed(t, group, topic); err != nil || at[0] != 20 || time.Since(began) < 25*time.Hour {
			t.Errorf("err %v, committed %v after %v", err, at, time.Since(began))
		}
	})
}

func TestMetrics_OfTheLatestSession(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(10)...)
	reg := prometheus.NewPedanticRegistry()
	s, err := kafka.NewSource(fast(c), small(), nop, reg)
	if err != nil {
		t.Fatal(err)
	}
	p, err := kafka.NewPublisher(fast(c), kafka.PublisherConfig{}, nop, reg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var members sync.Map
	c.Watch(kmsg.OffsetCommit, func(r kmsg.Request) { members.Store(r.(*kmsg.OffsetCommitRequest).MemberID, true) })
	done := make(chan error, 1)
	var seen book
	go func() { done <- s.Run(context.Background(), storing(seen.note)) }()
	kafkatest.Eventually(t, "the first session commits", func() bool { return c.Committed(t, group, topic)[0] == 10 })
	c.Fail(kmsg.OffsetCommit, kerr.UnknownMemberID, 1)
	c.Values(t, topic, 0, values(10)...)
	kafkatest.Eventually(t, "a second session commits", func() bool { return c.Committed(t, group, topic)[0] == 20 })
	kafkatest.Eventually(t, "it has another member", func() bool {
		n := 0
		members.Range(func(any, any) bool { n++; return true })
		return n > 1
	})
	families, err := reg.Gather()
	if err != nil {
		t.Errorf("the sessions collide: %v", err)
	}
	fetched := 0.0
	for _, f := range families {
		if f.GetName() != "docket_kafka_fetch_records_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			fetched += m.GetCounter().GetValue()
		}
	}
	if fetched != 10 {
		t.Errorf("%v records fetched, want the 10 of the session that is on", fetched)
	}
	s.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// The brokers may be well where this process cannot open a connection.
func TestFault_NoDescriptors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := kafka.Config{Brokers: []string{"127.0.0.1:9"}, Dialer: func(_ context.Context, network, _ string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}}
		s, err := kafka.NewSource(cfg, kafka.SourceConfig{Topic: topic, Group: group}, nop, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, func(context.Context, *kafka.Assignment) error { return nil }) }()
		time.Sleep(time.Minute)
		f := &kafka.FaultError{}
		if errors.As(s.Fault(), &f); f.Reason != kafka.ReasonUnreachable || f.Code != "no_descriptors" || !strings.Contains(f.Hint, "ulimit") {
			t.Errorf("the fault is %v", s.Fault())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestLog_FewLinesWhileBrokersAreAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		down.Store(true)
		var out output.Buffer
		cfg := kafka.Config{Brokers: []string{"127.0.0.1:9"}, Dialer: downable(&down)}
		s, err := kafka.NewSource(cfg, kafka.SourceConfig{Topic: topic, Group: group}, zerolog.New(&out), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := s.Run(ctx, func(context.Context, *kafka.Assignment) error { return nil }); err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(out.String(), "\n")
		if lines < 5 || lines > 60 {
			t.Errorf("%d lines in an hour without brokers", lines)
		}
		if !strings.Contains(out.String(), `"left_out":`) {
			t.Error("nothing says how many lines were left out")
		}
	})
}

func TestCommit_FaultWhileNotTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.NewVirtual(t, kfake.SeedTopics(1, topic))
		defer c.Close()
		c.Values(t, topic, 0, values(10)...)
		away := c.Fail(kmsg.OffsetCommit, kerr.CoordinatorNotAvailable, -1)
		cfg := kafka.Config{Brokers: c.Brokers(), Dialer: c.Dial}
		s, err := kafka.NewSource(cfg, kafka.SourceConfig{Topic: topic, Group: group, BatchRecords: 10}, nop, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var seen book
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, storing(seen.note)) }()
		time.Sleep(10 * time.Minute)
		if s.Fault() == nil || seen.len() != 10 {
			t.Errorf("%d records; a commit that fails for ten minutes is no fault", seen.len())
		}
		away.Remove()
		time.Sleep(time.Minute)
		if at := c.Committed(t, group, topic)[0]; at != 10 || s.Fault() != nil {
			t.Errorf("committed %d, fault %v", at, s.Fault())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
