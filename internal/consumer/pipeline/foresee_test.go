package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

var errCheck = sqlstate("23514") // of the constraint k

func of(ids ...string) func(string) bool {
	return func(id string) bool { return slices.Contains(ids, id) }
}

func refusing(bad func(string) bool) func(string) error {
	return func(id string) error {
		if bad(id) {
			return errCheck
		}
		return nil
	}
}

// everyTenth makes every tenth id bad, from the fourth on.
func everyTenth(id string) bool { return strings.HasSuffix(id, "3") }

func sum(writes [][]string) (rows int) {
	for _, w := range writes {
		rows += len(w)
	}
	return rows
}

func TestForesight_SuspectsAreAskedAboutTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.db.refuse, w.db.foresee = refusing(everyTenth), everyTenth
		ids := named(100)
		first, second := recordsOf(0, good(ids[:50]...)...), recordsOf(50, good(ids[50:]...)...)
		w.run(t, newPartition(t, first, second))
		if got := len(w.kafka.sent("dlq")); got != 10 || w.told.homes()["row"] != 90 {
			t.Errorf("%d dead letters, homes %v", got, w.told.homes())
		}
		// The first batch fails once; the second is asked about before it is written.
		if n := len(w.db.writes); n != 3 || len(w.db.writes[0]) != 50 || len(w.db.writes[1]) != 45 || len(w.db.writes[2]) != 45 {
			t.Errorf("%d writes of %d rows", n, sum(w.db.writes))
		}
		equal(t, "constraints", w.db.looks, []string{"k", "k"})
		want := [][]string{{"d003", "d013", "d023", "d033", "d043"}, {"d053", "d063", "d073", "d083", "d093"}}
		for i, asked := range w.db.asked {
			equal(t, "asked", asked, want[i/2])
		}
		if len(w.db.asked) != 4 || w.db.probes != 3 { // one before the first search, and one with each second time
			t.Errorf("asked %d times with %d probes", len(w.db.asked), w.db.probes)
		}
		if !slices.Equal(w.told.bisected, []int{10, 10}) {
			t.Errorf("bisected %v", w.told.bisected)
		}
	})
}

func TestForesight_EndsAtABatchWithoutBadOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.db.refuse, w.db.foresee = refusing(of("b")), of("b")
		w.run(t, newPartition(t, recordsOf(0, good("a", "b", "c")...), recordsOf(3, good("d")...), recordsOf(4, good("e")...)))
		equal(t, "constraints", w.db.looks, []string{"k", "k"})
		if h := w.told.homes(); h["row"] != 4 || h["dead_letter"] != 1 {
			t.Errorf("homes %v", h)
		}
	})
}

// TestForesight_WrongForecastDeadLettersNone has good rows foreseen, bad ones not foreseen, and both.
func TestForesight_WrongForecastDeadLettersNone(t *testing.T) {
	t.Parallel()
	for name, guess := range map[string]func(string) bool{
		"good ones": of("d000", "d001", "d007"), "too few": of("d003"), "others": of("d001", "d002"), "all": func(string) bool { return true },
		"too many": of("d003", "d013", "d004", "d014"), "none": of(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.db.refuse, w.db.foresee = refusing(everyTenth), guess
				ids := named(40)
				w.run(t, newPartition(t, recordsOf(0, good(ids[:20]...)...), recordsOf(20, good(ids[20:]...)...)))
				equal(t, "dead letters", w.kafka.sent("dlq"), []string{"3/0 data 23514 0", "13/0 data 23514 0", "23/0 data 23514 0", "33/0 data 23514 0"})
				if w.told.homes()["row"] != 36 {
					t.Errorf("homes %v", w.told.homes())
				}
			})
		})
	}
}

