package envelope

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

func stamped(t time.Time) string { return string(stamp(nil, t)) }

// TestSealer_ManyReadLikeOne reads all records after the last is sealed, because returned bytes are never written
// again.
func TestSealer_ManyReadLikeOne(t *testing.T) {
	t.Parallel()
	texts := rapid.SampledFrom([]string{"", "a", "08006", "decision-logs", "long " + fmt.Sprintf("%01200d", 7), "two\nlines"})
	times := rapid.SampledFrom([]time.Time{{}, read, now, now.Add(time.Nanosecond), now.In(time.FixedZone("x", 3600))})
	rapid.Check(t, func(t *rapid.T) {
		var together Sealer
		together.Expect(rapid.IntRange(-1, 400).Draw(t, "expected"))
		n := rapid.IntRange(1, 300).Draw(t, "records")
		var got, want []*kgo.Record
		for i := range n {
			r := source()
			r.Topic, r.Offset, r.Partition = texts.Draw(t, "topic"), int64(i), rapid.Int32Range(0, 2).Draw(t, "partition")
			r.Timestamp, r.Headers = times.Draw(t, "read"), r.Headers[:rapid.IntRange(0, 3).Draw(t, "headers")]
			e := Open(r)
			e.FirstFailedAt = times.Draw(t, "first")
			c := Cause{Kind: Kind(texts.Draw(t, "kind")), Code: texts.Draw(t, "code"), Message: texts.Draw(t, "message"), Table: texts.Draw(t, "table"),
				Column: texts.Draw(t, "column"), Constraint: texts.Draw(t, "constraint")}
			s := Sealed{Topic: "parking", Index: rapid.IntRange(-1, 2).Draw(t, "index"), Value: r.Value, At: times.Draw(t, "at"),
				Attempt: rapid.IntRange(0, 2).Draw(t, "attempt"), NotBefore: times.Draw(t, "not before"), Consumer: texts.Draw(t, "consumer")}
			got, want = append(got, together.Seal(&e, &c, s)), append(want, e.Seal(c, s))
		}
		for i := range got {
			if d := cmp.Diff(shown(want[i]), shown(got[i])); d != "" {
				t.Fatalf("record %d of %d (-by itself +together):\n%s", i, n, d)
			}
		}
	})
}

func shown(r *kgo.Record) string {
	text := fmt.Sprintf("%s %d %q %q %v", r.Topic, r.Partition, r.Key, r.Value, r.Timestamp)
	for _, h := range r.Headers {
		text += fmt.Sprintf("\n%s %q %v", h.Key, h.Value, h.Value == nil)
	}
	return text
}

func TestOpener_ManyReadLikeOne(t *testing.T) {
	t.Parallel()
	var together Opener
	for i, topic := range []string{"a", "a", "b", "", "a", "no topic", "b"} {
		for _, code := range []string{"08006", "", "40001"} {
			src := source()
			src.Topic, src.Offset = topic, int64(i)
			r := Open(src).Seal(Cause{Kind: Transient, Code: code}, Sealed{Topic: "parking", Index: i, Value: src.Value, At: now, NotBefore: now.Add(time.Minute), Attempt: i})
			r.Timestamp = now
			if d := cmp.Diff(OpenParked(r, time.Hour), together.OpenParked(r, time.Hour), cmp.Comparer(func(a, b *kgo.Record) bool { return a == b })); d != "" {
				t.Errorf("topic %q, code %q (-by itself +together):\n%s", topic, code, d)
			}
			if at := OpenParked(r, time.Hour).NotBefore; !Due(r, time.Hour).Equal(at) || at.IsZero() {
				t.Errorf("due at %v, opened as due at %v", Due(r, time.Hour), at)
			}
		}
	}
}

