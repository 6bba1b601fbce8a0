package pipeline

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/decision"
	"docket/internal/errclass"
	"docket/internal/home"
)

// run carries all batches of p and returns how long it took in virtual time.
func (w *world) run(t *testing.T, p *partition) time.Duration {
	t.Helper()
	from := time.Now()
	if err := w.pipe.Run(t.Context(), p); err != nil {
		t.Errorf("Run: %v", err)
	}
	w.settledAccount(t)
	return time.Since(from)
}

func TestGoodBatchGetsRowsAndIsCommitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(5, good("a", "b")...), recordsOf(9, good("c", "a")...))
		w.run(t, p)
		if p.last() != 11 || !w.db.has("a") || !w.db.has("b") || !w.db.has("c") {
			t.Errorf("committed %d, table %v", p.last(), w.db.rows)
		}
		if h := w.told.homes(); h["row"] != 3 || h["duplicate"] != 1 {
			t.Errorf("homes %v", h)
		}
		if len(w.db.writes) != 2 || len(w.kafka.took) != 0 {
			t.Errorf("writes %v, published %d", w.db.writes, len(w.kafka.took))
		}
	})
}

func TestOneBadDecisionNeverTakesItsNeighboursAlong(t *testing.T) {
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

func TestWhatInflatesToMoreThanABatchIsCarriedInSeveral(t *testing.T) {
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

func TestBatchBytesThatAreNotSetAreNoLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(func(w *world) { w.config.BatchBytes = limit }), newPartition(t, recordsOf(0, good("a", "b")...))
			w.run(t, p)
			if p.last() != 2 || len(w.db.writes) != 1 || !w.db.has("a") || !w.db.has("b") {
				t.Errorf("limit %d: committed %d, writes %v", limit, p.last(), w.db.writes)
			}
		})
	}
}

func TestPanicOfTheDecoderIsOneRecordsMisfortune(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, logOf("a"), "boom", logOf("b")))
		w.pipe.decodeValue = func(v []byte, n int64) (decision.Record, *decision.Refusal) {
			if string(v) == "boom" {
				panic("at the disco")
			}
			return decision.Decode(v, n)
		}
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/ decode panic 0"})
		if !w.db.has("a") || !w.db.has("b") || p.last() != 3 {
			t.Errorf("neighbours: %v, committed %d", w.db.rows, p.last())
		}
	})
}

func TestTransientFailureIsTriedAgainAfterOneAndTwoSeconds(t *testing.T) {
	t.Parallel()
	for name, failures := range map[string]int{"once": 1, "twice": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "b")...))
				left := failures
				w.db.away = func() error {
					if left--; left >= 0 {
						return sqlstate("08006")
					}
					return nil
				}
				took := w.run(t, p)
				if want := []time.Duration{0, time.Second, 3 * time.Second}[failures]; took != want {
					t.Errorf("took %v, want %v", took, want)
				}
				if want := []bool{false, true, true}[:failures+1]; !slices.Equal(w.db.fresh, want) {
					t.Errorf("fresh connections %v, want %v", w.db.fresh, want)
				}
				if h := w.told.homes(); h["row"] != 2 || w.told.retries != failures || w.db.probes != 0 {
					t.Errorf("homes %v, retries %d, probes %d", h, w.told.retries, w.db.probes)
				}
			})
		})
	}
}

func TestOutageIsParkedThriceThenWaitedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := newPartition(t, recordsOf(0, append(good("a"), "{bad")...), recordsOf(2, good("b")...), recordsOf(3, good("c")...), recordsOf(4, good("d", "e")...))
		back := time.Now().Add(10 * time.Minute)
		w.db.away = func() error {
			if time.Now().Before(back) {
				return sqlstate("57P03")
			}
			return nil
		}
		took := w.run(t, p)
		equal(t, "parked", w.kafka.sent("parking"), []string{"0/0 transient 57P03 0", "2/0 transient 57P03 0", "3/0 transient 57P03 0"})
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/ decode syntax 0"})
		equal(t, "held", w.told.held, []string{"database_away 57P03"})
		if h := w.told.homes(); h["row"] != 2 || h["parked"] != 3 || !w.db.has("e") {
			t.Errorf("homes %v", h)
		}
		if took > 10*time.Minute+2*time.Second || p.last() != 6 || p.holds != 0 {
			t.Errorf("took %v, committed %d, holds left %d", took, p.last(), p.holds)
		}
	})
}