func TestForesight_OnlyTwiceRefusedIsDeadLettered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second error // the table's answer to the second question
		want   []string
	}{
		"taken the second time":                  {nil, nil},
		"refused by another constraint":          {&serverError{code: "23514", constraint: "other"}, nil},
		"refused for another reason":             {sqlstate("22P02"), nil},
		"refused, and no constraint is named":    {&serverError{code: "23514"}, nil},
		"refused again":                          {errCheck, []string{"1/0 data 23514 0"}},
		"an error of the moment the second time": {sqlstate("57P01"), nil},
		"a set-up that changed in between":       {sqlstate("42P01"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				now := errCheck
				w.db.refuse = func(id string) error {
					if id == "b" {
						return now
					}
					return nil
				}
				w.db.foresee = of("b")
				w.db.asks = func(_ []string, again bool) error {
					if now = errCheck; again {
						now = c.second
					}
					return nil
				}
				w.db.hook = func(context.Context) {
					now = errCheck
					if len(w.db.asked) > 0 {
						now = nil
					}
				}
				w.run(t, newPartition(t, recordsOf(0, good("a", "b", "c", "d")...)))
				equal(t, "dead letters", w.kafka.sent("dlq"), c.want)
				if got := w.told.homes()["row"]; got != 4-len(c.want) {
					t.Errorf("homes %v", w.told.homes())
				}
			})
		})
	}
}

func TestForesight_LostConnectionDeadLettersNone(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} { // the first and the second time
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.db.refuse, w.db.foresee = refusing(of("b", "c")), of("b", "c")
			w.db.asks = func(_ []string, again bool) error {
				if again == lost {
					return errors.New("lost")
				}
				return nil
			}
			w.run(t, newPartition(t, recordsOf(0, good("a", "b", "c", "d", "e")...)))
			equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/0 data 23514 0", "2/0 data 23514 0"}) // found by the search
			twice := map[string]int{}
			for _, ids := range w.db.writes {
				if len(ids) == 1 {
					twice[ids[0]]++
				}
			}
			if twice["b"] < 2 || twice["c"] < 2 || w.told.homes()["row"] != 3 {
				t.Errorf("lost at the second: %v: written alone %v, homes %v", lost, twice, w.told.homes())
			}
		})
	}
}

// TestForesight_UnwellTableHolds has a table that refuses everything from the second question on, until it is
// repaired.
func TestForesight_UnwellTableHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "b", "c", "d", "e")...))
		w.db.refuse, w.db.foresee = refusing(of("b", "c")), of("b", "c")
		mended := time.Now().Add(time.Hour)
		w.db.probe = func(time.Time) error {
			if w.db.probes >= 2 && time.Now().Before(mended) {
				if len(w.kafka.took)+len(p.committed) > 0 {
					t.Error("something was published or committed")
				}
				return sqlstate("42P01")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "held", w.told.held, []string{"database_refuses 42P01"})
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/0 data 23514 0", "2/0 data 23514 0"})
	})
}

// TestForesight_ProbesFirstWithoutAGoodRow has a batch in which all other rows are duplicates.
func TestForesight_ProbesFirstWithoutAGoodRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.db.refuse, w.db.foresee = refusing(of("x", "y")), of("x", "y")
		w.run(t, newPartition(t, recordsOf(0, good("a", "x", "b", "c")...)))
		probes := w.db.probes
		w.db.asks = func([]string, bool) error {
			if w.db.probes == probes {
				t.Error("asked before a probe")
			}
			return nil
		}
		w.run(t, newPartition(t, recordsOf(0, good("a", "y", "b", "c")...)))
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/0 data 23514 0", "1/0 data 23514 0"})
		if w.db.probes != probes+2 {
			t.Errorf("%d probes, then %d", probes, w.db.probes-probes)
		}
	})
}

func TestForesight_EarlierOfOneIdentityWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.db.refuse = refusing(of("x"))
		w.db.foresee = of("x", "a") // wrong about a
		other := strings.Replace(logOf("a"), "true", "false", 1)
		w.run(t, newPartition(t, recordsOf(0, logOf("b"), logOf("a"), logOf("x"), other, logOf("c"))))
		for _, ids := range w.db.asked {
			equal(t, "asked", ids, []string{"x"})
		}
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"2/0 data 23514 0", "3/0 conflict id_conflict 0"})
	})
}

