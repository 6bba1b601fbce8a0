package envelope

import (
	"bytes"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// FuzzForwarded: with any headers, a record is forwarded with its key, value and foreign headers unchanged. Each of
// Docket's headers is there once, within 4 KiB together, and reads back as written.
func FuzzForwarded(f *testing.F) {
	f.Add("traceparent", []byte("00-1"), []byte("k"), []byte("v"), "23514", "message", "a\x00b", int32(3), int64(77), int64(0))
	f.Add(DeadLetterID, []byte("forged"), []byte(nil), []byte(nil), "", "\xff\r\n", "", int32(0), int64(0), int64(1<<62))
	f.Add(OriginalTopic, []byte("elsewhere"), []byte(""), []byte(""), "x", "", "€", int32(1<<30), int64(1<<62), int64(-1<<62))
	f.Fuzz(func(t *testing.T, name string, header, key, value []byte, code, message, place string, partition int32, offset, seconds int64) {
		if partition < 0 || offset < 0 {
			return // no such record
		}
		in := &kgo.Record{Topic: "decision-logs", Partition: partition, Offset: offset, Key: key, Value: value, Timestamp: time.Unix(seconds%1e11, 0),
			Headers: []kgo.RecordHeader{{Key: name, Value: header}, {Key: "foreign", Value: nil}, {Key: name, Value: header}}}
		cause := Cause{Kind: Transient, Code: code, Message: message, Table: place, Column: place, Constraint: place}
		first := Open(in).Seal(cause, Sealed{Topic: "parking", Index: 2, Value: value, At: now, NotBefore: now, Consumer: place})
		check := func(r *kgo.Record) {
			t.Helper()
			size, seen, foreign := 0, map[string]int{}, 0
			for _, h := range r.Headers {
				if ours[h.Key] {
					seen[h.Key]++
					size += len(h.Key) + len(h.Value)
					continue
				}
				foreign++
			}
			want := 3
			if ours[name] {
				want = 1
			}
			if size > 4<<10 || foreign != want {
				t.Fatalf("%d bytes of our headers, %d foreign ones, want %d", size, foreign, want)
			}
			for key, n := range seen {
				if n != 1 {
					t.Fatalf("%s is there %d times", key, n)
				}
			}
			if !bytes.Equal(r.Key, key) || !bytes.Equal(r.Value, value) || (r.Value == nil) != (value == nil) || (r.Key == nil) != (key == nil) {
				t.Fatal("key or value changed")
			}
		}
		check(first)
		first.Timestamp = now
		e := OpenParked(first, time.Hour)
		if e.Origin.Topic != "decision-logs" || e.Origin.Partition != partition || e.Origin.Offset != offset || e.Origin.Index != 2 || e.Attempt != 0 {
			t.Fatalf("read back as %+v", e.Origin)
		}
		again := e.Seal(cause, Sealed{Topic: "parking", Index: 2, Value: value, At: now, Attempt: 1})
		check(again)
		if IDOf(again) != IDOf(first) {
			t.Fatal("the dead-letter id changed")
		}
	})
}
