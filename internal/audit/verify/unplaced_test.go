package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// collected makes a dead letter as a collector writes it.
func collected(kind envelope.Kind) *kgo.Record {
	e := envelope.Unplaced(&kgo.Record{Topic: source, Value: []byte(`{"a":1}`)}, noon)
	return e.Seal(envelope.Cause{Kind: kind, Code: "missing_field"}, envelope.Sealed{Topic: dlq, Index: envelope.NoIndex, Value: []byte(`{"a":1}`), At: noon, Consumer: "docket/one"})
}

func TestUnplaced_LetterOfACollector(t *testing.T) {
	t.Parallel()
	for name, spans := range map[string]map[Partition]Span{"all is known": nil, "a part is known": {in(0): {0, 20}, in(1): {0, 20}}} {
		w := perfect()
		w.truth.Spans = spans
		w.ev.Forwarded = append(w.ev.Forwarded, ForwardedOf(collected(envelope.Decode), home.DeadLetter, dlq))
		r := w.decide()
		for _, id := range []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7"} {
			if v := r.Of(id); v.State == Broken {
				t.Errorf("%s: %v", name, v)
			}
		}
	}
}

// TestForwardedBy_Unproven: a stranger's record is not a home for the record that it names, and is reported.
func TestForwardedBy_Unproven(t *testing.T) {
	t.Parallel()
	keys, err := envelope.ParseKeys(strings.Repeat("a key of 8", 4))
	if err != nil {
		t.Fatal(err)
	}
	r := collected(envelope.Decode)
	f := ForwardedBy(keys, r, home.DeadLetter, dlq)
	if !f.Unproven || !f.NoOrigin || f.Unplaced || f.Code != "" || f.Topic != "" {
		t.Errorf("believed: %+v", f)
	}
	w := perfect()
	w.ev.Forwarded = append(w.ev.Forwarded, f)
	if v := w.decide().Of("I4"); v.State != Broken || !strings.Contains(fmt.Sprint(v.Found), "nothing proves") {
		t.Errorf("%v", v)
	}
	keys.Sign(r)
	if f := ForwardedBy(keys, r, home.DeadLetter, dlq); f.Unproven || !f.Unplaced {
		t.Errorf("not believed: %+v", f)
	}
}

func TestUnplaced_OtherLetterIsABreach(t *testing.T) {
	t.Parallel()
	wrongID := collected(envelope.Decode)
	wrongID.Value = []byte(`{"a":2}`)
	half := collected(envelope.Decode)
	half.Headers = append(half.Headers, kgo.RecordHeader{Key: envelope.OriginalPartition, Value: []byte("3")})
	for name, f := range map[string]Forwarded{
		"of the table":                       ForwardedOf(collected(envelope.Data), home.DeadLetter, dlq),
		"in parking":                         ForwardedOf(collected(envelope.Decode), home.Parked, parking),
		"with another value than its id":     ForwardedOf(wrongID, home.DeadLetter, dlq),
		"with a partition and no offset":     ForwardedOf(half, home.DeadLetter, dlq),
		"without the topic it was meant for": ForwardedOf(&kgo.Record{Headers: []kgo.RecordHeader{{Key: envelope.FailureKind, Value: []byte("decode")}}}, home.DeadLetter, dlq),
	} {
		w := perfect()
		w.ev.Forwarded = append(w.ev.Forwarded, f)
		if v := w.decide().Of("I4"); v.State != Broken {
			t.Errorf("%s: %v", name, v)
		}
	}
}