func TestDatabaseThatIsKnownToBeAwayHasNothingParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		w.pipe.Away(true)
		back := time.Now().Add(time.Hour)
		w.db.away = func() error {
			if time.Now().Before(back) {
				return sqlstate("08006")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "held", w.told.held, []string{"database_away 08006"})
		if h := w.told.homes(); h["row"] != 1 || len(w.kafka.took) != 0 {
			t.Errorf("homes %v", h)
		}
		w.pipe.Away(true)
		w.pipe.Away(false)
		w.db.away = func() error { return sqlstate("08006") }
		w.run(t, newPartition(t, recordsOf(0, good("b")...)))
		if h := w.told.homes(); h["parked"] != 1 {
			t.Errorf("homes %v", h)
		}
	})
}

func TestHoldThatEndsLetsBatchesBeParkedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.ParkBatches = 1 })
		p := newPartition(t, recordsOf(0, good("a")...), recordsOf(1, good("b")...))
		w.db.refuse = func(string) error { return sqlstate("40001") } // and the probe is taken
		if took := w.run(t, p); took > time.Minute {
			t.Errorf("stood still for %v on a database that answers the probe", took)
		}
		equal(t, "held", w.told.held, []string{"database_away 40001"})
		if n := len(w.kafka.sent("parking")); n != 2 || p.last() != 2 {
			t.Errorf("parked %d, committed %d", n, p.last())
		}
	})
}

func TestTableThatGoesDuringABisectEndsItAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good(named(512)...)...))
		gone := func() bool { return len(w.db.writes) > 3 && len(w.db.writes) < 12 }
		w.db.refuse = func(id string) error {
			if gone() {
				return sqlstate("42P01")
			}
			if id == "d001" {
				return sqlstate("23514")
			}
			return nil
		}
		w.db.probe = func(time.Time) error {
			if p.holds == 1 {
				w.db.writes = append(w.db.writes, make([][]string, 12)...) // mended
			}
			if gone() {
				return sqlstate("42P01")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "held", w.told.held, []string{"database_refuses 42P01"})
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/0 data 23514 0"})
		if len(w.told.bisected) != 2 || w.told.bisected[0] > 5 {
			t.Errorf("searches took %v writes, want the first to end when the table went", w.told.bisected)
		}
	})
}

func TestZeroParkBatchesNeverHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.ParkBatches = 0 })
		p := newPartition(t, recordsOf(0, good("a")...), recordsOf(1, good("b")...), recordsOf(2, good("c")...), recordsOf(3, good("d")...), recordsOf(4, good("e")...))
		w.db.away = func() error { return sqlstate("08006") }
		w.run(t, p)
		if n := len(w.kafka.sent("parking")); n != 5 || len(w.told.held) != 0 || p.last() != 5 {
			t.Errorf("parked %d, held %v, committed %d", n, w.told.held, p.last())
		}
	})
}

func TestStoredBatchBetweenParkedOnesResetsTheCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.ParkBatches = 1 })
		p := newPartition(t, recordsOf(0, good("x1")...), recordsOf(1, good("a")...), recordsOf(2, good("x2")...))
		w.db.refuse = func(id string) error {
			if id[0] == 'x' {
				return sqlstate("53300")
			}
			return nil
		}
		w.run(t, p)
		if n := len(w.kafka.sent("parking")); n != 2 || len(w.told.held) != 0 {
			t.Errorf("parked %d, held %v", n, w.told.held)
		}
	})
}

