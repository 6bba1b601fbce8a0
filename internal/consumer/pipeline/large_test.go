package pipeline

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/lanes"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// batchOf320 lets 320 decisions be opened at a time.
const batchOf320 = 320 * itemBytes

// manyOf is the value of a record of n decisions. Those at odd are null.
func manyOf(n int, odd ...int) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("d%04d", i)
	}
	logs := good(ids...)
	for _, i := range odd {
		logs[i] = "null"
	}
	return "[" + strings.Join(logs, ",") + "]"
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var z bytes.Buffer
	gz := gzip.NewWriter(&z)
	if _, err := gz.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return z.String()
}

func TestLargeRecord_IsOpenedInPortions(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]func(string) string{"plain": func(s string) string { return s }, "gzip": func(s string) string { return zipped(t, s) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(func(w *world) { w.config.BatchBytes = batchOf320 })
			w.db.refuse = func(id string) error {
				if id == "d0700" {
					return sqlstate("23514")
				}
				return nil
			}
			p := newPartition(t, recordsOf(5, logOf("before"), value(manyOf(1000, 3, 990)), logOf("behind")))
			if err := w.pipe.Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			w.settledAccount(t)
			if longest := slices.MaxFunc(w.db.writes, func(a, b []string) int { return len(a) - len(b) }); len(longest) > 320 || len(longest) < 300 {
				t.Errorf("one write had %d rows", len(longest))
			}
			equal(t, "dead letters", w.kafka.sent("dlq"), []string{"6/3 decode wrong_type 0", "6/700 data 23514 0", "6/990 decode wrong_type 0"})
			if n := len(w.db.rows); n != 1000-3+2 || w.told.homes()["row"] != n || !w.db.has("behind") || !w.db.has("d0999") {
				t.Errorf("%d rows, told of %v", n, w.told.homes())
			}
			if want := []int64{6, 7, 8}; !slices.Equal(p.committed, want) {
				t.Errorf("committed %v, want %v", p.committed, want)
			}
		})
	}
}

// The decoder panics on a decision of a later portion. The decisions of that portion and of later ones share a dead letter,
// which has the whole record. The other records are stored.
func TestLargeRecord_PanicInALaterPortion(t *testing.T) {
	t.Parallel()
	w := newWorld(func(w *world) { w.config.BatchBytes, w.config.MaxRefused = batchOf320, 1 })
	w.pipe.decodeValue = func(d *decision.Decoder, v []byte, n int64, from, most int) (decision.Record, *decision.Refusal) {
		if from > 320 {
			panic("a decision of the third portion")
		}
		return d.DecodeSome(v, n, from, most)
	}
	records := recordsOf(5, logOf("before"), manyOf(1000, 3, 330, 340), logOf("behind"))
	value := string(records[1].Value)
	p := newPartition(t, records)
	if err := w.pipe.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.settledAccount(t)
	equal(t, "dead letters", w.kafka.sent("dlq"), []string{"6/3 decode wrong_type 0", "6/ decode wrong_type 0", "6/ decode panic 0"})
	for i, n := range map[int]string{1: "2", 2: ""} {
		if got := headerOf(w.kafka.took[i], envelope.Refused); got != n {
			t.Errorf("%s has %q refused decisions, want %q", told(w.kafka.took[i]), got, n)
		}
	}
	if got := string(w.kafka.took[2].Value); got != value {
		t.Errorf("the dead letter has %d bytes, not the record's %d", len(got), len(value))
	}
	if h := w.told.homes(); h["row"] != 640-3+2 || h["dead_letter"] != 3+360 || !w.db.has("behind") {
		t.Errorf("homes %v", h)
	}
	if p.last() != 8 {
		t.Errorf("committed up to %d", p.last())
	}
}

