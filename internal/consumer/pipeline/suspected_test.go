package pipeline

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/errclass"
)

// TestProbe_AtTheTimeOfTheWholeBatch has a CHECK on the time. A refused decision is left over alone, once because
// another one was bad while it was suspected, and once because no question was possible. The table takes no good row
// at its time.
func TestProbe_AtTheTimeOfTheWholeBatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ids  []string
		asks error
		dead int
	}{
		"another is found meanwhile": {ids: []string{"a", "b", "x", "c", "y"}, dead: 2},
		"nobody is asked about":      {ids: []string{"a", "b", "x", "c"}, asks: errors.New("no PL/pgSQL"), dead: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.db.foresee = of("x")
				w.db.asks = func([]string, bool) error { return c.asks }
				w.db.refuse = func(id string) error {
					switch id {
					case "x":
						return errCheck
					case "y":
						return sqlstate("22P02")
					}
					return nil
				}
				w.db.probe = func(at time.Time) error {
					if at.Year() != 2026 {
						t.Errorf("a probe at %v", at)
					}
					if at.Year() < 2026 {
						return errCheck
					}
					return nil
				}
				values := good(c.ids...)
				values[2] = strings.Replace(values[2], "2026", "1999", 1)
				p := newPartition(t, recordsOf(0, values...))
				defer time.AfterFunc(time.Hour, p.depart).Stop()
				w.run(t, p)
				equal(t, "held", w.told.held, nil)
				if h := w.told.homes(); h["row"] != 3 || h["dead_letter"] != c.dead {
					t.Errorf("homes %v", h)
				}
			})
		})
	}
}

// TestForesight_MostSuspectedOnceProbed has batches of which two thirds are bad, one after another.
func TestForesight_MostSuspectedOnceProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		bad := func(id string) bool { return id[len(id)-1]%3 != 0 }
		w.db.refuse, w.db.foresee = refusing(bad), bad
		ids := named(300)
		w.run(t, newPartition(t, recordsOf(0, good(ids[:100]...)...), recordsOf(100, good(ids[100:200]...)...), recordsOf(200, good(ids[200:]...)...)))
		if h := w.told.homes(); h["row"] != 120 || h["dead_letter"] != 180 {
			t.Errorf("homes %v", h)
		}
		if n := len(w.db.writes); n != 6 { // for each batch one write that fails and one of the others
			t.Errorf("%d writes of %d rows", n, sum(w.db.writes))
		}
	})
}

// TestForesight_UntimelyProbeHoldsNobody has a batch mostly of a time that the table does not take yet.
func TestForesight_UntimelyProbeHoldsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		cut := &serverError{code: "23514", constraint: errclass.BeforeCut}
		w.db.foresee = of("x", "y")
		w.db.refuse = func(id string) error {
			switch {
			case id == "x" || id == "y":
				return errCheck
			case strings.HasPrefix(id, "d"):
				return cut
			}
			return nil
		}
		w.run(t, newPartition(t, recordsOf(0, good("a", "x", "b")...)))
		w.db.probe = func(at time.Time) error {
			if at.Year() == 2026 {
				return cut
			}
			return nil
		}
		w.run(t, newPartition(t, recordsOf(0, append(good("c", "y"), good(named(5)...)...)...)))
		equal(t, "held", w.told.held, nil)
		if h := w.told.homes(); h["row"] != 3 || h["dead_letter"] != 2 || h["parked"] != 5 {
			t.Errorf("homes %v", h)
		}
	})
}

// TestForesight_EndsWhenWrongForAll has a table that repairs bad rows, from the second batch on.
func TestForesight_EndsWhenWrongForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.db.refuse, w.db.foresee = refusing(everyTenth), everyTenth
		ids := named(40)
		w.run(t, newPartition(t, recordsOf(0, good(ids[:10]...)...)))
		w.db.refuse = nil
		w.run(t, newPartition(t, recordsOf(10, good(ids[10:20]...)...), recordsOf(20, good(ids[20:30]...)...), recordsOf(30, good(ids[30:]...)...)))
		if h := w.told.homes(); h["row"] != 39 || h["dead_letter"] != 1 {
			t.Errorf("homes %v", h)
		}
		equal(t, "constraints", w.db.looks, []string{"k", "k"})
		if len(w.db.asked) != 3 {
			t.Errorf("asked about %v", w.db.asked)
		}
	})
}
