package pipeline

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/errclass"
)

func TestPortion_HalvesAndGrows(t *testing.T) {
	t.Parallel()
	const slow = -1 // a row takes twice as long
	for name, tc := range map[string]struct {
		codes []string // of writes of a full portion that fail, of 5000 rows at first
		took  []int    // then: rows that were written at the same pace, or slow
		want  int      // of 5000
	}{
		"at first there is no limit":             {nil, nil, 5000},
		"what is not about size":                 {[]string{"08006", "23514", "42P01", "40001", "53300"}, nil, 5000},
		"out of memory":                          {[]string{"53200"}, nil, 2500},
		"cancelled for its time":                 {[]string{"57014"}, nil, 2500},
		"our own deadline":                       {[]string{errclass.CodeTimeout}, nil, 2500},
		"again and again":                        {[]string{"53200", "57014", "53200"}, nil, 625},
		"not below the floor":                    {slices.Repeat([]string{"53200"}, 20), nil, 64},
		"a quarter more for a full portion":      {[]string{"53200"}, []int{2500}, 3125},
		"another quarter":                        {[]string{"53200"}, []int{2500, 3125}, 3906},
		"a portion that was not full":            {[]string{"53200"}, []int{2499, 100}, 2500},
		"never beyond the batch":                 {[]string{"53200"}, []int{2500, 3125, 3906, 4882, 5000}, 5000},
		"a step down where rows take longer":     {[]string{"53200"}, []int{2500, slow}, 2500},
		"and it is tried again":                  {[]string{"53200"}, []int{2500, slow, 2500}, 3125},
		"a first portion has nothing to compare": {[]string{"53200"}, []int{slow}, 3125},
		"not below the floor where it is slow":   {slices.Repeat([]string{"53200"}, 20), []int{64, slow, slow, slow, slow, 64, slow}, 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var p portion
				for _, code := range tc.codes {
					v, _ := errclass.Lookup(code)
					p.failed(p.of(5000), v)
				}
				pace := time.Millisecond
				for _, rows := range tc.took {
					from := time.Now()
					if rows == slow {
						rows, pace = p.of(5000), 2*pace
					}
					time.Sleep(time.Duration(rows) * pace)
					p.took(rows, time.Since(from))
				}
				if got := p.of(5000); got != tc.want {
					t.Errorf("%d rows, want %d", got, tc.want)
				}
				if got := p.of(1); got != 1 {
					t.Errorf("%d of one row", got)
				}
			})
		})
	}
}

func TestPortion_IgnoresSmallAndEarlierWrites(t *testing.T) {
	t.Parallel()
	v, _ := errclass.Lookup("53200")
	var p portion
	if p.failed(leastPortion, v); p.of(5000) != 5000 {
		t.Errorf("%d rows after a failure of %d", p.of(5000), leastPortion)
	}
	for range 4 { // partitions that wrote at the same time
		p.failed(5000, v)
	}
	if p.of(5000) != 2500 {
		t.Errorf("%d rows after four writes of 5000 failed at once", p.of(5000))
	}
}

// TestPortion_LargeBatchInSeveralTransactions has one bad row at the end of a batch that is larger than a
// transaction.
func TestPortion_LargeBatchInSeveralTransactions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.BatchBytes = 1 << 30 })
		ids := named(2*mostPortion + 10)
		bad := ids[len(ids)-1]
		w.db.refuse, w.db.foresee = refusing(of(bad)), of(bad)
		w.run(t, newPartition(t, recordsOf(0, good(ids...)...)))
		if got := sizes(w.db.writes); !slices.Equal(got, []int{5000, 5000, 10, 9}) {
			t.Errorf("writes of %v rows", got)
		}
		if h := w.told.homes(); h["row"] != len(ids)-1 || h["dead_letter"] != 1 {
			t.Errorf("homes %v", h)
		}
	})
}

// sizes are the rows of each write.
func sizes(writes [][]string) (all []int) {
	for _, write := range writes {
		all = append(all, len(write))
	}
	return all
}

// atMost refuses writes of more rows.
func (t *table) atMost(rows int, code string) {
	t.hook = func(context.Context) {
		last := len(t.writes[len(t.writes)-1])
		t.away = func() error {
			if last > rows {
				return sqlstate(code)
			}
			return nil
		}
	}
	t.probe = func(time.Time) error { return nil }
}

func TestPortion_RemembersATooLargeWrite(t *testing.T) {
	t.Parallel()
	for code, want := range map[string][]int{
		"53200": {400, 200, 100, 100, 100, 100 /* and the second batch */, 200, 100, 100, 100, 100},
		"57014": {400, 400, 400, 200, 200, 200 /* searched down to a single one: nobody is to blame */},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ids := named(800)
				w, p := newWorld(), newPartition(t, recordsOf(0, good(ids[:400]...)...), recordsOf(400, good(ids[400:]...)...))
				w.db.atMost(100, code)
				w.run(t, p)
				if h := w.told.homes(); h["row"] != 800 || p.last() != 800 {
					t.Errorf("homes %v, committed %d", h, p.last())
				}
				if got := sizes(w.db.writes); !slices.Equal(got[:len(want)], want) || !slices.Equal(got[len(got)-2:], []int{100, 100}) {
					t.Errorf("writes of %v rows, want %v", got, want)
				}
				if n := len(w.kafka.took); n != 0 {
					t.Errorf("%d forwarded", n)
				}
			})
		})
	}
}

func TestPortion_RestIsParkedAsOneBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.ParkBatches = 1 })
		w.pipe.portion.most = 100
		ids := named(800)
		p := newPartition(t, recordsOf(0, good(ids[:400]...)...), recordsOf(400, good(ids[400:]...)...))
		back := time.Now().Add(time.Hour)
		w.db.away = func() error {
			if n := len(w.db.writes); n > 1 && time.Now().Before(back) {
				return sqlstate("08006")
			}
			return nil
		}
		took := w.run(t, p)
		// One batch is parked after three tries of its second portion, the next one is held.
		if h := w.told.homes(); h["row"] != 500 || h["parked"] != 300 || p.last() != 800 {
			t.Errorf("homes %v, committed %d", h, p.last())
		}
		equal(t, "held", w.told.held, []string{"database_away 08006"})
		if took < time.Hour || took > time.Hour+time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestPortion_SearchesOnlyTheFailedOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good(named(400)...)...))
		w.pipe.portion.most = 100
		w.db.refuse, w.db.tells = only("d150", "23514"), truly
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"150/0 data 23514 0"})
		if h := w.told.homes(); h["row"] != 399 {
			t.Errorf("homes %v", h)
		}
		if got, want := sizes(w.db.writes), []int{100, 125, 124, 1, 1, 125, 50}; !slices.Equal(got, want) {
			t.Errorf("writes of %v rows, want %v", got, want)
		}
	})
}

func TestPortion_OneSlowRecordHardlyShrinksIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good(named(800)...)...))
		w.db.refuse = only("d333", "57014")
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"333/0 data too_slow 0"})
		if h := w.told.homes(); h["row"] != 799 || p.last() != 800 {
			t.Errorf("homes %v, committed %d", h, p.last())
		}
		if got := w.pipe.portion.of(800); got != 400 {
			t.Errorf("the next portion is %d, want one step down", got)
		}
	})
}
