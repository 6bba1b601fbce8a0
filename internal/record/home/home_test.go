package home

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func records(offsets ...int64) []*kgo.Record {
	rs := make([]*kgo.Record, len(offsets))
	for i, o := range offsets {
		rs[i] = &kgo.Record{Topic: "t", Partition: 3, Offset: o, LeaderEpoch: int32(o % 7)}
	}
	return rs
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s did not panic", what)
		}
	}()
	f()
}

func TestSettle_OnlyWithAllHomes(t *testing.T) {
	t.Parallel()
	a := NewAccount("t", 3)
	rs := records(10, 11, 14)
	a.Enter(rs...)
	b := a.Batch(rs)

	wantHomeless := func(n int, offset int64) {
		t.Helper()
		s, err := b.Settle()
		var missing *HomelessError
		if !errors.As(err, &missing) || missing.Decisions != n || missing.Offset != offset {
			t.Fatalf("Settle() = %v, want %d decisions homeless from offset %d on", err, n, offset)
		}
		if s.Offset() != -1 || s.Of(a) {
			t.Fatalf("a batch that is not settled gave %+v", s)
		}
	}
	wantHomeless(3, 10) // a record without a call of Carries is homeless too
	first, second, third := b.Carries(0, 1), b.Carries(1, 3), b.Carries(2, 1)
	wantHomeless(5, 10)
	first[0].Give(Row)
	second[0].Give(Row)
	second[2].Give(DeadLetter)
	third[0].Give(Spooled)
	wantHomeless(1, 11)
	second[1].Give(Duplicate)

	s, err := b.Settle()
	if err != nil {
		t.Fatal(err)
	}
	if s.Offset() != 15 || !s.Of(a) || s.LeaderEpoch() != 0 {
		t.Fatalf("settled %+v, want offset 15 of this account", s)
	}
	if a.Open() != 0 {
		t.Fatalf("%d records still open", a.Open())
	}
}

func TestSettled_NeverPassesAWaitingRecord(t *testing.T) {
	t.Parallel()
	a := NewAccount("t", 3)
	rs := records(0, 1, 2, 3)
	a.Enter(rs...)
	settle := func(r ...*kgo.Record) int64 {
		t.Helper()
		b := a.Batch(r)
		for i := range r {
			b.Carries(i, 1)[0].Give(Row)
		}
		s, err := b.Settle()
		if err != nil {
			t.Fatal(err)
		}
		return s.Offset()
	}
	for _, step := range []struct {
		settle []*kgo.Record
		want   int64
	}{
		{rs[2:3], -1}, // 0 and 1 wait
		{rs[0:1], 1},
		{rs[3:4], 1}, // 1 waits
		{rs[1:2], 4},
	} {
		if got := settle(step.settle...); got != step.want {
			t.Errorf("after offset %d: may commit %d, want %d", step.settle[0].Offset, got, step.want)
		}
	}
}

func TestSettled_LowestHomelessOffset(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a := NewAccount("t", 3)
		offsets, next := []int64{}, int64(0)
		for range 40 {
			next += 1 + rng.Int64N(3) // gaps
			offsets = append(offsets, next)
		}
		rs := records(offsets...)
		a.Enter(rs...)
		waiting := slices.Clone(rs)
		committed := int64(-1)
		for len(waiting) > 0 {
			var part []*kgo.Record
			waiting = slices.DeleteFunc(waiting, func(r *kgo.Record) bool {
				if rng.IntN(4) > 0 {
					return false
				}
				part = append(part, r)
				return true
			})
			b := a.Batch(part)
			for i := range part {
				b.Carries(i, 1)[0].Give(Row)
			}
			s, err := b.Settle()
			if err != nil {
				t.Fatal(err)
			}
			if s.Offset() < committed {
				t.Fatalf("seed %d: went back from %d to %d", seed, committed, s.Offset())
			}
			committed = s.Offset()
			for _, r := range waiting {
				if r.Offset < committed {
					t.Fatalf("seed %d: may commit %d while %d waits", seed, committed, r.Offset)
				}
			}
		}
		if committed != next+1 {
			t.Fatalf("seed %d: ended at %d, want %d", seed, committed, next+1)
		}
	}
}

func TestSettled_OfAnEarlierAssignment(t *testing.T) {
	t.Parallel()
	was, is := NewAccount("t", 3), NewAccount("t", 3)
	rs := records(5)
	was.Enter(rs...)
	b := was.Batch(rs)
	b.Carries(0, 1)[0].Give(Row)
	s, err := b.Settle()
	if err != nil {
		t.Fatal(err)
	}
	if s.Of(is) || !s.Of(was) {
		t.Error("what an earlier assignment settled passes as settled by this one")
	}
	if (Settled{}).Of(is) || (Settled{}).Of(nil) || (Settled{}).Offset() != -1 {
		t.Error("the zero Settled is good for something")
	}
}