func TestExactlyTheBadOnesAreDeadLettered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ids := named(100)
		bad := map[string]bool{"d000": true, "d013": true, "d014": true, "d099": true}
		w.db.refuse = func(id string) error {
			if bad[id] {
				return sqlstate("23514")
			}
			return nil
		}
		p := newPartition(t, recordsOf(0, good(ids...)...))
		if took := w.run(t, p); took != 0 {
			t.Errorf("a data failure was retried after pauses: %v", took)
		}
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"0/0 data 23514 0", "13/0 data 23514 0", "14/0 data 23514 0", "99/0 data 23514 0"})
		for _, id := range ids {
			if w.db.has(id) == bad[id] {
				t.Errorf("%s: has a row: %v", id, w.db.has(id))
			}
		}
		alone := map[string]int{}
		freshAlone := map[string]bool{}
		for i, write := range w.db.writes {
			if len(write) == 1 {
				alone[write[0]]++
				freshAlone[write[0]] = freshAlone[write[0]] || w.db.fresh[i]
			}
		}
		for id := range bad {
			if alone[id] != 2 || !freshAlone[id] {
				t.Errorf("%s was asked alone %d times, on a fresh connection: %v", id, alone[id], freshAlone[id])
			}
		}
		if w.db.probes < 2 {
			t.Errorf("%d probes, want one before the search and one before the first dead letter", w.db.probes)
		}
		if h := headerOf(w.kafka.took[0], "x-failure-table"); h != "decision_logs" {
			t.Errorf("table header %q", h)
		}
	})
}

func TestTableThatRefusesEverythingIsNoPileOfBadRecords(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"23502", "23514", "22P02", "42P01", "42501", "53100", "P0001", "XX000"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				p := newPartition(t, recordsOf(0, append(good("a", "b"), "nonsense")...))
				mended := time.Now().Add(time.Hour)
				w.db.away = func() error {
					if time.Now().Before(mended) {
						if len(w.kafka.took)+len(p.committed) > 0 {
							t.Error("something was published or committed during the hold")
						}
						if w.db.probes > 1 && p.holds != 1 {
							t.Error("fetching goes on during the hold")
						}
						return sqlstate(code)
					}
					return nil
				}
				w.run(t, p)
				if p.holds != 0 {
					t.Error("fetching does not go on after the hold")
				}
				equal(t, "held", w.told.held, []string{"database_refuses " + code})
				equal(t, "dead letters", w.kafka.sent("dlq"), []string{"2/ decode syntax 0"})
				if h := w.told.homes(); h["row"] != 2 || p.last() != 3 {
					t.Errorf("homes %v, committed %d", h, p.last())
				}
			})
		})
	}
}

func TestReadOnlyNodeIsRetriedThenHeldNeverParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "b")...))
		back := time.Now().Add(time.Minute)
		w.db.away = func() error {
			if time.Now().Before(back) {
				return sqlstate("25006")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "held", w.told.held, []string{"read_only 25006"})
		if h := w.told.homes(); h["row"] != 2 || len(w.kafka.took) != 0 || !w.db.fresh[1] {
			t.Errorf("homes %v, published %d, fresh %v", h, len(w.kafka.took), w.db.fresh)
		}
	})
}

func TestOneOddRecordNeverStopsAPartition(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"42P01", "53100", "XX001", "25006", "42703"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "x", "b")...))
				w.db.refuse = func(id string) error {
					if id == "x" {
						return sqlstate(code)
					}
					return nil
				}
				w.run(t, p)
				equal(t, "parked", w.kafka.sent("parking"), []string{"1/0 transient " + code + " 0"})
				if !w.db.has("a") || !w.db.has("b") || len(w.kafka.sent("dlq")) != 0 || p.last() != 3 {
					t.Errorf("table %v, dlq %v, committed %d", w.db.rows, w.kafka.sent("dlq"), p.last())
				}
			})
		})
	}
}

func TestDatabaseThatDiesDuringABisectLeavesNoDeadLetter(t *testing.T) {
	t.Parallel()
	for dies := 1; dies < 24; dies++ {
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(), newPartition(t, recordsOf(0, good(named(16)...)...))
			writes := 0
			w.db.away = func() error {
				if writes > dies {
					return sqlstate("57P01")
				}
				return nil
			}
			w.db.hook = func(context.Context) { writes++ }
			w.db.refuse = func(id string) error {
				if id == "d003" || id == "d009" {
					return sqlstate("23514")
				}
				return nil
			}
			w.pipe.parked.limit = 0
			w.run(t, p)
			h := w.told.homes()
			if h["dead_letter"] > 0 && (h["dead_letter"] != 2 || h["parked"] != 0) {
				t.Errorf("died after %d writes: homes %v", dies, h)
			}
			if h["row"]+h["parked"]+h["dead_letter"] != 16 || p.last() != 16 {
				t.Errorf("died after %d writes: homes %v, committed %d", dies, h, p.last())
			}
			for _, sent := range w.kafka.sent("parking") {
				if !strings.Contains(sent, "transient 57P01 0") {
					t.Errorf("parked as %q", sent)
				}
			}
		})
	}
}

