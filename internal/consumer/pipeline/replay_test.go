package pipeline

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

type kgoRecord = kgo.Record

func headerOf(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

func replayer(w *world) { w.config.Replay = true }

// parkedOf makes records of the parking topic that carry a history.
func parkedOf(attempt int, ids ...string) []*kgo.Record {
	rs := recordsOf(0, good(ids...)...)
	for i, r := range rs {
		src := &kgo.Record{Topic: "decision-logs", Partition: 7, Offset: 100 + int64(i), Key: r.Key, Value: r.Value}
		sealed := envelope.Open(src).Seal(envelope.Cause{Kind: envelope.Transient, Code: "08006"}, envelope.Sealed{
			Topic: "decision-logs", Index: 0, Value: r.Value, At: time.Now(), Attempt: attempt, Consumer: "c",
		})
		sealed.Offset = r.Offset
		rs[i] = sealed
	}
	return rs
}

func TestReplay_KeepsTheOrigin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(replayer)
		w.db.refuse = func(id string) error {
			if id == "b" {
				return sqlstate("23514")
			}
			return nil
		}
		rs := parkedOf(2, "a", "b")
		p := newPartition(t, rs)
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"101/0 data 23514 2"})
		if headerOf(w.kafka.took[0], envelope.DeadLetterID) != headerOf(rs[1], envelope.DeadLetterID) {
			t.Error("the dead-letter id changed on the way")
		}
		if p.last() != 2 {
			t.Errorf("committed %d", p.last())
		}
	})
}

func TestReplay_OnlyTheBadRecordSpendsAnAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(replayer)
		w.db.refuse = func(id string) error {
			if id == "x" {
				return sqlstate("40001")
			}
			return nil
		}
		from := time.Now()
		w.run(t, newPartition(t, parkedOf(1, "a", "x", "b")))
		equal(t, "parked", w.kafka.sent("parking"), []string{"101/0 transient 40001 2"})
		if h := w.told.homes(); h["row"] != 2 {
			t.Errorf("homes %v", h)
		}
		ms, err := strconv.ParseInt(headerOf(w.kafka.took[0], envelope.NotBefore), 10, 64)
		if err != nil || time.UnixMilli(ms).Sub(from) < 4*time.Minute || time.UnixMilli(ms).Sub(from) > 5*time.Minute {
			t.Errorf("not before %v after the start, want about 4 min: %v", time.UnixMilli(ms).Sub(from), err)
		}
	})
}

func TestReplay_OutageSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"08006", "57P03", "53300", "57014"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(replayer)
			back := time.Now().Add(time.Hour)
			w.db.away = func() error {
				if time.Now().Before(back) {
					return sqlstate(code)
				}
				return nil
			}
			p := newPartition(t, parkedOf(4, "a", "b"))
			w.run(t, p)
			if h := w.told.homes(); h["row"] != 2 || len(w.kafka.took) != 0 || p.last() != 2 {
				t.Errorf("%s: homes %v, published %d", code, h, len(w.kafka.took))
			}
			equal(t, "held", w.told.held, []string{"database_away " + code})
		})
	}
}

func TestReplay_FiveAttemptsAreFiveTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rs := parkedOf(0, "x")
		tries := 0
		for round := range 5 {
			w := newWorld(replayer)
			w.db.refuse = func(string) error { return sqlstate("40P01") }
			w.run(t, newPartition(t, rs))
			tries++
			if round < 4 {
				equal(t, "parked", w.kafka.sent("parking"), []string{fmt.Sprintf("100/0 transient 40P01 %d", round+1)})
			} else {
				equal(t, "exhausted", w.kafka.sent("parking-dlq"), []string{"100/0 exhausted 40P01 5"})
			}
			next := w.kafka.took[0]
			next.Topic, next.Offset = "decision-logs", 0
			rs = []*kgo.Record{next}
		}

		w := newWorld(replayer) // a record at the maximum is not tried again
		w.run(t, newPartition(t, parkedOf(5, "x")))
		equal(t, "exhausted", w.kafka.sent("parking-dlq"), []string{"100/0 exhausted 08006 5"})
		if len(w.db.writes) != 0 {
			t.Errorf("it was tried once more: %v", w.db.writes)
		}
	})
}

