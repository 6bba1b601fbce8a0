package kafka

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The wait for more records begins when the first record came, also if that was while the batch before was carried.
func TestFetch_WaitBeginsAtTheFirstRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const wait = 200 * time.Millisecond
		s := lone(SourceConfig{})
		a := newAssignment(t.Context(), s, "logs", 0, "member")
		taken := func(want int, within time.Duration) {
			t.Helper()
			from := time.Now()
			records, err := a.Take(t.Context(), 10, 1<<20, wait)
			if err != nil || len(records) != want || time.Since(from) != within {
				t.Fatalf("%d records after %v, %v; want %d after %v", len(records), time.Since(from), err, want, within)
			}
		}
		came := func(offsets ...int64) {
			t.Helper()
			for _, offset := range offsets {
				if err := a.append([]*kgo.Record{{Topic: "logs", Offset: offset}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		came(0)
		time.Sleep(150 * time.Millisecond) // the batch before is carried
		came(1)
		taken(2, wait-150*time.Millisecond)

		came(2)
		time.Sleep(time.Second)
		taken(1, 0)

		came(3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
		time.Sleep(time.Second)
		taken(10, 0)
		taken(1, wait) // records left over from a batch wait again
	})
}

// Empty queues of many partitions keep bounded memory.
func TestQueue_EmptyKeepsLittle(t *testing.T) {
	t.Parallel()
	const most = 5000
	for _, partitions := range []int64{1, 12, 1000} {
		s := lone(SourceConfig{BatchRecords: most})
		s.sharing.Store(partitions)
		a := newAssignment(t.Context(), s, "logs", 0, "member")
		kept := 0
		for from := range int64(3) {
			var records []*kgo.Record
			for i := range int64(most) {
				records = append(records, &kgo.Record{Topic: "logs", Offset: from*most + i})
			}
			if err := a.append(records); err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, most - 1} {
				if taken, _, err := a.pop(func() (int, int64) { return n, 0 }); err != nil || len(taken) != n || taken[0].Offset < from*most {
					t.Fatalf("%d of %d records: %v", len(taken), n, err)
				}
				for _, r := range a.queue[len(a.queue):cap(a.queue)] {
					if r != nil {
						t.Fatal("the array holds a record that was taken")
					}
				}
			}
			kept = 8 * cap(a.queue)
		}
		_, share := s.mark()
		if int64(kept) > share/8 {
			t.Errorf("each of %d empty queues keeps %d bytes of a share of %d", partitions, kept, share)
		}
		if partitions < 100 && kept == 0 {
			t.Errorf("each of %d queues makes its array again", partitions)
		}
	}
}

// A batch waits until many records came at the pace of the one before. The least is a fifth of the batch wait, and twice the
// time of carrying a batch. The most is the batch wait without that time.
func TestFetch_HomeInAboutTheBatchWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const wait = 200 * time.Millisecond
		s := lone(SourceConfig{BatchWait: wait, BatchRecords: 1000, BatchBytes: 1 << 20})
		a := newAssignment(t.Context(), s, "logs", 0, "member")
		offset := int64(0)
		for _, each := range []struct {
			carried, waited time.Duration
			records         int
		}{
			{0, wait / 5, 1}, // the first batch
			{0, wait, 1},
			{20 * time.Millisecond, 180 * time.Millisecond, 1},
			{time.Minute, 150 * time.Millisecond, 1},
			{0, wait, manyRecords - 1},
			{20 * time.Millisecond, 180 * time.Millisecond, manyRecords},
			{20 * time.Millisecond, 180 * time.Millisecond, 4 * manyRecords}, // in 200 ms
			{20 * time.Millisecond, 50 * time.Millisecond, 8 * manyRecords},
			{20 * time.Millisecond, 40 * time.Millisecond, 8 * manyRecords},
			{100 * time.Millisecond, 40 * time.Millisecond, 8 * manyRecords}, // slow once
			{100 * time.Millisecond, 150 * time.Millisecond, 8 * manyRecords},
			{30 * time.Millisecond, 60 * time.Millisecond, 1},
			{30 * time.Millisecond, 170 * time.Millisecond, 1},
			{100 * 365 * 24 * time.Hour, 150 * time.Millisecond, 1},
			{0, wait, 1},
		} {
			time.Sleep(each.carried)
			ready := make(chan error)
			go func() { ready <- a.Ready(t.Context()) }()
			synctest.Wait()
			var records []*kgo.Record
			for range each.records {
				records = append(records, &kgo.Record{Topic: "logs", Offset: offset})
				offset++
			}
			if err := a.append(records); err != nil {
				t.Fatal(err)
			}
			from := time.Now()
			if err := <-ready; err != nil || time.Since(from) != each.waited {
				t.Errorf("after %v: ready after %v, %v; want %v", each.carried, time.Since(from), err, each.waited)
			}
			if _, err := a.Fetch(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// In a poll the client has the news that a log was cut behind the records that it read from the cut on. Nobody takes those.
func TestTake_StopsBeforeRecordsOfACutLog(t *testing.T) {
	t.Parallel()
	s := lone(SourceConfig{BatchRecords: 100, BatchBytes: 1 << 20, Topic: "logs"})
	s.source.logger = zerolog.Nop()
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s.client = client
	cut, other := newAssignment(t.Context(), s, "logs", 0, "member"), newAssignment(t.Context(), s, "logs", 1, "member")
	s.parts[0], s.parts[1] = cut, other
	came := []chan struct{}{cut.arrived, other.arrived}
	part := func(of kgo.FetchPartition) kgo.Fetch {
		return kgo.Fetch{Topics: []kgo.FetchTopic{{Topic: "logs", Partitions: []kgo.FetchPartition{of}}}}
	}
	s.take(kgo.Fetches{
		part(kgo.FetchPartition{Partition: 0, Records: []*kgo.Record{{Topic: "logs", Offset: 12}}}),
		part(kgo.FetchPartition{Partition: 1, Records: []*kgo.Record{{Topic: "logs", Partition: 1, Offset: 7}}}),
		part(kgo.FetchPartition{Partition: 0, Err: &kgo.ErrDataLoss{Topic: "logs", ConsumedTo: 20, ResetTo: 12}}),
	})
	arrived := func(n int) bool {
		select {
		case <-came[n]:
			return true
		default:
			return false
		}
	}
	if arrived(0) || len(cut.queue) > 0 || !cut.dead || cut.faulty == nil || !cut.faulty.final {
		t.Errorf("records of the cut log: arrived %t, %d queued; %+v", arrived(0), len(cut.queue), cut.faulty)
	}
	if !arrived(1) || len(other.queue) != 1 || other.faulty != nil {
		t.Errorf("records of the other one: arrived %t, %d queued; %+v", arrived(1), len(other.queue), other.faulty)
	}
}