func TestTableThatChangesDuringABisectHoldsInsteadOfDeadLettering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "x", "b", "c")...))
		mended := time.Now().Add(time.Minute)
		w.db.refuse = func(id string) error {
			if id == "x" || time.Now().Before(mended) {
				return sqlstate("23502")
			}
			return nil
		}
		w.db.probe = func(time.Time) error { // well at first, then the column was added
			if w.db.probes > 1 && time.Now().Before(mended) {
				return sqlstate("23502")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/0 data 23502 0"})
		equal(t, "held", w.told.held, []string{"database_refuses 23502"})
		if h := w.told.homes(); h["row"] != 3 {
			t.Errorf("homes %v", h)
		}
	})
}

func TestSameDecisionWithAnotherPayloadIsAConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		other := strings.Replace(logOf("a"), "true", "false", 1)
		w, p := newWorld(), newPartition(t, recordsOf(0, logOf("a")), recordsOf(1, other, logOf("a")))
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/0 conflict id_conflict 0"})
		if h := w.told.homes(); h["row"] != 1 || h["duplicate"] != 1 || h["dead_letter"] != 1 {
			t.Errorf("homes %v", h)
		}
	})
}

func TestSlowRecordIsFoundAndDeadLetteredSlowDatabaseIsParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "x", "b")...))
		w.db.refuse = func(id string) error {
			if id == "x" {
				return sqlstate("57014")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/0 data too_slow 0"})

		w, p = newWorld(), newPartition(t, recordsOf(0, good("a", "b")...))
		w.db.away = func() error { return sqlstate("57014") }
		w.run(t, p)
		if n := len(w.kafka.sent("parking")); n != 2 || len(w.kafka.sent("dlq")) != 0 {
			t.Errorf("parked %d, dead letters %v", n, w.kafka.sent("dlq"))
		}
	})
}

func TestSlowBatchIsNotParkedWhereTheProbeBlamesTheSetUp(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"25006": "read_only 25006", "42P01": "database_refuses 42P01", "23514": "database_refuses 23514"} {
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "b")...))
			back := time.Now().Add(time.Minute)
			w.db.away = func() error {
				if time.Now().Before(back) {
					return sqlstate("57014")
				}
				return nil
			}
			w.db.probe = func(time.Time) error {
				if time.Now().Before(back) {
					return sqlstate(code)
				}
				return nil
			}
			w.run(t, p)
			equal(t, "held", w.told.held, []string{want})
			if h := w.told.homes(); h["row"] != 2 || len(w.kafka.took) != 0 {
				t.Errorf("homes %v, published %d", h, len(w.kafka.took))
			}
		})
	}
}

func TestMissingParentIsParkedOnceThenDeadLettered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		orphan := func(id string) error {
			if id == "x" {
				return sqlstate("23503")
			}
			return nil
		}
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "x")...))
		w.db.refuse = orphan
		w.run(t, p)
		equal(t, "parked", w.kafka.sent("parking"), []string{"1/0 transient 23503 0"})

		again := w.kafka.took[0]
		again.Topic, again.Offset = "decision-logs", 0
		r := newWorld(func(w *world) { w.config.Replay = true })
		r.db.refuse = orphan
		p = newPartition(t, []*kgoRecord{again})
		r.run(t, p)
		equal(t, "dead letters", r.kafka.sent("dlq"), []string{"1/0 data 23503 0"})
	})
}

func TestWhatKafkaDoesNotTakeIsSpooled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, logOf("a"), "x", "y", logOf("b")))
		w.kafka.fail = func(r *kgoRecord) error {
			if string(r.Value) == "y" {
				return errors.New("the answer was lost")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/ decode syntax 0"})
		if h := w.told.homes(); h["spooled"] != 1 || h["dead_letter"] != 1 || h["row"] != 2 || len(w.spool.lines) != 1 || told(w.spool.lines[0]) != "2/ decode syntax 0" {
			t.Errorf("homes %v, spool %d", h, len(w.spool.lines))
		}
	})
}