func TestAccount_RefusesWrongOffsets(t *testing.T) {
	t.Parallel()
	a := NewAccount("t", 3)
	rs := records(1, 2)
	a.Enter(rs...)
	mustPanic(t, "an offset that went back", func() { a.Enter(records(2)...) })
	mustPanic(t, "a record of another partition", func() { a.Enter(&kgo.Record{Topic: "t", Partition: 4, Offset: 9}) })
	mustPanic(t, "a record of another topic", func() { a.Enter(&kgo.Record{Topic: "u", Partition: 3, Offset: 9}) })
	mustPanic(t, "a record that never entered", func() { a.Batch(records(7)) })
	b := a.Batch(rs)
	mustPanic(t, "a record taken twice", func() { a.Batch(rs[:1]) })
	mustPanic(t, "a record that carries nothing", func() { b.Carries(0, 0) })
	e := &b.Carries(0, 1)[0]
	mustPanic(t, "a record opened twice", func() { b.Carries(0, 1) })
	mustPanic(t, "None as a home", func() { e.Give(None) })
	mustPanic(t, "an unknown home", func() { e.Give(homes) })
	e.Give(Row)
	mustPanic(t, "a second home", func() { e.Give(Row) })
}

func TestBatch_EntriesDoNotMove(t *testing.T) {
	t.Parallel()
	a := NewAccount("t", 3)
	rs := records(0, 1, 2, 3)
	a.Enter(rs...)
	b := a.Batch(rs)
	var all []*Entry
	for i, n := range []int{1, 1000, 1, 3} {
		es := b.Carries(i, n)
		for j := range es {
			all = append(all, &es[j])
		}
	}
	for _, e := range all {
		e.Give(Row)
	}
	if _, err := b.Settle(); err != nil {
		t.Error(err)
	}
}

func TestCut_SettledSeparately(t *testing.T) {
	t.Parallel()
	a := NewAccount("t", 3)
	rs := records(1, 2, 3)
	a.Enter(rs...)
	rest := a.Batch(rs)
	e := rest.Carries(0, 2)
	head := rest.Cut(1)
	e[0].Give(Row)
	if _, err := head.Settle(); err == nil {
		t.Error("a cut batch was settled without all its homes")
	}
	e[1].Give(Row)
	if s, err := head.Settle(); err != nil || s.Offset() != 2 {
		t.Errorf("the head may commit %d, %v", s.Offset(), err)
	}
	if _, err := rest.Settle(); err == nil {
		t.Error("the rest was settled on the strength of the head")
	}
	for i := range rest.Records() {
		rest.Carries(i, 1)[0].Give(Row)
	}
	if s, err := rest.Settle(); err != nil || s.Offset() != 4 {
		t.Errorf("the rest may commit %d, %v", s.Offset(), err)
	}
}

func TestHome_Names(t *testing.T) {
	t.Parallel()
	want := []string{"row", "duplicate", "parked", "dead_letter", "exhausted", "spooled"}
	for i, h := range All() {
		if h.String() != want[i] {
			t.Errorf("home %d is named %q, want %q", h, h, want[i])
		}
	}
	if len(All()) != int(homes)-1 {
		t.Error("All leaves a home out")
	}
}

// fetch makes records like a client with pools. recycled reports which were recycled.
func fetch(t *testing.T, n int) (records []*kgo.Record, recycled func(i int) bool) {
	t.Helper()
	var raw []byte
	for i := range n {
		r := kmsg.NewRecord()
		r.OffsetDelta, r.Value = int32(i), []byte("v")
		body := r.AppendTo(nil)[1:] // without its length
		raw = append(binary.AppendVarint(raw, int64(len(body))), body...)
	}
	set := kmsg.NewRecordBatch()
	set.Magic, set.NumRecords, set.LastOffsetDelta, set.Records = 2, int32(n), int32(n-1), raw
	set.Length = int32(len(set.AppendTo(nil)) - 12)
	answer := kmsg.NewFetchResponseTopicPartition()
	answer.Partition, answer.RecordBatches = 3, set.AppendTo(nil)
	p, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Topic: "t", Partition: 3, DisableCRCValidation: true, Pools: []kgo.Pool{slabs{}},
	}, &answer, kgo.DefaultDecompressor(), nil)
	if p.Err != nil || len(p.Records) != n {
		t.Fatalf("%d records of %d: %v", len(p.Records), n, p.Err)
	}
	all := slices.Clone(p.Records)
	return p.Records, func(i int) bool { return all[i].Value == nil }
}

type slabs struct{}

func (slabs) GetRecords(n int) []kgo.Record { return make([]kgo.Record, n) }
func (slabs) PutRecords([]kgo.Record)       {}

