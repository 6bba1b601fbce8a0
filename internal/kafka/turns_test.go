package kafka

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A partition that is stopped stays assigned. It keeps no memory in hand, and no turn of records beyond the limits.
func TestHand_StoppedPartitionGivesBack(t *testing.T) {
	t.Parallel()
	s := lone(SourceConfig{BufferBytes: 8 << 20, BatchBytes: 8 << 20})
	s.sharing.Store(2)
	taken := make(chan struct{})
	s.handle = func(ctx context.Context, a *Assignment) error {
		if _, err := a.Fetch(ctx); err == nil {
			close(taken)
		}
		<-ctx.Done()
		return nil
	}
	a := newAssignment(t.Context(), s, "logs", 0, "member")
	r := sized(0, 13<<20)
	r.Attrs = kgo.RecordAttrs{}
	if err := a.append([]*kgo.Record{r}); err != nil {
		t.Fatal(err)
	}
	go s.carry(a)
	<-taken
	s.stopPartition(a, &kgo.ErrDataLoss{Topic: "logs"})
	<-a.done
	if n := s.source.room.lent.Load(); n != 0 || s.hand.bytes != 0 || len(s.hand.line) > 0 || s.hand.large > 0 {
		t.Errorf("lent %d, in hand %d, line %d, large %d", n, s.hand.bytes, len(s.hand.line), s.hand.large)
	}
}

// The record beyond the limits is done. Its partition has other records in hand, which are not due for an hour.
func TestHand_DoneRecordGivesUpItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := lone(SourceConfig{BufferBytes: 8 << 20, BatchBytes: 8 << 20})
		s.sharing.Store(3)
		of := func(p int32, sizes ...int) *Assignment {
			a := newAssignment(t.Context(), s, "logs", p, "member")
			var rs []*kgo.Record
			for i, n := range sizes {
				r := sized(int64(i), n-recordOverhead)
				r.Partition = p
				rs = append(rs, r)
			}
			if err := a.append(rs); err != nil {
				t.Fatal(err)
			}
			return a
		}
		take := func(a *Assignment) {
			t.Helper()
			if rs, err := a.Take(t.Context(), 1, 8<<20, 0); err != nil || len(rs) != 1 {
				t.Fatal(rs, err)
			}
		}
		a, b, c := of(0, 4<<20, 4<<20, 4<<20), of(1, 1<<20), of(2, 5<<20)
		take(a)
		take(a) // 8 MiB that are not due
		take(b) // 1 MiB of its share that is not due
		take(a) // beyond the limits, and due
		time.AfterFunc(time.Hour, a.finishTaken)
		a.Done(4 << 20) // it has its home
		from := time.Now()
		take(c)
		if waited := time.Since(from); waited > time.Minute {
			t.Errorf("a due record beyond the limits waited for %v, and none was in hand", waited)
		}
	})
}

// Records that wait for their time fill the memory. A record beyond the limits that is not due either leaves its turn to one
// that is. It is read at its time, or once there is room for it.
func TestHand_NotDueLeavesItsTurn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ freed, want time.Duration }{
		"at its time":    {2 * time.Hour, time.Hour},
		"there is room":  {10 * time.Minute, 10 * time.Minute},
		"never any room": {1000 * time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				from, asked := time.Now(), 0
				s := lone(SourceConfig{BufferBytes: 8 << 20, BatchBytes: 8 << 20, Due: func(r *kgo.Record) time.Time {
					asked++
					if r.Partition == 0 {
						return from.Add(time.Hour)
					}
					return time.Time{}
				}})
				s.sharing.Store(3)
				of := func(p int32, size int) *Assignment {
					a := newAssignment(t.Context(), s, "logs", p, "member")
					r := sized(0, size)
					r.Partition = p
					if err := a.append([]*kgo.Record{r}); err != nil {
						t.Fatal(err)
					}
					return a
				}
				take := func(a *Assignment) time.Duration {
					if rs, err := a.Take(t.Context(), 1, 8<<20, 0); err != nil || len(rs) != 1 {
						t.Error(rs, err)
					}
					return time.Since(from)
				}
				wait, later, now := of(1, 7<<20), of(0, 6<<20), of(2, 7<<20)
				take(wait)
				time.AfterFunc(tc.freed, wait.finishTaken)
				took := make(chan time.Duration)
				go func() { took <- take(later) }()
				synctest.Wait()
				if waited := take(now); waited > time.Minute {
					t.Errorf("a due record beyond the limits waited for %v, and the other one is not due", waited)
				}
				now.finishTaken()
				if waited := <-took; waited != tc.want {
					t.Errorf("the other one was taken after %v, want %v", waited, tc.want)
				}
				if asked > 3 {
					t.Errorf("asked %d times when three records are due", asked)
				}
			})
		})
	}
}