func TestRecordTooLargeWithItsHeadersIsSentBareThenSpooledAsOversize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, "large", "huge", "small"))
		w.kafka.fail = func(r *kgoRecord) error {
			if string(r.Value) == "huge" || string(r.Value) == "large" && len(r.Headers) > 8 {
				return errTooLarge
			}
			return nil
		}
		w.run(t, p)
		if len(w.kafka.took) != 2 || string(w.kafka.took[0].Value) != "small" || string(w.kafka.took[1].Value) != "large" {
			t.Fatalf("published %d records", len(w.kafka.took))
		}
		if len(w.spool.oversize) != 1 || string(w.spool.oversize[0].Value) != "huge" || len(w.spool.lines) != 0 {
			t.Errorf("spooled %d oversize, %d others", len(w.spool.oversize), len(w.spool.lines))
		}
		if p.last() != 3 {
			t.Errorf("committed %d", p.last())
		}
	})
}

func TestWithNoHomeLeftTheOffsetStandsStill(t *testing.T) {
	t.Parallel()
	for name, noSpool := range map[string]bool{"spool fails": false, "no spool": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(func(w *world) {
					if noSpool {
						w.spool = nil
					}
				})
				p := newPartition(t, recordsOf(0, logOf("a"), "x"), recordsOf(2, logOf("b")))
				healed := time.Now().Add(time.Hour)
				broken := func() error {
					if time.Now().Before(healed) {
						if p.last() >= 0 {
							t.Error("committed without a home")
						}
						return errors.New("no")
					}
					return nil
				}
				w.kafka.fail = func(*kgoRecord) error { return broken() }
				if w.spool != nil {
					w.spool.fail = broken
				}
				w.run(t, p)
				equal(t, "held", w.told.held, []string{"no_home "})
				if h := w.told.homes(); h["row"] != 2 || h["dead_letter"] != 1 || p.last() != 3 {
					t.Errorf("homes %v, committed %d", h, p.last())
				}
			})
		})
	}
}

func TestLeavingEndsPausesAndHoldsAtOnceAndLeavesTheBatchUncommitted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code  string
		after time.Duration
	}{
		"in the first pause":  {"08006", 500 * time.Millisecond},
		"in the second pause": {"08006", 2 * time.Second},
		"in a hold":           {"42P01", 90 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld(), newPartition(t, recordsOf(0, append(good("a"), "bad")...), recordsOf(2, good("b")...))
				w.db.away = func() error { return sqlstate(tc.code) }
				time.AfterFunc(tc.after, p.depart)
				if took := w.run(t, p); took != tc.after {
					t.Errorf("took %v, want %v", took, tc.after)
				}
				if p.last() != -1 || len(w.kafka.took) != 0 || w.told.given != 2 {
					t.Errorf("committed %d, published %d, given back %d", p.last(), len(w.kafka.took), w.told.given)
				}
			})
		})
	}
}

func TestBatchInHandIsFinishedWhenLeavingWhileTheDatabaseIsWell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, append(good("a", "x"), "bad")...), recordsOf(3, good("b")...))
		w.db.hook = func(context.Context) { p.depart() }
		w.db.refuse = func(id string) error {
			if id == "x" {
				return sqlstate("23514")
			}
			return nil
		}
		w.run(t, p)
		if p.last() != 3 || len(w.kafka.sent("dlq")) != 2 || w.db.has("b") {
			t.Errorf("committed %d, dead letters %v", p.last(), w.kafka.sent("dlq"))
		}
	})
}

func TestCancelledWorkIsNotAFailureOfAnything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, append(good("a"), "bad")...))
		ctx, cancel := context.WithCancel(t.Context())
		w.db.hook = func(context.Context) { cancel() }
		if err := w.pipe.Run(ctx, p); err != nil {
			t.Errorf("Run: %v", err)
		}
		if p.last() != -1 || len(w.kafka.took) != 0 || len(w.spool.lines) != 0 || w.told.given != 2 {
			t.Errorf("committed %d, published %d, spooled %d, given back %d", p.last(), len(w.kafka.took), len(w.spool.lines), w.told.given)
		}
	})
}

