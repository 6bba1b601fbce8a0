package kafka

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestRoom_OpensWhatFits(t *testing.T) {
	t.Parallel()
	r := newRoom(SourceConfig{BufferBytes: 50, MaxDecompressBytes: 40})
	r.made.Store(70)
	if !r.may(30) || r.may(31) {
		t.Error("twice the buffer is to be taken, and no more")
	}
	if r.may(1) || r.ease() {
		t.Error("a refusal crams the room until there is less")
	}
	if r.made.Store(70); r.ease() {
		t.Error("it eased before what was refused has room")
	}
	if r.made.Store(69); !r.ease() || !r.may(31) {
		t.Error("it did not ease")
	}
	r.made.Store(0)
	if r.refuse(1); !r.ease() {
		t.Error("an empty room is full")
	}
	if r := newRoom(SourceConfig{BufferBytes: 50, MaxDecompressBytes: 400}); !r.may(400) {
		t.Error("the largest set finds no room")
	}
}

// TestSlabs_CountUntilCollected counts memory that was given back, that is kept, and that was dropped.
func TestSlabs_CountUntilCollected(t *testing.T) {
	t.Parallel()
	r := newRoom(SourceConfig{BufferBytes: 1 << 30})
	s := newSpare(1<<20, r)
	used := func(want int64) {
		t.Helper()
		if n := r.used(); n != want {
			t.Errorf("%d bytes are used, want %d", n, want)
		}
	}
	slab := s.bytes.take(1000)
	s.bytes.use(slab, 1100)
	s.bytes.use(slab, 1200) // it is the same memory
	used(1200)
	s.bytes.give(slab)
	used(0)
	func() {
		small := s.bytes.take(1000)
		s.bytes.use(small, 1300)
		used(1300)
		large := make([]byte, spareBytes)
		s.bytes.use(large, spareBytes)
		used(1300 + spareBytes)
		s.bytes.give(large) // not worth keeping
		used(1300 + spareBytes)
		runtime.KeepAlive(large)
		runtime.KeepAlive(small) // else it may be gone before
	}()
	func() {
		one := &s.GetRecords(10)[:10][7]
		eventually(t, func() bool { runtime.GC(); return r.used() == 10*recordSize })
		runtime.KeepAlive(one) // a record keeps all of its slab alive
	}()
	eventually(t, func() bool { runtime.GC(); return r.used() == 0 })
	if len(s.bytes.uses) > 1 || len(s.records.uses) > 0 { // the first may be kept
		t.Errorf("%d and %d slabs are still known", len(s.bytes.uses), len(s.records.uses))
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("it was never so")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestRecords_WaitForRoom has an uncompressed answer with more records than there is room for.
func TestRecords_WaitForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(SourceConfig{BufferBytes: 50 * recordSize})
		r.made.Store(95 * recordSize)
		for free, want := range map[time.Duration]time.Duration{52 * time.Millisecond: 55 * time.Millisecond, time.Hour: roomWait} {
			from := time.Now()
			timer := time.AfterFunc(free, func() { r.made.Store(0) })
			r.await(10 * recordSize)
			if waited := time.Since(from); waited != want {
				t.Errorf("waited for %v, want %v", waited, want)
			}
			timer.Stop()
			r.made.Store(95 * recordSize)
		}
		if !r.full.Load() {
			t.Error("nobody makes room")
		}
	})
}

func sized(offset int64, n int) *kgo.Record {
	return &kgo.Record{Topic: "logs", Offset: offset, LeaderEpoch: 3, Value: make([]byte, n)}
}