// The share grows while a partition waits in the line. Its record is then no larger than a share, and waits for its own records
// alone.
func TestHand_ShareGrowsInTheLine(t *testing.T) {
	t.Parallel()
	s := lone(SourceConfig{BufferBytes: 100 << 10})
	s.sharing.Store(10) // share 5 KiB
	s.hand.bytes = 200 << 10
	holder := newAssignment(t.Context(), s, "logs", 2, "member")
	s.hand.line, s.hand.large, holder.inHand = []*Assignment{holder}, 110<<10, 110<<10
	a := newAssignment(t.Context(), s, "logs", 0, "member")
	a.inHand = 45 << 10 // records that are not due
	if err := a.append([]*kgo.Record{sized(0, 20<<10)}); err != nil {
		t.Fatal(err)
	}
	b := newAssignment(t.Context(), s, "logs", 1, "member")
	r := sized(0, 120<<10)
	r.Partition = 1
	if err := b.append([]*kgo.Record{r}); err != nil {
		t.Fatal(err)
	}
	took := make(chan string, 2)
	take := func(name string, a *Assignment) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if rs, err := a.Take(ctx, 10, 1<<20, 0); err == nil && len(rs) == 1 {
			took <- name
		} else {
			took <- name + " took none"
		}
	}
	go take("a", a)
	eventually(t, func() bool { s.hand.mu.Lock(); defer s.hand.mu.Unlock(); return len(s.hand.line) == 2 })
	go take("b", b)
	eventually(t, func() bool { s.hand.mu.Lock(); defer s.hand.mu.Unlock(); return len(s.hand.line) == 3 })
	// partitions are revoked, and the record beyond the limits is done
	s.sharing.Store(1) // share 50 KiB
	holder.finishTaken()
	if n := <-took; n != "b" {
		t.Errorf("%s, and no record beyond the limits is in hand", n)
	}
	a.finishTaken()
	if n := <-took; n != "a" {
		t.Error(n)
	}
}

// TestHand_PromisesTakeMemory has partitions that are ready at the same moment, each with a record beyond its share. Memory that is
// promised to one of them is promised to no other, and each has its turn.
func TestHand_PromisesTakeMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const partitions, buffer, size = 20, 8 << 10, 5 << 10
		s := lone(SourceConfig{BufferBytes: buffer, BatchBytes: buffer})
		s.sharing.Store(partitions)
		var taken atomic.Int32
		var all sync.WaitGroup
		for p := range int32(partitions) {
			a := newAssignment(t.Context(), s, "logs", p, "member")
			r := sized(0, size)
			r.Partition = p
			if err := a.append([]*kgo.Record{r}); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				defer a.kill()
				if err := a.Ready(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if p == 0 { // it leaves without the batch that it was promised
					return
				}
				time.Sleep(time.Millisecond) // the others have asked, too
				b, err := a.Fetch(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				s.hand.mu.Lock()
				bytes := s.hand.bytes
				s.hand.mu.Unlock()
				if most := int64(buffer*3/2 + size + recordOverhead); bytes > most {
					t.Errorf("%d bytes are in hand, more than %d", bytes, most)
				}
				taken.Add(int32(len(b.Records())))
				time.Sleep(time.Second)
			})
		}
		all.Wait()
		if taken.Load() != partitions-1 || s.hand.bytes != 0 || len(s.hand.line) != 0 || s.hand.large != 0 {
			t.Errorf("%d records were taken, something is in hand of nobody: %+v", taken.Load(), &s.hand)
		}
	})
}
