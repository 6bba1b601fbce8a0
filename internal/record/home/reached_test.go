package home

import (
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// mark is the end of a transaction at an offset.
func mark(t *testing.T, offset int64) *kgo.Record {
	t.Helper()
	set := kmsg.RecordBatch{Magic: 2, Attributes: 0b11_0000, NumRecords: 1, FirstOffset: offset, PartitionLeaderEpoch: int32(offset % 7),
		Records: []byte{2 * 14, 0, 0, 0, 8, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0}}
	set.Length = int32(len(set.AppendTo(nil)) - 12)
	fetched := kmsg.FetchResponseTopicPartition{Partition: 3, RecordBatches: set.AppendTo(nil)}
	p, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true, DisableCRCValidation: true, Topic: "t", Partition: 3, Offset: offset},
		&fetched, kgo.DefaultDecompressor(), nil)
	if len(p.Records) != 1 || !p.Records[0].Attrs.IsControl() || p.Records[0].Offset != offset {
		t.Fatalf("no mark: %+v", p)
	}
	return p.Records[0]
}

func carried(t *testing.T, a *Account, rs ...*kgo.Record) Settled {
	t.Helper()
	b := a.Batch(rs)
	for i := range rs {
		b.Carries(i, 1)[0].Give(Row)
	}
	s, err := b.Settle()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReached_PassesMarkersWithNothingOpen(t *testing.T) {
	t.Parallel()
	a := NewAccount("t", 3)
	want := func(when string, offset int64) {
		t.Helper()
		if s := a.Reached(); s.Offset() != offset || !s.Of(a) {
			t.Errorf("%s: reached %d of %v, want %d", when, s.Offset(), s.Of(a), offset)
		}
	}
	want("nothing was read", -1)
	a.Await(mark(t, 4))
	want("a mark was read", 5)
	rs := records(5, 6, 9)
	a.Await(rs[0], rs[1], mark(t, 7))
	want("records wait before a mark", 5)
	a.Enter(rs[0])
	if got := carried(t, a, rs[0]).Offset(); got != 6 {
		t.Errorf("settled %d, want 6: a record waits before the mark", got)
	}
	a.Enter(rs[1])
	a.Await(mark(t, 8), rs[2])
	want("a record is in hand before marks", 6)
	if s := carried(t, a, rs[1]); s.Offset() != 9 || s.LeaderEpoch() != 8%7 {
		t.Errorf("settled %d in epoch %d, want 9 in %d: both marks were passed", s.Offset(), s.LeaderEpoch(), 8%7)
	}
	want("a record waits", 9)
	a.Return(9)
	want("it was given back", 9)
	a.Await(rs[2], mark(t, 10))
	a.Enter(rs[2])
	carried(t, a, rs[2])
	want("it was read again", 11)
}

func TestAwaited_RecordsCannotBeLeftOut(t *testing.T) {
	t.Parallel()
	a := NewAccount("t", 3)
	rs := records(1, 2, 3)
	a.Await(rs...)
	mustPanic(t, "entering a record before one that was read earlier", func() { a.Enter(rs[1]) })
	mustPanic(t, "reading an offset again", func() { a.Await(rs[2]) })
	mustPanic(t, "reading another partition", func() { a.Await(&kgo.Record{Topic: "t", Partition: 4, Offset: 9}) })
}

// TestReached_NeverBeyondAHomelessRecord reads, returns, enters and settles in any order.
func TestReached_NeverBeyondAHomelessRecord(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		log := make([]*kgo.Record, 60)
		for o := range log {
			if log[o] = records(int64(o))[0]; rng.IntN(3) == 0 {
				log[o] = mark(t, int64(o))
			}
		}
		a := NewAccount("t", 3)
		read, entered := 0, 0 // up to here
		homeless := map[int64]bool{}
		var inHand []*kgo.Record
		for range 400 {
			switch rng.IntN(4) {
			case 0:
				for range rng.IntN(5) {
					if read < len(log) {
						a.Await(log[read])
						read++
					}
				}
			case 1:
				if read > entered && rng.IntN(4) == 0 { // gives back from a record on
					from := entered + rng.IntN(read-entered)
					for from < read && log[from].Attrs.IsControl() {
						from++
					}
					if from < read {
						a.Return(int64(from))
						read = from
					}
				}
			case 2:
				for entered < read && log[entered].Attrs.IsControl() {
					entered++
				}
				if entered < read {
					a.Enter(log[entered])
					inHand = append(inHand, log[entered])
					homeless[int64(entered)] = true
					entered++
				}
			case 3:
				if len(inHand) > 0 {
					i := rng.IntN(len(inHand))
					carried(t, a, inHand[i])
					delete(homeless, inHand[i].Offset)
					inHand = append(inHand[:i:i], inHand[i+1:]...)
				}
			}
			want := int64(0) // the lowest offset that was not read, or whose record has no home
			for want < int64(read) && (log[want].Attrs.IsControl() || want < int64(entered) && !homeless[want]) {
				want++
			}
			if got := a.Reached().Offset(); max(got, 0) != want {
				t.Fatalf("seed %d: reached %d, want %d; read %d, entered %d, homeless %v", seed, got, want, read, entered, homeless)
			}
		}
	}
}