func TestReplay_KeepsTheIndex(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.db.away = func() error { return sqlstate("08006") }
		w.run(t, newPartition(t, recordsOf(40, "["+logOf("a")+","+logOf("b")+"]")))
		equal(t, "parked", w.kafka.sent("parking"), []string{"40/0 transient 08006 0", "40/1 transient 08006 0"})
		if v := string(w.kafka.took[1].Value); v != logOf("b") {
			t.Errorf("forwarded %q", v)
		}
		rs := w.kafka.took
		for i, r := range rs {
			r.Topic, r.Offset = "decision-logs", int64(i)
		}
		r := newWorld(replayer)
		r.db.refuse = func(id string) error {
			if id == "b" {
				return sqlstate("22P02")
			}
			return nil
		}
		r.run(t, newPartition(t, rs))
		equal(t, "dead letters", r.kafka.sent("dlq"), []string{"40/1 data 22P02 0"})
	})
}

// TestCarry_LosesNothingUnderRandomFaults runs whole worlds under seeded faults. Every committed record has a home.
// At the end every decision has its row, or is a dead letter exactly if it is bad.
func TestCarry_LosesNothingUnderRandomFaults(t *testing.T) {
	t.Parallel()
	codes := []string{"08006", "57P01", "40001", "53200", "42P01", "25006", "53100", "08P01", "0A000"}
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			w := newWorld(func(w *world) { w.config.ParkBatches = rng.IntN(4) })
			healed := time.Now().Add(time.Duration(rng.IntN(600)) * time.Second)
			flaky := func(p float64) bool { return time.Now().Before(healed) && rng.Float64() < p }
			chance := []float64{0, 0.1, 0.5, 0.9}[rng.IntN(4)]
			w.db.away = func() error {
				if flaky(chance) {
					return sqlstate(codes[rng.IntN(len(codes))])
				}
				return nil
			}
			bad := map[string]bool{}
			w.db.refuse = func(id string) error {
				if bad[id] {
					return sqlstate("23514")
				}
				return nil
			}
			pub, disk := rng.Float64(), rng.Float64()
			w.kafka.fail = func(*kgo.Record) error {
				if flaky(pub) {
					return fmt.Errorf("no broker")
				}
				return nil
			}
			w.spool.fail = func() error {
				if flaky(disk) {
					return fmt.Errorf("no space")
				}
				return nil
			}
			var batches [][]*kgo.Record
			ids := named(60)
			for i := 0; i < len(ids); i += 10 {
				for _, id := range ids[i : i+10] {
					bad[id] = rng.IntN(12) == 0
				}
				batches = append(batches, recordsOf(int64(i), good(ids[i:i+10]...)...))
			}
			p := newPartition(t, batches...)
			w.run(t, p)
			if p.last() != 60 {
				t.Fatalf("seed %d: committed %d", seed, p.last())
			}
			at := map[string]home.Home{}
			for _, r := range append(append([]*kgo.Record{}, w.kafka.took...), w.spool.lines...) {
				o, _ := strconv.Atoi(headerOf(r, envelope.OriginalOffset))
				to := map[string]home.Home{"dlq": home.DeadLetter, "parking": home.Parked}[r.Topic]
				at[ids[o]] = to
			}
			for _, id := range ids {
				_, forwarded := at[id]
				if w.db.has(id) == forwarded {
					t.Fatalf("seed %d: %s has a row: %v, was forwarded: %v", seed, id, w.db.has(id), forwarded)
				}
				if at[id] == home.DeadLetter && !bad[id] {
					t.Fatalf("seed %d: %s is good and was dead-lettered", seed, id)
				}
			}
		})
	}
}
