package verify

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// shared makes a record of refused decisions, the truth about it, and the dead letter that most of them share.
func shared(w *world, value string, alone int) *kgo.Record {
	r := &kgo.Record{Topic: source, Partition: 1, Offset: 20, Value: []byte(value), Key: []byte("k")}
	w.truth.Add(DecisionsOf(r, 1<<20)...)
	w.ev.Committed[in(1)], w.ev.Ends[in(1)] = 21, 21
	read, _ := decision.Decode(r.Value, 1<<20)
	parts := read.Parts[alone:]
	rest := decision.AppendRest(nil, decision.OnLines(r.Value), func(yield func(int, []byte) bool) {
		for i := range parts {
			if !yield(parts[i].Index, parts[i].Value) {
				return
			}
		}
	})
	var codes iter.Seq[string] = func(yield func(string) bool) {
		for i := range parts {
			if !yield(string(parts[i].Err.Reason)) {
				return
			}
		}
	}
	env := envelope.Open(r)
	for i := range alone {
		one := env.Seal(envelope.Cause{Kind: envelope.Decode, Code: string(read.Parts[i].Err.Reason)}, envelope.Sealed{Topic: dlq, Index: i, Value: read.Parts[i].Value, At: noon})
		w.ev.Forwarded = append(w.ev.Forwarded, AllForwardedOf(one, home.DeadLetter, dlq)...)
	}
	return env.Seal(envelope.Together(codes, parts[0].Index, parts[len(parts)-1].Index), envelope.Sealed{Topic: dlq, Index: envelope.NoIndex, Value: rest, At: noon, Refused: len(parts)})
}

func TestAllForwarded_ARestIsAHomeForEach(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"array": `[0,{"decision_id":"x"},null,"1",{"a":1}]`, "lines": "{\"a\":1}\n0\ntorn\n}\n2",
		"behind a bracket": "[oops\n{\"a\":1}\n[torn\n}\n2"} {
		w := perfect()
		r := shared(w, value, 1)
		w.ev.Forwarded = append(w.ev.Forwarded, AllForwardedOf(r, home.DeadLetter, dlq)...)
		summary := w.decide()
		for _, id := range []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7"} {
			if v := summary.Of(id); v.State == Broken {
				t.Errorf("%s: %v", name, v)
			}
		}
	}
}

// A rest without one of its decisions is not a home for that decision.
func TestAllForwarded_ARestThatLacksOne(t *testing.T) {
	t.Parallel()
	w := perfect()
	r := shared(w, `[0,{"decision_id":"x"},null,"1"]`, 1)
	whole := AllForwardedOf(r, home.DeadLetter, dlq)
	if len(whole) != 3 || whole[0].Index != 1 || whole[0].Code != "missing_field" || whole[2].Code != "wrong_type" {
		t.Fatalf("%+v", whole)
	}
	w.ev.Forwarded = append(w.ev.Forwarded, slices.Delete(whole, 1, 2)...)
	if v := w.decide().Of("I1"); v.State != Broken || !strings.Contains(fmt.Sprint(v.Found), "committed and in no home") {
		t.Errorf("%v", v)
	}
	for name, spoil := range map[string]func(){
		"another value": func() { r.Value = []byte("[\n0]") },
		"no value":      func() { r.Value = nil },
		"no rest":       func() { r.Value = []byte("{}") },
	} {
		spoil()
		if all := AllForwardedOf(r, home.DeadLetter, dlq); len(all) != 1 || all[0].Index != envelope.NoIndex {
			t.Errorf("%s: %d", name, len(all))
		}
	}
}

// TestWhole_EarlierReleases: an earlier release read a value that begins with a bracket as an array, and refused it as a whole.
// Today it is lines. Its one dead letter is the home of each of them.
func TestWhole_EarlierReleases(t *testing.T) {
	t.Parallel()
	value := []byte("[2026-03-01] starting\n" + `{"decision_id":"a","timestamp":"2026-03-01T12:00:00Z"}` + "\n" + `{"decision_id":"b"}`)
	record := &kgo.Record{Topic: source, Partition: 1, Offset: 4, Key: []byte("k"), Value: value}
	e := envelope.Open(record)
	letter := e.Seal(envelope.Cause{Kind: envelope.Decode, Code: "syntax"}, envelope.Sealed{Topic: dlq, Index: envelope.NoIndex, Value: value})
	truth := NewTruth()
	if ds := DecisionsOf(record, 1<<20); len(ds) != 3 {
		t.Fatalf("%d decisions", len(ds))
	} else {
		truth.Add(ds...)
	}
	for name, c := range map[string]struct {
		live bool
		i5   State
	}{"upgraded": {true, Warned}, "always this release": {false, Broken}} {
		ev := &Evidence{Live: c.live, Settled: true, Committed: Offsets{in(1): 5}, Ends: Offsets{in(1): 5}, Forwarded: AllForwardedOf(letter, home.DeadLetter, dlq)}
		s := DecidePart(ev, truth)
		for id, want := range map[string]State{"I1": Held, "I3": Held, "I4": Held, "I5": c.i5, "I6": Held} {
			if v := s.Of(id); v.State != want {
				t.Errorf("%s: %v", name, v)
			}
		}
	}
	letter.Value = append([]byte("["), value...)
	ev := &Evidence{Live: true, Settled: true, Committed: Offsets{in(1): 5}, Ends: Offsets{in(1): 5}, Forwarded: AllForwardedOf(letter, home.DeadLetter, dlq)}
	if v := DecidePart(ev, truth).Of("I1"); v.State != Broken {
		t.Errorf("another value is a home: %v", v)
	}
}
