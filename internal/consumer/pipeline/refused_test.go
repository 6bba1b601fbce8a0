package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// heldBy returns the decisions of a shared dead letter as "index value".
func heldBy(t *testing.T, r *kgo.Record) (all []string) {
	t.Helper()
	dead := envelope.OpenDead(r)
	var d decision.Decoder
	parts, ok := d.Rest(r.Value, 1<<20)
	if !ok || dead.Refused != len(parts) || dead.Origin.Index != envelope.NoIndex || dead.ID != envelope.IDOf(r) {
		t.Fatalf("no rest: %q, %d decisions, %+v", r.Value, dead.Refused, dead.Origin)
	}
	for _, p := range parts {
		all = append(all, fmt.Sprintf("%d %s", p.Index, p.Value))
	}
	return all
}

func limited(n int) func(*world) { return func(w *world) { w.config.MaxRefused = n } }

func TestMaxRefused_TheRestIsOneDeadLetter(t *testing.T) {
	t.Parallel()
	array := "[" + strings.Join([]string{logOf("a"), `0`, `{"decision_id":"x"}`, `null`, logOf("b"), `"1"`, `2`}, ",") + "]"
	lines := strings.Join([]string{logOf("a"), `0`, `{"decision_id":"x"}`, `torn`, logOf("b"), `}`, `2`}, "\n")
	for name, c := range map[string]struct {
		value, code string
		held        []string
	}{
		"array": {array, "wrong_type", []string{"3 null", `5 "1"`, "6 2"}},
		"gzip":  {zipped(t, array+strings.Repeat(" ", 4000)), "wrong_type", []string{"3 null", `5 "1"`, "6 2"}},
		"lines": {lines, "syntax", []string{"3 torn", "5 }", "6 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(limited(2))
			p := newPartition(t, recordsOf(5, c.value, logOf("behind")))
			if err := w.pipe.Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			w.settledAccount(t)
			equal(t, "dead letters", w.kafka.sent("dlq"), []string{"5/1 decode wrong_type 0", "5/2 decode missing_field 0", "5/ decode " + c.code + " 0"})
			last := w.kafka.took[2]
			equal(t, "held", heldBy(t, last), c.held)
			if decision.IsGzip(last.Value) != (name == "gzip") || string(last.Key) != "k" {
				t.Errorf("forwarded as %q with key %q", last.Value, last.Key)
			}
			if homes := w.told.homes(); homes["dead_letter"] != 5 || homes["row"] != 3 {
				t.Errorf("told of %v", homes)
			}
			if p.last() != 7 {
				t.Errorf("committed up to %d", p.last())
			}
		})
	}
}

func TestMaxRefused_LinesBehindBracket(t *testing.T) {
	t.Parallel()
	w := newWorld(limited(2))
	p := newPartition(t, recordsOf(5, strings.Join([]string{`[oops`, logOf("a"), logOf("b"), `[1,2]`, `[3]`, `[torn`, `2`}, "\n")))
	if err := w.pipe.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.settledAccount(t)
	equal(t, "dead letters", w.kafka.sent("dlq"), []string{"5/0 decode syntax 0", "5/3 decode wrong_type 0", "5/ decode wrong_type 0"})
	equal(t, "held", heldBy(t, w.kafka.took[2]), []string{"4 [3]", "5 [torn", "6 2"})
	if homes := w.told.homes(); homes["dead_letter"] != 5 || homes["row"] != 2 {
		t.Errorf("told of %v", homes)
	}
}

func TestMaxRefused_OneMoreIsForwardedAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(limited(2))
	p := newPartition(t, recordsOf(5, `[0,1,2]`, `[3,4]`, `[5,6,7,8]`))
	if err := w.pipe.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.settledAccount(t)
	equal(t, "dead letters", w.kafka.sent("dlq"), []string{"5/0 decode wrong_type 0", "5/1 decode wrong_type 0", "5/2 decode wrong_type 0",
		"6/0 decode wrong_type 0", "6/1 decode wrong_type 0", "7/0 decode wrong_type 0", "7/1 decode wrong_type 0", "7/ decode wrong_type 0"})
}

// Rows that the table refuses are forwarded alone, in any number. Only that way each is found by its id.
func TestMaxRefused_DataErrorsStayAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(limited(1))
	w.db.refuse = func(string) error { return sqlstate("23514") }
	p := newPartition(t, recordsOf(5, "["+strings.Join(good("a", "b", "c"), ",")+"]"))
	if err := w.pipe.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.settledAccount(t)
	equal(t, "dead letters", w.kafka.sent("dlq"), []string{"5/0 data 23514 0", "5/1 data 23514 0", "5/2 data 23514 0"})
}