func TestRelease_OnlyWhenSettled(t *testing.T) {
	t.Parallel()
	fetched, recycled := fetch(t, 7)
	a := NewAccount("t", 3)
	a.Enter(fetched...)
	b := a.Batch(slices.Clone(fetched))
	mustPanic(t, "a batch released before it was settled", func() { b.Release() })
	given := [][]Home{{Row}, {Duplicate}, {Parked}, {DeadLetter}, {Row, Row}, {Row, Spooled}, {Exhausted}}
	for i, homes := range given {
		entries := b.Carries(i, len(homes))
		for j, h := range homes {
			mustPanic(t, "a batch released before it was settled", func() { b.Release() })
			entries[j].Give(h)
		}
	}
	if _, err := b.Settle(); err != nil {
		t.Fatal(err)
	}
	b.Release()
	for i, homes := range given {
		if !recycled(i) {
			t.Errorf("a record of homes %v is not recycled", homes)
		}
	}
	if len(b.Records()) != 0 {
		t.Error("a released batch still has records")
	}
}

func TestRelease_NotTheRestOfACutBatch(t *testing.T) {
	t.Parallel()
	fetched, recycled := fetch(t, 4)
	a := NewAccount("t", 3)
	a.Enter(fetched...)
	rest := a.Batch(slices.Clone(fetched))
	for i := range fetched {
		rest.Carries(i, 1)[0].Give(Row)
	}
	head := rest.Cut(2)
	if _, err := head.Settle(); err != nil {
		t.Fatal(err)
	}
	head.Release()
	if !recycled(0) || !recycled(1) || recycled(2) || recycled(3) {
		t.Error("not the head alone was released")
	}
	mustPanic(t, "the rest released before it was settled", func() { rest.Release() })
	if s, err := rest.Settle(); err != nil || s.Offset() != 4 || rest.Records()[1].Offset != 3 {
		t.Errorf("the rest is settled at %d: %v", s.Offset(), err)
	}
}

func TestRelease_LaterBatchHasNoHomes(t *testing.T) {
	t.Parallel()
	a := NewAccount("t", 3)
	for n := range int64(5) {
		rs := records(2*n, 2*n+1)
		a.Enter(rs...)
		b := a.Batch(rs)
		if n%2 == 1 {
			b.Cut(1) // the cut part is not used again
		}
		var missing *HomelessError
		if _, err := b.Settle(); !errors.As(err, &missing) || missing.Decisions != len(b.Records()) {
			t.Fatalf("batch %d begins with homes: %v", n, err)
		}
		for i := range b.Records() {
			b.Carries(i, 1)[0].Give(Row)
		}
		if _, err := b.Settle(); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
}

// TestAccount_ManyKeepNoBatches has many partitions with a large batch each, one after another.
//
//nolint:paralleltest // it measures what is the whole process's
func TestAccount_ManyKeepNoBatches(t *testing.T) {
	const accounts, each = 50, 1000
	fetched := make([]*kgo.Record, each)
	for i := range fetched {
		fetched[i] = &kgo.Record{Topic: "t", Partition: 3, Offset: int64(i)}
	}
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	all := make([]*Account, accounts)
	before := live()
	for i := range all {
		all[i] = NewAccount("t", 3)
		all[i].Enter(fetched...)
		b := all[i].Batch(slices.Clone(fetched))
		for k := range b.Records() {
			b.Carries(k, 1)[0].Give(Row)
		}
		if _, err := b.Settle(); err != nil {
			t.Fatal(err)
		}
		b.Release()
		all[i].open = nil // the account itself is not measured
	}
	if kept := live() - before; kept > accounts*each*8 {
		t.Errorf("%d accounts keep %d bytes once their batches of %d records are released", accounts, kept, each)
	}
	runtime.KeepAlive(all)
}

// TestAccount_StreamTakesNoMemory reads and takes records of a partition that always has some waiting, as in a long drain.
//
//nolint:paralleltest // it measures what is the whole process's
func TestAccount_StreamTakesNoMemory(t *testing.T) {
	const each, waiting = 500, 3
	a := NewAccount("t", 3)
	read, taken := 0, 0
	next := func(from int) []*kgo.Record {
		rs := make([]*kgo.Record, each)
		for i := range rs {
			rs[i] = &kgo.Record{Topic: "t", Partition: 3, Offset: int64(from + i)}
		}
		return rs
	}
	var sets [64][]*kgo.Record
	for i := range sets {
		sets[i] = next(i * each)
	}
	step := func() {
		for read < taken+waiting {
			a.Await(sets[read]...)
			read++
		}
		a.Enter(sets[taken]...)
		taken++
		a.settle(sets[taken-1])
	}
	for range 10 {
		step()
	}
	if n := testing.AllocsPerRun(40, step); n > 0.1 {
		t.Errorf("%d records take %v allocations to be read and taken", each, n)
	}
}
