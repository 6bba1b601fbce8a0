package replay

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
)

// of makes a parked record that was first read from this topic.
func of(topic string, r *kgo.Record) *kgo.Record {
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: envelope.OriginalTopic, Value: []byte(topic)})
	return r
}

func urgentFirst(topic string) bool { return topic == "urgent" }

func TestWindow_UrgentFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.First = urgentFirst
		l := newLog(
			of("logs", due(0, time.Second)), of("urgent", due(1, time.Second)), due(2, time.Second), of("urgent", due(3, time.Hour)),
			of("logs", due(4, 0)), of("urgent", due(5, time.Second)), of("logs", due(6, time.Second)),
		)
		w := New(cfg, l)
		next := func(want []int64, commit int64) {
			t.Helper()
			b, err := w.Fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := offsets(b); !slices.Equal(got, want) {
				t.Errorf("let through %v, want %v", got, want)
			}
			if got := settle(t, b); got != commit {
				t.Errorf("may commit %d, want %d", got, commit)
			}
		}
		next([]int64{4}, -1)
		w.cfg.BatchRecords = 3
		time.Sleep(time.Second)
		next([]int64{0, 1, 5}, 2) // two urgent ones and the first of the others, in offset order
		w.cfg.BatchBytes = 150
		next([]int64{2}, 3)
		next([]int64{6}, 3)
		next([]int64{3}, 7)
	})
}

// TestWindow_FirstNeedsAProof has a stranger write the header.
func TestWindow_FirstNeedsAProof(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys, err := envelope.ParseKeys("a key that is long enough to be one")
		if err != nil {
			t.Fatal(err)
		}
		cfg := config()
		cfg.First, cfg.Keys = urgentFirst, keys
		w := New(cfg, newLog(due(0, 0), of("urgent", due(1, 0))))
		if err := w.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.cfg.BatchRecords = 1
		b, err := w.Fetch(t.Context())
		if err != nil || !slices.Equal(offsets(b), []int64{0}) {
			t.Errorf("let through %v, %v", offsets(b), err)
		}
	})
}

// TestWindow_NothingStarves has random logs in which most records go before others. Each record is let through once,
// after no more others than the look-ahead has. No due record of those that go first is left while another goes.
func TestWindow_NothingStarves(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			cfg := config()
			cfg.Lookahead, cfg.BatchRecords, cfg.First = 1+rng.IntN(30), 1+rng.IntN(8), urgentFirst
			if rng.IntN(2) == 0 {
				cfg.BatchBytes = 100 * int64(1+rng.IntN(6))
			}
			var rs []*kgo.Record
			first := map[int64]bool{}
			for i := range int64(150) {
				r := due(i, time.Duration(rng.IntN(2)*rng.IntN(300))*time.Second)
				if rng.IntN(4) > 0 {
					r, first[i] = of("urgent", r), true
				}
				rs = append(rs, r)
			}
			w := New(cfg, newLog(rs...))
			seen, passed, committed := map[int64]bool{}, map[int64]int{}, int64(-1)
			for len(seen) < len(rs) {
				b, err := w.Fetch(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				out := offsets(b)
				if !slices.IsSorted(out) {
					t.Fatalf("seed %d: let through %v", seed, out)
				}
				other := slices.ContainsFunc(out, func(o int64) bool { return !first[o] })
				for _, p := range w.waiting {
					if p.due.After(time.Now()) {
						continue
					}
					if passed[p.record.Offset] += len(out); passed[p.record.Offset] > cfg.Lookahead {
						t.Fatalf("seed %d: %d records went before offset %d, the look-ahead is %d", seed, passed[p.record.Offset], p.record.Offset, cfg.Lookahead)
					}
					if other && first[p.record.Offset] {
						t.Fatalf("seed %d: %v went before offset %d", seed, out, p.record.Offset)
					}
				}
				for _, r := range b.Records() {
					if at := envelope.Due(r, cfg.MaxBackoff); seen[r.Offset] || at.After(time.Now()) {
						t.Fatalf("seed %d: offset %d twice or before its time", seed, r.Offset)
					}
					seen[r.Offset] = true
				}
				committed = settle(t, b)
				for o := range committed {
					if !seen[o] {
						t.Fatalf("seed %d: may commit %d but %d still waits", seed, committed, o)
					}
				}
			}
			if committed != int64(len(rs)) {
				t.Fatalf("seed %d: ended at %d", seed, committed)
			}
		})
	}
}