func TestForesight_MostSuspectedWaitsForTheProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var all bool
		bad := func(id string) bool { return id == "b" || all && id != "g" }
		w.db.refuse, w.db.foresee = refusing(bad), bad
		mended := time.Now().Add(time.Hour)
		w.db.probe = func(time.Time) error {
			if all && time.Now().After(mended) {
				all = false
			}
			if all {
				return errCheck
			}
			return nil
		}
		w.run(t, newPartition(t, recordsOf(0, good("a", "b", "c")...)))
		all = true
		asked := len(w.db.asked)
		w.run(t, newPartition(t, recordsOf(0, good("d", "e", "f", "g")...)))
		equal(t, "held", w.told.held, []string{"database_refuses 23514"})
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/0 data 23514 0"})
		if len(w.db.asked) != asked {
			t.Errorf("asked about %v", w.db.asked[asked:])
		}
	})
}

func TestForesight_ReplayEndsAsTheSearchDoes(t *testing.T) {
	t.Parallel()
	for _, foresee := range []func(string) bool{nil, everyTenth} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(func(w *world) { w.config.Replay = true })
			w.db.refuse, w.db.foresee = refusing(everyTenth), foresee
			w.run(t, newPartition(t, recordsOf(0, good(named(30)...)...)))
			equal(t, "dead letters", w.kafka.sent("dlq"), []string{"3/0 data 23514 0", "13/0 data 23514 0", "23/0 data 23514 0"})
			equal(t, "parked", w.kafka.sent("parking"), nil)
		})
	}
}

// TestForesight_OnlyForCheckViolations has refusals that no CHECK makes, and one that names no constraint.
func TestForesight_OnlyForCheckViolations(t *testing.T) {
	t.Parallel()
	for _, err := range []error{sqlstate("23502"), sqlstate("23503"), sqlstate("25006"), sqlstate("P0001"), &unnamedError{"23514"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.db.foresee = of("b")
			w.db.refuse = func(id string) error {
				if id == "b" {
					return err
				}
				return nil
			}
			w.run(t, newPartition(t, recordsOf(0, good("a", "b", "c")...)))
			if len(w.db.looks)+len(w.db.asked) > 0 {
				t.Errorf("%v: looked for %v, asked about %v", err, w.db.looks, w.db.asked)
			}
		})
	}
}

// unnamedError has a code and names no constraint.
type unnamedError struct{ code string }

func (e *unnamedError) Error() string    { return e.code }
func (e *unnamedError) SQLState() string { return e.code }

// TestForesight_HomesAreTheSameWithout draws at random the rows that are bad, stored twice and foreseen.
func TestForesight_HomesAreTheSameWithout(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(r, "n")
		ids := rapid.SliceOfN(rapid.SampledFrom(named(max(1, n*3/4))), n, n).Draw(r, "ids")
		bad := rapid.SliceOfN(rapid.SampledFrom(ids), 0, n/2).Draw(r, "bad")
		odd := rapid.SliceOfN(rapid.SampledFrom(ids), 0, 2).Draw(r, "of another kind")
		guess := append(rapid.SliceOfN(rapid.SampledFrom(ids), 0, n).Draw(r, "guess"), bad[:rapid.IntRange(0, len(bad)).Draw(r, "right")]...)
		values := make([]string, n)
		for i, id := range ids {
			values[i] = logOf(id)
			if rapid.IntRange(0, 3).Draw(r, "other") == 0 {
				values[i] = strings.Replace(values[i], "true", "false", 1)
			}
		}
		play := func(foresee func(string) bool) (homes string) {
			w := newWorld()
			w.db.foresee = foresee
			w.db.refuse = func(id string) error {
				switch {
				case slices.Contains(odd, id):
					return sqlstate("22P02")
				case slices.Contains(bad, id):
					return errCheck
				}
				return nil
			}
			w.run(t, newPartition(t, recordsOf(0, values[:n/2]...), recordsOf(int64(n/2), values[n/2:]...)))
			dlq := w.kafka.sent("dlq")
			slices.Sort(dlq)
			return fmt.Sprint(w.told.homes(), dlq, w.kafka.sent("parking"), w.db.rows)
		}
		if with, without := play(of(guess...)), play(nil); with != without {
			r.Fatalf("with foresight %s\n      without %s", with, without)
		}
	})
}
