package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/record/envelope"
)

// denied is the decision of logOf with another payload.
func denied(id string) string { return strings.Replace(logOf(id), "true", "false", 1) }

// oddAt makes the table refuse records that were first read at these offsets.
func oddAt(err error, offsets ...int64) func(Row) error {
	return func(r Row) error {
		for _, at := range offsets {
			if r.Offset == at {
				return err
			}
		}
		return nil
	}
}

// The earlier of two with one identity is parked alone. The later waits behind it and does not take its row.
func TestBehind_TheLaterWaits(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"park once": sqlstate("23503"), "hold unless alone": sqlstate("22P03"), "await": beforeCut(), "one odd record": sqlstate("25006"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.db.odd = oddAt(err, 1)
				w.run(t, newPartition(t, recordsOf(0, logOf("b"), logOf("a"), logOf("c"), denied("a"), logOf("d"))))
				_, code, _ := strings.Cut(err.Error(), " ")
				equal(t, "parked", w.kafka.sent("parking"), []string{"1/0 transient " + code + " 0", "3/0 transient " + code + " 0"})
				equal(t, "dead letters", w.kafka.sent("dlq"), nil)
				if h := w.told.homes(); h["row"] != 3 || w.db.has("a") {
					t.Fatalf("homes %v", h)
				}

				w.db.odd = nil
				later := newWorld(replayer)
				later.db.rows = w.db.rows
				for i, r := range w.kafka.took {
					r.Topic, r.Offset = "decision-logs", int64(i)
				}
				later.run(t, newPartition(t, w.kafka.took))
				equal(t, "dead letters of the replay", later.kafka.sent("dlq"), []string{"3/0 conflict id_conflict 0"})
			})
		})
	}
}

// The later of two waits also if its portion was not written yet.
func TestBehind_AcrossPortions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pipe.portion.most = 2
		w.db.odd = oddAt(sqlstate("23503"), 1)
		w.run(t, newPartition(t, recordsOf(0, logOf("b"), logOf("a"), logOf("c"), denied("a"), logOf("d"))))
		equal(t, "parked", w.kafka.sent("parking"), []string{"1/0 transient 23503 0", "3/0 transient 23503 0"})
		if h := w.told.homes(); h["row"] != 3 {
			t.Errorf("homes %v", h)
		}
	})
}

// The later of two waits also if it is in a later portion of a large record.
func TestBehind_AcrossPortionsOfARecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.BatchBytes = batchOf320 })
		w.db.odd = func(r Row) error {
			if strings.Contains(string(r.Log.Raw), "early") {
				return sqlstate("23503")
			}
			return nil
		}
		ids := make([]string, 1000)
		for i := range ids {
			ids[i] = fmt.Sprintf("d%04d", i)
		}
		logs := good(ids...)
		for i, path := range map[int]string{10: "early", 700: "late", 800: "later"} {
			logs[i] = strings.Replace(logOf("twin"), "a/b", path, 1)
		}
		w.run(t, newPartition(t, recordsOf(5, "["+strings.Join(logs, ",")+"]")))
		equal(t, "parked", w.kafka.sent("parking"), []string{"5/10 transient 23503 0", "5/700 transient 23503 0", "5/800 transient 23503 0"})
		if h := w.told.homes(); h["row"] != 997 || w.db.has("twin") {
			t.Errorf("homes %v", h)
		}
	})
}

// The later spends no attempt of its own, and is not due before the earlier.
func TestBehind_NoAttemptIsSpent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(replayer)
		rs := parkedOf(3, "b", "a", "c")
		later := parkedOf(0, "x", "x", "x", "a")[3]
		later.Value = []byte(denied("a"))
		w.db.odd = oddAt(sqlstate("22P03"), 101)
		w.run(t, newPartition(t, append(rs, later)))
		equal(t, "parked", w.kafka.sent("parking"), []string{"101/0 transient 22P03 4", "103/0 transient 22P03 0"})
		due := fmt.Sprint(time.Now().Add(16 * time.Minute).UnixMilli())
		for _, r := range w.kafka.took {
			if got := headerOf(r, envelope.NotBefore); got != due {
				t.Errorf("%s is due at %s, want %s", told(r), got, due)
			}
		}
	})
}

// A decision that waits behind one that is given up gets the row.
func TestBehind_OneThatIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ code, dlq, exhausted string }{
		"refused":   {code: "23503", dlq: "101/0 data 23503 4"},
		"exhausted": {code: "22P03", exhausted: "101/0 exhausted 22P03 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(replayer)
				rs := parkedOf(4, "b", "a", "c", "a")
				rs[3].Value = []byte(denied("a"))
				w.db.odd = oddAt(sqlstate(c.code), 101)
				w.run(t, newPartition(t, rs))
				equal(t, "dead letters", w.kafka.sent("dlq"), list(c.dlq))
				equal(t, "exhausted", w.kafka.sent("parking-dlq"), list(c.exhausted))
				if h := w.told.homes(); h["row"] != 3 || h["parked"] != 0 {
					t.Errorf("homes %v", h)
				}
			})
		})
	}
}

// An equal payload gets the row at once. The earlier one is its duplicate when it is replayed.
func TestBehind_EqualPayloads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.db.odd = oddAt(sqlstate("23503"), 1)
		w.run(t, newPartition(t, recordsOf(0, logOf("b"), logOf("a"), logOf("c"), logOf("a"))))
		equal(t, "parked", w.kafka.sent("parking"), []string{"1/0 transient 23503 0"})
		if h := w.told.homes(); h["row"] != 3 {
			t.Errorf("homes %v", h)
		}
	})
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