// TestHand_LargeRecordsWait has a record larger than a share wait while the records in hand fill the buffer, and one of them is
// beyond the limits.
func TestHand_LargeRecordsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := lone(SourceConfig{BufferBytes: 100 << 10})
		s.sharing.Store(10)
		other := newAssignment(t.Context(), s, "logs", 1, "member")
		s.hand.bytes, s.hand.line, s.hand.large, other.inHand = 110<<10, []*Assignment{other}, 60<<10, 60<<10
		a := newAssignment(t.Context(), s, "logs", 0, "member")
		if err := a.append([]*kgo.Record{sized(0, 3<<10), sized(1, 50<<10)}); err != nil {
			t.Fatal(err)
		}
		took := make(chan int64, 1)
		fetch := func() {
			b, err := a.Fetch(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if len(b.Records()) != 1 {
				t.Errorf("%d records", len(b.Records()))
			}
			took <- b.Most()
		}
		if fetch(); <-took != 5<<10 {
			t.Fatal("what is taken may grow to more than half of a share")
		}
		if got := s.hand.bytes - 110<<10; got != 3<<10+recordOverhead {
			t.Errorf("%d bytes are in hand", got)
		}
		go fetch()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(took) > 0 {
			t.Fatal("a record was taken beyond the buffer")
		}
		if got := s.hand.bytes; got != 110<<10 {
			t.Errorf("%d bytes are in hand, though the batch before is done with", got)
		}
		if other.finishTaken(); <-took < 50<<10 {
			t.Fatal("it is not taken whole when there is room")
		}
		a.kill()
		if got := s.hand.bytes; got != 50<<10 {
			t.Errorf("%d bytes are in hand after the partition was lost", got)
		}
	})
}

// TestHand_LargeRecordBesideAHold has a record beyond the limits wait for none of the records in hand. It has 13 MiB, and the
// buffer of its lane is one batch of 8 MiB.
func TestHand_LargeRecordBesideAHold(t *testing.T) {
	t.Parallel()
	s := lone(SourceConfig{BufferBytes: 8 << 20, BatchBytes: 8 << 20})
	s.sharing.Store(4)
	s.hand.bytes = 300 // of a partition that holds
	a := newAssignment(t.Context(), s, "logs", 0, "member")
	if err := a.append([]*kgo.Record{sized(0, 13<<20)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if b, err := a.Fetch(ctx); err != nil || len(b.Records()) != 1 || b.Most() <= 0 {
		t.Error(b, err)
	}
}

// TestHand_LargeRecordBehindOneNotDue is a replayer that looks at a small record, which is not due. The next record is larger than
// its buffer.
func TestHand_LargeRecordBehindOneNotDue(t *testing.T) {
	t.Parallel()
	s := lone(SourceConfig{BufferBytes: 5 << 20})
	a := newAssignment(t.Context(), s, "logs", 0, "member")
	if err := a.append([]*kgo.Record{sized(0, 300), sized(1, 6<<20), sized(2, 300), sized(3, 6<<20)}); err != nil {
		t.Fatal(err)
	}
	take := func() (taken []int64) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		for ctx.Err() == nil {
			records, err := a.Take(ctx, 5000, 1<<20, 0)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			for _, r := range records {
				taken = append(taken, r.Offset)
			}
		}
		return taken
	}
	if taken := take(); !slices.Equal(taken, []int64{0, 1}) {
		t.Errorf("beside the small record %v were taken", taken)
	}
	a.Done(6<<20 + recordOverhead)
	if taken := take(); !slices.Equal(taken, []int64{2, 3}) {
		t.Errorf("after the first large record %v were taken", taken)
	}
	if a.finishTaken(); s.hand.bytes != 0 || len(s.hand.line) != 0 || s.hand.large != 0 {
		t.Errorf("something is in hand of nobody: %+v", &s.hand)
	}
}

// TestHand_LargeRecordsTakeTurns has partitions with many records beyond the limits. One at a time is in hand, each partition
// has its turn before any has its next, and those that end do not keep theirs.
func TestHand_LargeRecordsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const partitions, each = 4, 20
		s := lone(SourceConfig{BufferBytes: 8 << 10, BatchBytes: 8 << 10})
		s.sharing.Store(partitions)
		var order []int32
		var running atomic.Int32
		var all sync.WaitGroup
		for p := range int32(partitions + 2) {
			a := newAssignment(t.Context(), s, "logs", p, "member")
			var records []*kgo.Record
			for i := range int64(each) {
				r := sized(i, 13<<10)
				r.Partition = p
				records = append(records, r)
			}
			if err := a.append(records); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				defer a.kill()
				for range each {
					if p == partitions { // it promises, and takes nothing
						if err := a.Ready(t.Context()); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Second)
						return
					}
					if p > partitions { // its queue is dropped
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						time.AfterFunc(time.Millisecond, a.drop)
						_ = a.Ready(ctx) // it may be promised before the queue is dropped
						return
					}
					if _, err := a.Fetch(t.Context()); err != nil {
						t.Error(err)
						return
					}
					order = append(order, p)
					if running.Add(1) > 1 {
						t.Error("two records beyond the limits are in hand")
					}
					time.Sleep(20 * time.Millisecond)
					running.Add(-1)
				}
			})
		}
		all.Wait()
		last := map[int32]int{}
		for i, p := range order {
			if i-last[p] > partitions+1 {
				t.Errorf("partition %d waited for %d others", p, i-last[p])
			}
			last[p] = i
		}
		if s.hand.bytes != 0 || len(s.hand.line) != 0 || s.hand.large != 0 {
			t.Errorf("something is in hand of nobody: %+v", &s.hand)
		}
	})
}

