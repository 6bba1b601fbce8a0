package envelope

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

func TestOpenDead_SealedHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := source()
		src.Headers = append(src.Headers, kgo.RecordHeader{Key: RetryOf, Value: []byte("a-mark")})
		index := rapid.IntRange(NoIndex, 1000).Draw(t, "index")
		value := rapid.SliceOf(rapid.Byte()).Draw(t, "value")
		cause := Cause{
			Kind: rapid.SampledFrom([]Kind{Decode, Data, Conflict, Exhausted}).Draw(t, "kind"),
			Code: "23514", Message: "check_violation", Table: "decision_logs", Constraint: "k",
		}
		sealed := Open(src).Seal(cause, Sealed{Topic: "dlq", Index: index, Value: value, At: now, Consumer: "c"})
		sealed.Partition, sealed.Offset = 2, 900

		d := OpenDead(sealed)
		want := Dead{
			ID: IDOf(sealed), Cause: cause, FirstFailedAt: now, FailedAt: now, RetryOf: "a-mark", Headers: source().Headers,
			Origin: Origin{Topic: src.Topic, Partition: src.Partition, Offset: src.Offset, Index: index, Timestamp: src.Timestamp},
		}
		if diff := cmp.Diff(want, d); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestOpenDead_NoHeaders(t *testing.T) {
	t.Parallel()
	r := &kgo.Record{Topic: "dlq", Partition: 1, Offset: 9, Timestamp: now, Value: []byte("v")}
	want := Origin{Topic: "dlq", Partition: 1, Offset: 9, Index: NoIndex, Timestamp: now}
	d := OpenDead(r)
	if d.ID != ID(want, r.Value) || d.Origin != want || d.Cause.Code != "unknown" || d.Cause.Kind != Data || !d.FailedAt.Equal(now) || !d.FirstFailedAt.Equal(now) {
		t.Errorf("%+v", d)
	}
	for name, h := range map[string]kgo.RecordHeader{
		"an id that is none":        {Key: DeadLetterID, Value: []byte("../../../etc")},
		"an id that is too short":   {Key: DeadLetterID, Value: []byte("ab")},
		"the id of another":         {Key: DeadLetterID, Value: []byte(ID(Origin{Topic: "source", Offset: 7}, []byte("a real letter")))},
		"a kind that is none":       {Key: FailureKind, Value: []byte("weird")},
		"a failure in the future":   {Key: FirstFailedAt, Value: []byte(stamped(now.Add(time.Hour)))},
		"a time that is none":       {Key: FailedAt, Value: []byte("yesterday")},
		"a code of control letters": {Key: FailureCode, Value: []byte("\x00\xff")},
	} {
		r.Headers = []kgo.RecordHeader{h}
		d := OpenDead(r)
		if d.ID != ID(want, r.Value) || d.Cause.Kind != Data || !d.FirstFailedAt.Equal(now) || !d.FailedAt.Equal(now) || strings.Contains(d.Cause.Code, "\x00") || strings.Contains(d.Cause.Code, "\xff") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestRetryOf_StaysWithTheRecord(t *testing.T) {
	t.Parallel()
	src := source()
	src.Headers = []kgo.RecordHeader{{Key: RetryOf, Value: []byte("a-mark")}}
	parked := Open(src).Seal(Cause{Kind: Transient, Code: "08006"}, Sealed{Topic: "parking", At: now})
	dead := OpenParked(parked, time.Hour).Seal(Cause{Kind: Data, Code: "23514"}, Sealed{Topic: "dlq", At: now})
	got := OpenDead(dead)
	if got.RetryOf != "a-mark" {
		t.Errorf("behind parking the mark is %q", got.RetryOf)
	}
	for _, h := range got.Headers {
		if h.Key == RetryOf {
			t.Error("the next retry would carry the mark of this one beside its own")
		}
	}
	if got := OpenDead(Keys{}.Bare(dead)).RetryOf; got != "" {
		t.Errorf("a bare record has the mark %q", got)
	}
}

func TestOpenDead_NeverInKafka(t *testing.T) {
	t.Parallel()
	r := &kgo.Record{Topic: "decision-logs", Key: []byte("alice"), Value: []byte(`{"a":1}`)}
	cause := Cause{Kind: Decode, Code: "missing_field", Message: "decision refused"}
	sealed := Unplaced(r, read).Seal(cause, Sealed{Topic: "dlq", Index: NoIndex, Value: r.Value, At: now, Consumer: "c"})
	for _, key := range []string{OriginalPartition, OriginalOffset, OriginalIndex} {
		if v, ok := headers(sealed)[key]; ok {
			t.Errorf("%s is %q, want none", key, v)
		}
	}
	sum := sha256.Sum256([]byte("decision-logs\x00\x00\x00\x00{\"a\":1}"))
	if want := hex.EncodeToString(sum[:]); IDOf(sealed) != want {
		t.Errorf("the id is %s, want %s", IDOf(sealed), want)
	}
	sealed.Partition, sealed.Offset, sealed.Timestamp = 2, 900, now.Add(time.Second)
	want := Dead{ID: IDOf(sealed), Cause: cause, FirstFailedAt: now, FailedAt: now,
		Origin: Origin{Topic: "decision-logs", Partition: NoPlace, Offset: NoPlace, Index: NoIndex, Timestamp: read}}
	if diff := cmp.Diff(want, OpenDead(sealed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again := Unplaced(r, read.Add(time.Hour)).Seal(cause, Sealed{Topic: "dlq", Index: NoIndex, Value: r.Value, At: now.Add(time.Hour), Consumer: "d"})
	if IDOf(again) != IDOf(sealed) {
		t.Error("the same decision has another id when it comes again")
	}
	sealed.Headers = append(sealed.Headers, kgo.RecordHeader{Key: OriginalPartition, Value: []byte("x")})
	if got := OpenDead(sealed).Origin; got.Topic != "dlq" || got.Offset != 900 {
		t.Errorf("a place that makes no sense counts as none: %+v", got)
	}
}