// TestDue_AgreesWithOpenParked also has records of strangers.
func TestDue_AgreesWithOpenParked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &kgo.Record{Timestamp: now}
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			r.Headers = append(r.Headers, kgo.RecordHeader{
				Key:   rapid.SampledFrom([]string{NotBefore, FailedAt}).Draw(t, "key"),
				Value: rapid.SampledFrom([][]byte{nil, []byte("-1"), []byte("x"), strconv.AppendInt(nil, now.UnixMilli(), 10), []byte("9223372036854775807")}).Draw(t, "value"),
			})
		}
		if opened, due := OpenParked(r, time.Hour).NotBefore, Due(r, time.Hour); !opened.Equal(due) {
			t.Fatalf("due at %v, opened as due at %v", due, opened)
		}
	})
}

// manyParked makes records as they come back from the parking topic.
func manyParked(n int) []*kgo.Record {
	var s Sealer
	s.Expect(n)
	out := make([]*kgo.Record, n)
	for i := range out {
		out[i] = sealOne(&s, i)
	}
	return out
}

func sealOne(s *Sealer, i int) *kgo.Record {
	e := Envelope{Record: typical, Origin: Origin{Topic: "decision-logs", Partition: 3, Offset: 1_000_000 + int64(i), Timestamp: read.Add(time.Duration(i) * time.Millisecond)}}
	return s.Seal(&e, &typicalCause, Sealed{Topic: "decision-logs-parking", Value: typical.Value, At: now, NotBefore: now.Add(time.Minute), Consumer: "docket/host-1"})
}

var (
	typical      = &kgo.Record{Key: []byte("subject-12345"), Value: make([]byte, 680)}
	typicalCause = Cause{Kind: Transient, Code: "HV00N", Message: "fdw_unable_to_establish_connection: A foreign table's other side fails, which another try in a second does not change."}
)

//nolint:paralleltest // it measures what is the whole process's
func TestSealer_FewAllocations(t *testing.T) {
	const n, most = 2000, 0.05 // for each of many records: memory for 256 of them, and memory for all
	sealed := testing.AllocsPerRun(5, func() {
		var s Sealer
		s.Expect(n)
		for i := range n {
			sealOne(&s, i)
		}
	})
	if each := sealed / n; each > most {
		t.Errorf("%.3f allocations for a sealed record, want %v at most", each, most)
	}
	records := manyParked(n)
	var o Opener
	opened := testing.AllocsPerRun(5, func() {
		for _, r := range records {
			o.OpenParked(r, time.Hour)
			Due(r, time.Hour)
		}
	})
	if opened > 2 { // the first topic and the first code
		t.Errorf("%v allocations for %d opened records, want none for each", opened, n)
	}
}

func BenchmarkSeal(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(typical.Value)))
	const batch = 5000
	for b.Loop() {
		var s Sealer
		s.Expect(batch)
		for i := range batch {
			sealOne(&s, i)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/record")
}

func BenchmarkOpenParked(b *testing.B) {
	b.ReportAllocs()
	records := manyParked(5000)
	var o Opener
	for b.Loop() {
		for _, r := range records {
			o.OpenParked(r, time.Hour)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(records)), "ns/record")
}

// TestSealer_MemoryAfterManyHeaders counts bytes. The writer of a source record chooses the number of its headers,
// and later records need not have as many.
//
//nolint:paralleltest // it measures what is the whole process's
func TestSealer_MemoryAfterManyHeaders(t *testing.T) {
	r := &kgo.Record{Headers: make([]kgo.RecordHeader, 100_000)}
	for i := range r.Headers {
		r.Headers[i].Key = "h"
	}
	e := Open(r)
	own := uint64(len(r.Headers)) * uint64(unsafe.Sizeof(kgo.RecordHeader{}))
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	var s Sealer
	s.Expect(1000)
	s.Seal(&e, &typicalCause, Sealed{Topic: "parking", At: now})
	runtime.ReadMemStats(&to)
	if took := to.TotalAlloc - from.TotalAlloc; took > 2*own {
		t.Errorf("%d bytes for a record whose headers have %d", took, own)
	}
}