// A large record that was left half-way is not committed. It is read again from its start.
func TestLargeRecord_LeftBetweenPortions(t *testing.T) {
	t.Parallel()
	w := newWorld(func(w *world) { w.config.BatchBytes = batchOf320 })
	record := recordsOf(5, manyOf(1000))
	p := newPartition(t, record)
	w.db.hook = func(context.Context) {
		if len(w.db.writes) == 2 {
			p.depart()
		}
	}
	if err := w.pipe.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.settledAccount(t)
	if len(w.db.rows) != 640 || p.last() != -1 {
		t.Fatalf("%d rows, committed up to %d", len(w.db.rows), p.last())
	}
	again := newPartition(t, record)
	if err := w.pipe.Run(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	w.settledAccount(t)
	if homes := w.told.homes(); len(w.db.rows) != 1000 || again.last() != 6 || homes["row"] != 1000 || homes["duplicate"] != 640 {
		t.Errorf("%d rows, committed up to %d, told of %v", len(w.db.rows), again.last(), homes)
	}
}

// One partition has a large record in hand, also during a hold. The others carry small records. With a large one they
// wait and do not open it.
func TestLargeRecord_OneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		s := &shelf{}
		s.write = func(_ context.Context, partition int32) error {
			if away.Load() && partition == 0 {
				return sqlstate("42501")
			}
			return nil
		}
		s.probe = func() error {
			if away.Load() {
				return sqlstate("42501")
			}
			return nil
		}
		w := newWorld(func(w *world) { w.config.BatchBytes, w.config.Turns = batchOf320, lanes.New(lanes.Alone(2)) })
		w.pipe.db = s
		values := []string{
			manyOf(1000), zipped(t, manyOf(1000)), // too many decisions, too many bytes
			zipped(t, `{"decision_id":"d","timestamp":"2026-03-01T12:00:00Z","input":"`+strings.Repeat("x", batchOf320)+`"}`),
			logOf("small"),
		}
		all := several(t, int32(len(values)), 0)
		ended := make([]chan error, len(all))
		for i, p := range all {
			p.batches = make(chan []*kgo.Record, 1)
			records := recordsOf(0, values[i])
			records[0].Partition = int32(i)
			p.batches <- records
			close(p.batches)
			ended[i] = make(chan error, 1)
			go func() { ended[i] <- w.pipe.Run(t.Context(), p) }()
			synctest.Wait() // the first has the first turn
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if held := w.told.held; len(held) != 1 || all[3].last() != 1 || all[1].last() != -1 || all[2].last() != -1 {
			t.Fatalf("holds %q; committed %d, %d, %d", held, all[1].last(), all[2].last(), all[3].last())
		}
		if w.told.taken != 320+1 {
			t.Errorf("%d decisions are open, want 320 of the first, and the small one", w.told.taken)
		}
		if err := w.pipe.Wedged(time.Second); err != nil {
			t.Errorf("waiting for a large record of another partition: %v", err)
		}
		all[2].depart() // given up while it waits
		synctest.Wait()
		if err := <-ended[2]; err != nil || all[2].last() != -1 {
			t.Errorf("given up: %v, committed %d", err, all[2].last())
		}
		away.Store(false)
		for _, i := range []int{0, 1, 3} {
			if err := <-ended[i]; err != nil || all[i].last() != 1 {
				t.Errorf("partition %d: %v, committed %d", i, err, all[i].last())
			}
		}
		w.settledAccount(t)
		if held, _ := w.config.Turns.Count(lanes.Default); held != 0 || len(w.pipe.larges[0])+len(w.pipe.larges[1]) != 0 {
			t.Errorf("%d turns and %d rights to a large record were never given back", held, len(w.pipe.larges[0])+len(w.pipe.larges[1]))
		}
	})
}

// A large record without a last home holds. The finished portions alone allow no commit.
func TestLargeRecord_NoHomeForTheLast(t *testing.T) {
	t.Parallel()
	w := newWorld(func(w *world) { w.config.BatchBytes = batchOf320 })
	p := newPartition(t, recordsOf(0, manyOf(1000)))
	b, err := p.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := w.pipe.begin(p, &turn{})
	head, err := c.decode(t.Context(), b)
	if err != nil || len(c.items) != 320 {
		t.Fatalf("%d items, %v", len(c.items), err)
	}
	for _, it := range c.items {
		it.entry.Give(home.Row)
	}
	var homeless *home.HomelessError
	if _, err := head.Settle(); !errors.As(err, &homeless) || homeless.Decisions != 680 {
		t.Errorf("settled with %v", err)
	}
	c.finish(nil)
}

// The failed write of a portion may still read the record when the last portion has its homes.
func TestLargeRecord_IsNotReleasedAfterAFailedWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for fails, want := range map[int]bool{0: true, 2: false} {
			writes := 0
			s := &keeper{keep: func([]Row) error {
				if writes++; writes == fails {
					return sqlstate("08006")
				}
				return nil
			}}
			w := newWorld(func(w *world) { w.config.BatchBytes = batchOf320 })
			w.pipe.db = s
			records := recordsOf(0, manyOf(1000))
			p := newPartition(t, records)
			w.run(t, p)
			if released := records[0] == nil; released != want || p.last() != 1 {
				t.Errorf("write %d fails: released %v, committed %d", fails, released, p.last())
			}
		}
	})
}