func TestRefusedCommitStopsNothingAndTheNextOneCoversIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...), recordsOf(1, good("b")...))
		p.refuse = errors.New("coordinator moved")
		w.db.hook = func(context.Context) {
			if len(w.db.writes) == 2 {
				p.refuse = nil
			}
		}
		w.run(t, p)
		if p.last() != 2 || !w.db.has("b") {
			t.Errorf("committed %d", p.last())
		}
	})
}

func TestBatchTooLargeForTheServerIsHalvedOnRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good(named(8)...)...))
		w.db.hook = func(context.Context) {
			size := len(w.db.writes[len(w.db.writes)-1])
			w.db.away = func() error {
				if size > 2 {
					return sqlstate("53200")
				}
				return nil
			}
		}
		w.run(t, p)
		if h := w.told.homes(); h["row"] != 8 {
			t.Errorf("homes %v after writes %v", h, w.db.writes)
		}
	})
}

func TestWedgedTellsAStuckBatchFromAHeldOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		stuck := make(chan struct{})
		w.db.hook = func(context.Context) { <-stuck }
		done := make(chan struct{})
		go func() { defer close(done); w.run(t, p) }()
		synctest.Wait()
		if w.pipe.Idle() || w.pipe.Wedged(time.Minute) != nil {
			t.Error("a batch that was just picked up is idle or wedged")
		}
		time.Sleep(2 * time.Minute)
		if !errors.Is(w.pipe.Wedged(time.Minute), ErrWedged) {
			t.Error("a batch without progress for two minutes is not wedged")
		}
		close(stuck)
		<-done

		w, p = newWorld(), newPartition(t, recordsOf(0, good("a")...))
		w.db.away = func() error { return sqlstate("42P01") }
		done = make(chan struct{})
		go func() { defer close(done); w.run(t, p) }()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if err := w.pipe.Wedged(time.Second / 2); err != nil {
			t.Errorf("a hold is %v", err)
		}
		p.depart()
		<-done
	})
}

func TestCommitThatWaitsForTheBrokersIsNoLackOfProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		p.waiting = make(chan struct{})
		done := make(chan struct{})
		go func() { defer close(done); w.run(t, p) }()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if h := w.told.homes(); h["row"] != 1 || p.last() != -1 {
			t.Fatalf("homes %v, committed %d: the commit is not what is waited for", h, p.last())
		}
		if err := w.pipe.Wedged(time.Minute); err != nil {
			t.Errorf("a commit that the brokers do not take yet: %v", err)
		}
		close(p.waiting)
		<-done
		if p.last() != 1 {
			t.Errorf("committed %d", p.last())
		}
	})
}

func TestBatchesThatStandStillLeaveTheTrafficIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		w.db.away = func() error { return sqlstate("42P01") }
		done := make(chan struct{})
		go func() { defer close(done); w.run(t, p) }()
		time.Sleep(time.Hour + time.Second/2)
		synctest.Wait()
		if w.told.holding[ReasonDatabaseRefuses] != 1 || !w.pipe.Idle() {
			t.Errorf("holds %v, idle %v", w.told.holding, w.pipe.Idle())
		}
		p.depart()
		<-done
	})
}

func TestEveryRuleOfAVerdictEndsInAHome(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, v := range errclass.Table() {
		if len(v.Code) != 5 || strings.ToUpper(v.Code) != v.Code || v.Class == errclass.OK || seen[v.Code] {
			continue
		}
		seen[v.Code] = true
		v = errclass.Classify(sqlstate(v.Code))
		t.Run(v.Code, func(t *testing.T) {
			t.Parallel()
			for _, replay := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					w, p := newWorld(func(w *world) { w.config.Replay = replay }), newPartition(t, recordsOf(0, good("a", "b", "x", "c")...))
					w.db.refuse = func(id string) error {
						if id == "x" {
							return sqlstate(v.Code)
						}
						return nil
					}
					w.run(t, p)
					h := w.told.homes()
					parkedWhole := !replay && v.Class == errclass.Transient && v.Rule != errclass.RetryBisect && v.Rule != errclass.ParkOnceBisect
					rows := 3
					if parkedWhole {
						rows = 0 // but for those that a retry in parts could store
					}
					if h["row"] < rows || h["row"]+h["parked"]+h["dead_letter"] != 4 || p.last() != 4 {
						t.Errorf("replay %v: homes %v, committed %d", replay, h, p.last())
					}
					if dead := h["dead_letter"]; (dead == 1) != (v.Class == errclass.Data && (replay || v.Rule != errclass.ParkOnceBisect) || v.Rule == errclass.RetryBisect) {
						t.Errorf("replay %v: %s %v: %d dead letters", replay, v.Class, v.Rule, dead)
					}
				})
			}
		})
	}
}

