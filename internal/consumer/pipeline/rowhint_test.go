package pipeline

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func truly(row int) int { return row }

// only makes the table refuse one id, with this code.
func only(bad, code string) func(id string) error {
	return func(id string) error {
		if id == bad {
			return sqlstate(code)
		}
		return nil
	}
}

func TestRowHint_FourWrites(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"d000", "d457", "d999"} {
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(), newPartition(t, recordsOf(0, good(named(1000)...)...))
			w.db.refuse, w.db.tells = only(bad, "23514"), truly
			w.run(t, p)
			if h := w.told.homes(); h["row"] != 999 || h["dead_letter"] != 1 || p.last() != 1000 {
				t.Errorf("homes %v, committed %d", h, p.last())
			}
			if n := len(w.db.writes); n != 4 || len(w.db.writes[1]) != 999 || !slices.Equal(w.db.writes[2], []string{bad}) || !slices.Equal(w.db.writes[3], []string{bad}) {
				t.Errorf("%d writes", n)
			}
			if !slices.Equal(w.db.fresh, []bool{false, false, false, true}) {
				t.Errorf("fresh connections %v", w.db.fresh)
			}
			if !slices.Equal(w.told.bisected, []int{3}) {
				t.Errorf("told of searches %v", w.told.bisected)
			}
		})
	}
}

func TestRowHint_WrongRowIsStored(t *testing.T) {
	t.Parallel()
	for name, tells := range map[string]func(int) int{
		"the first": func(int) int { return 0 }, "the one before": func(row int) int { return row - 1 },
		"the one behind": func(row int) int { return row + 1 }, "none there is": func(int) int { return 1 << 40 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld(), newPartition(t, recordsOf(0, good(named(100)...)...))
				w.db.refuse, w.db.tells = only("d041", "23514"), tells
				w.run(t, p)
				equal(t, "dead letters", w.kafka.sent("dlq"), []string{"41/0 data 23514 0"})
				if h := w.told.homes(); h["row"] != 99 {
					t.Errorf("homes %v", h)
				}
			})
		})
	}
}

// TestRowHint_CountsRowsOfTheWrite writes a part of a search in two halves, as the server runs out of memory. The
// error of the second half names a row.
func TestRowHint_CountsRowsOfTheWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good(named(16)...)...))
		w.db.hook = func(context.Context) {
			last := w.db.writes[len(w.db.writes)-1]
			w.db.away = func() error {
				if len(last) == 15 { // all but the one that was named first
					return sqlstate("53200")
				}
				return nil
			}
		}
		w.db.refuse = func(id string) error {
			if id == "d003" || id == "d012" {
				return sqlstate("23514")
			}
			return nil
		}
		w.db.tells = truly
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"3/0 data 23514 0", "12/0 data 23514 0"})
		if h := w.told.homes(); h["row"] != 14 {
			t.Errorf("homes %v", h)
		}
		asked := map[string]int{}
		for _, write := range w.db.writes {
			if len(write) == 1 {
				asked[write[0]]++
			}
		}
		if len(asked) != 2 {
			t.Errorf("asked alone: %v, want those that were named and no others", asked)
		}
	})
}

func TestRowHint_NoneForATakenKey(t *testing.T) {
	t.Parallel()
	for code, sent := range map[string]map[string][]string{
		"23505": {"parking": {"3/0 transient 23505 0"}}, // a unique index
		"23P01": {"dlq": {"3/0 data 23P01 0"}},          // an exclusion constraint
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			takenKey(t, code, sent)
		})
	}
}

func takenKey(t *testing.T, code string, sent map[string][]string) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "early", "b", "late", "c")...))
		w.db.refuse = func(id string) error { // refused at the first of the two in a write, which the error names
			write := w.db.writes[len(w.db.writes)-1]
			one, other := id == "early" || id == "late", map[string]string{"early": "late", "late": "early"}[id]
			_, there := w.db.rows[other+"2026-03-01 12:00:00.5 +0000 UTC"]
			if one && (there || slices.Contains(write, other)) {
				return sqlstate(code)
			}
			return nil
		}
		w.db.tells = truly
		w.run(t, p)
		for _, topic := range []string{"parking", "dlq"} {
			equal(t, topic, w.kafka.sent(topic), sent[topic])
		}
		if !w.db.has("early") || w.db.has("late") {
			t.Errorf("table %v", w.db.rows)
		}
	})
}

func TestRowHint_NoneForATransientFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good(named(8)...)...))
		w.db.refuse, w.db.tells = only("d005", "57014"), func(int) int { return 2 }
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"5/0 data too_slow 0"})
		for _, write := range w.db.writes {
			if len(write) == 1 && strings.HasPrefix(write[0], "d002") {
				t.Error("a row that was named by chance was asked alone")
			}
		}
	})
}

func TestRowHint_ExactlyTheBadOnesAreDeadLettered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good(named(500)...)...))
		var want []string
		w.db.refuse = func(id string) error {
			switch {
			case strings.HasSuffix(id, "77"):
				return sqlstate("23514")
			case strings.HasSuffix(id, "99"):
				return sqlstate("22001")
			}
			return nil
		}
		for _, at := range []string{"77", "99", "177", "199", "277", "299", "377", "399", "477", "499"} {
			code := map[bool]string{true: "23514", false: "22001"}[strings.HasSuffix(at, "77")]
			want = append(want, at+"/0 data "+code+" 0")
		}
		w.db.tells = func(row int) int {
			if row%2 == 0 {
				return -1
			}
			return row
		}
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), want)
		if h := w.told.homes(); h["row"] != 490 || p.last() != 500 {
			t.Errorf("homes %v, committed %d", h, p.last())
		}
	})
}

func TestRowHint_EarlierOfOneIdentityWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		other := strings.Replace(logOf("a"), "true", "false", 1)
		w, p := newWorld(), newPartition(t, recordsOf(0, logOf("b"), logOf("a"), logOf("x"), other, logOf("c")))
		w.db.refuse = func(id string) error {
			if len(w.db.writes) > 1 {
				return nil
			}
			return only("x", "23514")(id)
		}
		w.db.tells = func(row int) int { return row - 1 }
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"3/0 conflict id_conflict 0"})
		if h := w.told.homes(); h["row"] != 4 {
			t.Errorf("homes %v", h)
		}
	})
}
