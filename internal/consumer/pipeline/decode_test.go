package pipeline

import (
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"docket/internal/record/decision"
)

func TestDecode_OneBadDecisionOfARecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var z bytes.Buffer
		gz := gzip.NewWriter(&z)
		_, _ = gz.Write([]byte(`{"decision_id":"z","timestamp":7}`))
		_ = gz.Close()
		rs := recordsOf(0, "", "{broken", "["+logOf("a")+", 7 ,"+logOf("b")+"]", logOf("c")+"\n{\"timestamp\":3}\n"+logOf("d"), logOf("e"), z.String())
		rs[0].Value = nil
		w, p := newWorld(), newPartition(t, rs)
		w.run(t, p)
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			if !w.db.has(id) {
				t.Errorf("%s has no row", id)
			}
		}
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{
			"0/ decode empty 0", "1/ decode syntax 0", "2/1 decode wrong_type 0", "3/1 decode missing_field 0", "5/0 decode wrong_type 0",
		})
		values := []string{"", "{broken", "7", `{"timestamp":3}`, z.String()}
		for i, r := range w.kafka.took {
			if string(r.Value) != values[i] || (i == 0) != (r.Value == nil) {
				t.Errorf("dead letter %d carries %q, want %q byte for byte", i, r.Value, values[i])
			}
			if string(r.Key) != "k" {
				t.Errorf("dead letter %d has key %q", i, r.Key)
			}
		}
		if p.last() != 6 {
			t.Errorf("committed %d", p.last())
		}
	})
}

func TestDecode_InflatesToSeveralBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.BatchBytes = 10 * (itemBytes + 400) })
		var values []string
		for _, id := range named(40) {
			var z bytes.Buffer
			gz := gzip.NewWriter(&z)
			_, _ = gz.Write([]byte(logOf(id) + strings.Repeat(" ", 1000)))
			_, _ = gz.Write([]byte("\n" + logOf(id+"b") + "\n" + logOf(id+"c")))
			_ = gz.Close()
			values = append(values, z.String())
		}
		p := newPartition(t, recordsOf(0, values...))
		w.run(t, p)
		if len(w.db.rows) != 120 || p.last() != 40 {
			t.Errorf("%d rows, committed %d", len(w.db.rows), p.last())
		}
		for _, write := range w.db.writes {
			if len(write) > 18 {
				t.Errorf("%d decisions were in hand at once", len(write))
			}
		}
		if !slices.IsSorted(p.committed) || len(p.committed) != len(w.db.writes) {
			t.Errorf("commits %v after %d writes", p.committed, len(w.db.writes))
		}
	})
}

func TestDecode_PanicDeadLettersOneRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, logOf("a"), "boom", logOf("b")))
		w.pipe.decodeValue = func(d *decision.Decoder, v []byte, n int64, from, most int) (decision.Record, *decision.Refusal) {
			if string(v) == "boom" {
				panic("at the disco")
			}
			return d.DecodeSome(v, n, from, most)
		}
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/ decode panic 0"})
		if !w.db.has("a") || !w.db.has("b") || p.last() != 3 {
			t.Errorf("neighbours: %v, committed %d", w.db.rows, p.last())
		}
	})
}