func TestFailureCodesWithoutASQLSTATEAreTheFewThatArePromised(t *testing.T) {
	t.Parallel()
	promised := strings.Fields("network timeout id_conflict too_slow internal panic empty syntax duplicate_key missing_field wrong_type out_of_range too_large")
	for _, v := range errclass.Table() {
		if strings.ToLower(v.Code) != v.Code || len(v.Code) == 5 || v.Class == errclass.OK || v.Class == errclass.Cancelled {
			continue
		}
		for _, replay := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld(func(w *world) { w.config.Replay = replay }), newPartition(t, recordsOf(0, good("a", "x")...))
				w.db.refuse = func(id string) error {
					if id == "x" {
						return errclass.As(errors.New("planted"), v.Code)
					}
					return nil
				}
				w.run(t, p)
				if len(w.kafka.took) == 0 {
					t.Errorf("%s, replay %v: nothing was forwarded", v.Code, replay)
				}
				for _, r := range w.kafka.took {
					if code := headerOf(r, "x-failure-code"); !slices.Contains(promised, code) {
						t.Errorf("%s, replay %v: x-failure-code is %q", v.Code, replay, code)
					}
				}
			})
		}
	}
}

func TestBackoffDoublesUpToItsMaximum(t *testing.T) {
	t.Parallel()
	w := newWorld()
	want := []int{1, 2, 4, 8, 16, 32, 60, 60}
	for attempt, minutes := range want {
		if got := w.pipe.backoff(attempt); got != time.Duration(minutes)*time.Minute {
			t.Errorf("attempt %d: %v, want %v min", attempt, got, minutes)
		}
	}
	if got := w.pipe.backoff(1 << 30); got != time.Hour {
		t.Errorf("attempt 2^30: %v", got)
	}
}

func TestRunGivesTheErrorOfTheFetch(t *testing.T) {
	t.Parallel()
	w := newWorld()
	want := errors.New("no such partition")
	if err := w.pipe.Run(t.Context(), &failing{newPartition(t), want}); !errors.Is(err, want) {
		t.Errorf("Run: %v", err)
	}
}

type failing struct {
	*partition
	err error
}

func (f *failing) Fetch(context.Context) (*home.Batch, error) { return nil, f.err }

func TestRecordThatWasHeldIsForwardedAsOfNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(func(w *world) { w.spool = nil; w.config.ProbeInterval = time.Minute }), newPartition(t, recordsOf(0, "no JSON"))
		well := time.Now().Add(30 * 24 * time.Hour)
		w.kafka.fail = func(*kgoRecord) error {
			if time.Now().Before(well) {
				return errors.New("no such topic")
			}
			return nil
		}
		w.run(t, p)
		if len(w.kafka.took) != 1 || time.Since(w.kafka.took[0].Timestamp) > time.Hour {
			t.Error("the record is older than its topic keeps records, and deleted at once")
		}
	})
}

// reluctant is a partition whose commits are not answered until somebody lets them.
type reluctant struct {
	*partition
	answer chan struct{}
}

func (r reluctant) Commit(ctx context.Context, s home.Settled) error {
	<-r.answer
	return r.partition.Commit(ctx, s)
}

func TestCommitThatTheBrokersDoNotTakeIsNoStuckBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), reluctant{newPartition(t, recordsOf(0, good("a")...)), make(chan struct{})}
		done := make(chan error)
		go func() { done <- w.pipe.Run(t.Context(), p) }()
		time.Sleep(24 * time.Hour)
		if err := w.pipe.Wedged(time.Minute); err != nil {
			t.Errorf("a batch that has its homes and waits for its commit is %v: the process would end, and the next one too", err)
		}
		close(p.answer)
		if err := <-done; err != nil || p.last() != 1 {
			t.Errorf("%v, committed %d", err, p.last())
		}
	})
}