// TestHand_EachPartitionGetsRecords has a partition that takes the allowed records and finishes none. Another one
// with none gets its first records. The first gets more when some of its own are finished.
func TestHand_EachPartitionGetsRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := lone(SourceConfig{BufferBytes: 100 << 10})
		s.sharing.Store(10)
		of := func(partition int32) *Assignment {
			a := newAssignment(t.Context(), s, "logs", partition, "member")
			var records []*kgo.Record
			for i := range int64(40) {
				r := sized(i, 4<<10-recordOverhead)
				r.Partition = partition
				records = append(records, r)
			}
			if err := a.append(records); err != nil {
				t.Error(err)
			}
			return a
		}
		first, second := of(0), of(1)
		took := map[*Assignment]int{}
		take := func(a *Assignment) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			for ctx.Err() == nil {
				records, err := a.Take(ctx, 3, 1<<20, 0)
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				took[a] += len(records)
			}
		}
		for _, want := range []struct {
			a    *Assignment
			took int
		}{{first, 25}, {second, 1}, {first, 25}} { // 100 KiB, half of a share of 10 KiB
			if take(want.a); took[want.a] != want.took {
				t.Errorf("%d records taken, want %d", took[want.a], want.took)
			}
		}
		if got := first.Allowed(); got != 96<<10 {
			t.Errorf("what is in hand may grow to %d bytes", got)
		}
		first.Done(12 << 10)
		if take(first); took[first] != 27 || s.hand.bytes != 100<<10 {
			t.Errorf("%d records taken, %d bytes in hand", took[first], s.hand.bytes)
		}
		second.kill()
		first.kill()
		if s.hand.bytes != 0 {
			t.Errorf("%d bytes are in hand of nobody", s.hand.bytes)
		}
	})
}

func TestDetach_SameRecords(t *testing.T) {
	t.Parallel()
	from := []*kgo.Record{
		{Topic: "logs", Partition: 3, Offset: 7, Key: []byte("k"), Value: []byte("v"), LeaderEpoch: 2,
			Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("b")}, {Key: "null"}}},
		{Topic: "logs", Partition: 3, Offset: 8, Value: make([]byte, 0, 9)},
	}
	was := *from[0]
	records := []*kgo.Record{from[0], from[1]}
	detach(records)
	r := records[0]
	if string(r.Key) != "k" || string(r.Value) != "v" || r.Headers[0].Key != "a" || string(r.Headers[0].Value) != "b" || r.Headers[1].Value != nil ||
		r.Topic != "logs" || r.Partition != 3 || r.Offset != 7 || r.LeaderEpoch != 2 {
		t.Errorf("%+v", r)
	}
	if &r.Value[0] == &was.Value[0] || &r.Key[0] == &was.Key[0] || &r.Headers[0].Value[0] == &was.Headers[0].Value[0] || r == from[0] {
		t.Error("it has the memory of its set")
	}
	if r.Value = append(r.Value, 'x'); string(r.Headers[0].Value) != "b" {
		t.Error("one value runs into the next")
	}
	if e := records[1]; e.Key != nil || e.Value == nil || cap(e.Value) != 0 {
		t.Errorf("null and empty are not kept: %v, %v of %d", e.Key, e.Value, cap(e.Value))
	}
}