func TestMaxRefused_LargeRecordIsOneDeadLetter(t *testing.T) {
	t.Parallel()
	odd := []int{0, 10, 300, 330, 500, 650, 999}
	w := newWorld(limited(3), func(w *world) { w.config.BatchBytes = batchOf320 })
	p := newPartition(t, recordsOf(5, zipped(t, manyOf(1000, odd...)), "[0,1,2,3,4]", logOf("behind")))
	if err := w.pipe.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.settledAccount(t)
	equal(t, "dead letters", w.kafka.sent("dlq")[:4], []string{"5/0 decode wrong_type 0", "5/10 decode wrong_type 0", "5/300 decode wrong_type 0", "5/ decode wrong_type 0"})
	equal(t, "held", heldBy(t, w.kafka.took[3]), []string{"330 null", "500 null", "650 null", "999 null"})
	equal(t, "held of the next", heldBy(t, w.kafka.took[7]), []string{"3 3", "4 4"})
	if homes := w.told.homes(); homes["dead_letter"] != 12 || homes["row"] != 994 || p.last() != 8 {
		t.Errorf("told of %v, committed up to %d", homes, p.last())
	}
}

// A large record with whole portions of refused decisions is left half-way and read again.
func TestMaxRefused_LargeRecordLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(limited(3), func(w *world) { w.config.BatchBytes = batchOf320 })
	value := "[" + strings.Repeat("0,", 900) + logOf("last") + ",0]"
	p := newPartition(t, recordsOf(5, value))
	w.db.hook = func(context.Context) { p.depart() }
	w.db.refuse = func(string) error { return sqlstate("53300") }
	if err := w.pipe.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.settledAccount(t)
	if p.last() != -1 {
		t.Fatalf("committed up to %d", p.last())
	}
	w.db.hook, w.db.refuse = nil, nil
	if err := w.pipe.Run(t.Context(), newPartition(t, recordsOf(5, value))); err != nil {
		t.Fatal(err)
	}
	w.settledAccount(t)
	last := w.kafka.took[len(w.kafka.took)-1]
	if held := heldBy(t, last); len(held) != 898 || held[897] != "901 0" {
		t.Errorf("%d held", len(held))
	}
}

func TestMaxRefused_SpooledTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(limited(1))
	w.kafka.fail = func(r *kgo.Record) error {
		if len(r.Value) > 2 {
			return errTooLarge
		}
		return nil
	}
	p := newPartition(t, recordsOf(5, `[0,1,2,3]`))
	if err := w.pipe.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.settledAccount(t)
	if homes := w.told.homes(); homes["spooled"] != 3 || homes["dead_letter"] != 1 || len(w.spool.oversize) != 1 {
		t.Fatalf("told of %v", homes)
	}
	equal(t, "held", heldBy(t, w.spool.oversize[0]), []string{"1 1", "2 2", "3 3"}) // the bare record says so too
}

func TestRests_NoLargerThanTheRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(limited(1))
	c := &carrier{process: &w.pipe.process}
	var entries [8]home.Entry
	var shared []refusedPart
	for i := range entries {
		shared = append(shared, refusedPart{&entries[i], decision.Part{Index: i + 1, Value: []byte(strings.Repeat("x", 100*i+1)), Err: &decision.Refusal{Reason: decision.Syntax}}})
	}
	for _, room := range []int{0, 40, 1 << 20} {
		env := envelope.Open(&kgo.Record{Topic: "decision-logs", Value: append([]byte{0x1f, 0x8b}, make([]byte, room)...)})
		var places []int
		items := c.rests(&env, shared, true)
		for _, it := range items {
			if it.shared == nil {
				places = append(places, it.index)
				continue
			}
			if len(it.value) > len(env.Record.Value) {
				t.Errorf("%d bytes are larger than the record", len(it.value))
			}
			for _, h := range it.shared {
				places = append(places, h.part.Index)
			}
		}
		if !slices.Equal(places, []int{1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("room %d: places %v", room, places)
		}
		if one := len(items) == 1; one != (room == 1<<20) {
			t.Errorf("room %d: %d letters", room, len(items))
		}
	}
}
