package pipeline

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSearch_EndsWhenTheTableIsGone(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"42P01", "23502"} { // 23502: another kind of failure that could be a record's
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { searchWhileTheTableIsGone(t, code) })
		})
	}
}

func searchWhileTheTableIsGone(t *testing.T, code string) {
	w, p := newWorld(), newPartition(t, recordsOf(0, good(named(512)...)...))
	gone := func() bool { return len(w.db.writes) > 3 && len(w.db.writes) < 12 }
	w.db.refuse = func(id string) error {
		if gone() {
			return sqlstate(code)
		}
		if id == "d001" {
			return sqlstate("23514")
		}
		return nil
	}
	w.db.probe = func(time.Time) error {
		if p.holds == 1 {
			w.db.writes = append(w.db.writes, make([][]string, 12)...) // repaired
		}
		if gone() {
			return sqlstate(code)
		}
		return nil
	}
	w.run(t, p)
	equal(t, "held", w.told.held, []string{"database_refuses " + code})
	equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/0 data 23514 0"})
	if len(w.told.bisected) != 2 || w.told.bisected[0] > 5 {
		t.Errorf("searches took %v writes, want the first to end when the table went", w.told.bisected)
	}
}

// TestSearch_UnwellTableBlamesNobody has every record refused twice while the table is unwell. The table is well
// again when the search is over.
func TestSearch_UnwellTableBlamesNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "b", "x", "d")...))
		changed := func() bool { return p.holds == 0 && len(w.db.writes) > 1 && len(w.db.writes) < 6 }
		w.db.refuse = func(id string) error {
			switch {
			case changed():
				return sqlstate("23502")
			case id == "x":
				return sqlstate("22P02")
			}
			return nil
		}
		w.db.probe = func(time.Time) error {
			if changed() {
				return sqlstate("23502")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"2/0 data 22P02 0"})
		if h := w.told.homes(); h["row"] != 3 {
			t.Errorf("homes %v", h)
		}
	})
}

// TestSearch_RefusedOnlyOnce has a record fail alone, first because it took too long, then by a refusal that does not
// come again.
func TestSearch_RefusedOnlyOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		w.db.refuse = func(string) error {
			switch n := len(w.db.writes); {
			case n <= 3:
				return sqlstate("57014")
			case n == 4:
				return sqlstate("23514")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), nil)
		if h := w.told.homes(); h["row"] != 1 {
			t.Errorf("homes %v", h)
		}
	})
}

// TestSearch_SlowAfterARefusal has a record fail alone, first by a refusal that does not come again, then because the
// database is slow for a while. Neither failure is confirmed.
func TestSearch_SlowAfterARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		w.db.refuse = func(string) error {
			switch n := len(w.db.writes); {
			case n <= 1:
				return sqlstate("23514")
			case n <= 4:
				return sqlstate("57014")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), nil)
		if h := w.told.homes(); h["row"] != 1 {
			t.Errorf("homes %v", h)
		}
	})
}

// TestSearch_SlowOnceAfterAnother has a record fail by something that blames no record, and then take too long, once.
func TestSearch_SlowOnceAfterAnother(t *testing.T) {
	t.Parallel()
	for _, replay := range []bool{true, false} {
		for _, code := range []string{"08006", "40P01", "55P03", "57P01", "53200", "53100", "42501", "42703", "25006"} {
			for _, pauses := range [][]time.Duration{nil, {time.Second, 2 * time.Second}} {
				synctest.Test(t, func(t *testing.T) {
					w, p := newWorld(func(w *world) { w.config.Replay, w.config.RetryPauses = replay, pauses }), newPartition(t, recordsOf(0, good("a")...))
					slow := false
					w.db.refuse = func(string) error {
						switch {
						case len(w.db.writes) <= 1+len(pauses):
							return sqlstate(code)
						case !slow:
							slow = true
							return sqlstate("57014")
						}
						return nil
					}
					w.run(t, p)
					if letters := w.kafka.sent("dlq"); letters != nil {
						t.Errorf("replay %v, %s, %d pauses: %q", replay, code, len(pauses), letters)
					}
				})
			}
		}
	}
}

// TestSearch_SlowDatabaseAfterARefusal has the database be slow for the two writes after a refusal. It is well again
// when the second one has failed, so only a probe between them sees it.
func TestSearch_SlowDatabaseAfterARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(func(w *world) { w.config.Replay = true }), newPartition(t, recordsOf(0, good("x")...))
		w.db.refuse = func(string) error {
			if n := len(w.db.writes); n == 2 || n == 3 {
				return sqlstate("57014")
			}
			return sqlstate("23514")
		}
		w.db.probe = func(time.Time) error {
			if len(w.db.writes) == 2 && p.holds == 0 {
				return sqlstate("57014")
			}
			return nil
		}
		w.run(t, p)
		for _, letter := range w.kafka.sent("dlq") {
			if !strings.Contains(letter, "23514") {
				t.Errorf("dead letter %s, but only the database was slow", letter)
			}
		}
		if h := w.told.homes(); h["parked"]+h["dead_letter"] != 1 {
			t.Errorf("homes %v", h)
		}
	})
}

func TestSearch_ExactlyTheBadOnesAreDeadLettered(t *testing.T) {
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

func TestSearch_TableThatRefusesEverythingHolds(t *testing.T) {
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
						if w.db.probes > 2 && p.holds != 1 { // the hold came after two probes, the second at the present
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

func TestSearch_OddRecordIsParked(t *testing.T) {
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

func TestSearch_DatabaseGoesAway(t *testing.T) {
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

func TestSearch_TableChangesMeanwhile(t *testing.T) {
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
		w.db.probe = func(time.Time) error { // well at first, then a column was added
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

func TestStore_OtherPayloadIsAConflict(t *testing.T) {
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

func TestSearch_SlowRecordAndSlowDatabase(t *testing.T) {
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

func TestSearch_SlowBatchOnABadSetUpHolds(t *testing.T) {
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