// TestLoosen_CopiesWhatKeepsMuch takes from sets of which much is left, and while much memory is kept alive already.
func TestLoosen_CopiesWhatKeepsMuch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kept   int64 // bytes that are kept alive in vain
		left   int   // bytes of the set in the queue
		copied bool
	}{
		"little is kept and left":         {15 << 10, 4 << 10, false},
		"much is kept for others already": {26 << 10, 4 << 10, true},
		"much of the set is left":         {0, 6 << 10, true},
	} {
		s := lone(SourceConfig{BufferBytes: 50 << 10, MaxDecompressBytes: 1})
		s.sharing.Store(5)
		s.source.room.made.Store(tc.kept)
		a := newAssignment(t.Context(), s, "logs", 0, "member")
		set := []*kgo.Record{sized(0, 100), sized(1, tc.left)}
		for _, r := range set {
			r.Context = t.Context()
		}
		if err := a.append(set); err != nil {
			t.Fatal(err)
		}
		taken, _, err := a.pop(func() (int, int64) { return 1, 0 })
		if err != nil || len(taken) != 1 {
			t.Fatal(taken, err)
		}
		if copied := taken[0] != set[0]; copied != tc.copied {
			t.Errorf("%s: copied is %v", name, copied)
		}
	}
}

// TestDropped_LaterRecordsAreNotQueued has a poll that began before the drop and brings records behind the dropped
// ones.
func TestDropped_LaterRecordsAreNotQueued(t *testing.T) {
	t.Parallel()
	s := lone(SourceConfig{})
	a := newAssignment(t.Context(), s, "logs", 0, "member")
	log := make([]*kgo.Record, 6)
	for i := range log {
		log[i] = sized(int64(i), 0)
	}
	queued := func(want int) {
		t.Helper()
		if n, b := Queued(a); n != want || b != int64(want)*recordOverhead || s.source.room.queued.Load() != b {
			t.Errorf("%d records of %d bytes are queued, %d for all, want %d", n, b, s.source.room.queued.Load(), want)
		}
	}
	if err := a.append(log[:4]); err != nil {
		t.Fatal(err)
	}
	if taken, err := a.Take(t.Context(), 1, 1<<20, 0); err != nil || len(taken) != 1 {
		t.Fatal(taken, err)
	}
	a.account.Enter(log[0])
	queued(3)
	a.drop()
	queued(0)
	if err := a.append(log[4:]); err != nil {
		t.Fatal(err)
	}
	queued(0)
	if at := *a.rewind; at != (kgo.EpochOffset{Epoch: 3, Offset: 1}) || !a.paused() {
		t.Errorf("read again from %v, paused %v", at, a.paused())
	}
	if a.awaitsFirst() {
		t.Error("it is read again before anybody asks")
	}
	if s := a.account.Reached(); s.Offset() > 1 {
		t.Errorf("%d may be committed", s.Offset())
	}
	a.rewind = nil // as rewindDropped leaves it
	if err := a.append(log[1:]); err != nil {
		t.Fatal(err)
	}
	queued(5)
	a.account.Enter(log[1:]...) // the account has them again
}

// TestDropped_NotAPromisedBatch has a drop between Ready and Fetch: the batch stays.
func TestDropped_NotAPromisedBatch(t *testing.T) {
	t.Parallel()
	a := newAssignment(t.Context(), lone(SourceConfig{}), "logs", 0, "member")
	if err := a.append([]*kgo.Record{sized(0, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := a.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.drop()
	if b, err := a.Fetch(t.Context()); err != nil || len(b.Records()) != 1 {
		t.Errorf("%v, %v", b, err)
	}
}
