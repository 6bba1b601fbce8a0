package complete

import (
	"testing"
	"time"

	"docket/internal/history/reader"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// one is a look at a single partition.
func one(end, committed int64) map[place]seen {
	return map[place]seen{{"logs", 0}: {end: end, committed: committed, hasCommit: true}}
}

// follow plays looks at one partition, 5 s apart, each with its end and its committed offset.
func follow(looks ...[2]int64) *track {
	t := newTrack(0)
	before := map[place]int64{}
	for i, l := range looks {
		t.look(at(5*i), before, one(l[0], l[1]))
		before = map[place]int64{{"logs", 0}: l[1]}
	}
	return t
}

func TestTrack_CompleteUntil(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		looks []([2]int64)
		want  time.Time
	}{
		"all is stored":                           {[][2]int64{{10, 10}}, at(0)},
		"something waits":                         {[][2]int64{{10, 9}}, time.Time{}},
		"an older sample is covered":              {[][2]int64{{10, 9}, {20, 12}}, at(0)},
		"it does not go back":                     {[][2]int64{{10, 10}, {20, 12}}, at(0)},
		"it goes on":                              {[][2]int64{{10, 9}, {20, 12}, {30, 20}}, at(5)},
		"the newest that is covered":              {[][2]int64{{10, 0}, {10, 0}, {10, 10}}, at(10)},
		"offsets were moved back":                 {[][2]int64{{10, 10}, {10, 2}}, at(0)},
		"the log was cut below what is committed": {[][2]int64{{10, 10}, {8, 10}}, at(0)},
		"the cut log has grown":                   {[][2]int64{{10, 10}, {8, 10}, {12, 10}, {12, 10}}, at(0)},
		"the cut log is read again":               {[][2]int64{{10, 10}, {8, 10}, {12, 10}, {12, 12}}, at(15)},
		"the cut log is read again in part":       {[][2]int64{{10, 10}, {8, 10}, {12, 9}, {12, 9}}, at(5)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := follow(c.looks...).until; !got.Equal(c.want) {
				t.Errorf("complete until %v, want %v", got, c.want)
			}
		})
	}
}

func TestTrack_CutLogBeforeTheFirstLook(t *testing.T) {
	t.Parallel()
	k := newTrack(0)
	k.look(at(0), map[place]int64{{"logs", 0}: 100}, one(80, 100))
	k.look(at(5), map[place]int64{{"logs", 0}: 100}, one(120, 100))
	if !k.until.IsZero() {
		t.Errorf("complete until %v, although 80 to 100 are new records", k.until)
	}
}

func TestTrack_KeepsAMargin(t *testing.T) {
	t.Parallel()
	k := newTrack(3 * time.Second)
	k.look(at(10), nil, one(5, 5))
	if !k.until.Equal(at(7)) {
		t.Errorf("complete until %v", k.until)
	}
}

func TestTrack_AddedPartition(t *testing.T) {
	t.Parallel()
	k := newTrack(0)
	a, b := place{"logs", 0}, place{"logs", 1}
	k.look(at(0), nil, map[place]seen{a: {end: 10, committed: 5, hasCommit: true}})
	k.look(at(5), nil, map[place]seen{a: {end: 10, committed: 10, hasCommit: true}, b: {end: 3}})
	if !k.until.IsZero() {
		t.Errorf("complete until %v, and the added partition may have had records then", k.until)
	}
	k.look(at(10), nil, map[place]seen{a: {end: 12, committed: 10, hasCommit: true}, b: {end: 4, committed: 3, hasCommit: true}})
	if !k.until.Equal(at(5)) {
		t.Errorf("complete until %v", k.until)
	}
}

func TestTrack_PartitionWithoutCommit(t *testing.T) {
	t.Parallel()
	p := place{"logs", 0}
	for name, c := range map[string]struct {
		seen   seen
		waits  int64
		covers bool
	}{
		"empty":                  {seen{}, 0, true},
		"records":                {seen{end: 7}, 7, false},
		"retention took all":     {seen{start: 7, end: 7}, 0, true},
		"retention took some":    {seen{start: 3, end: 7}, 4, false},
		"deleted before reading": {seen{start: 5, end: 7, committed: 2, hasCommit: true}, 2, false},
		"all deleted":            {seen{start: 7, end: 7, committed: 2, hasCommit: true}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTrack(0)
			k.look(at(0), nil, map[place]seen{p: c.seen})
			if k.behind != c.waits || !k.until.IsZero() != c.covers {
				t.Errorf("%d wait, complete until %v", k.behind, k.until)
			}
		})
	}
}

func TestTrack_Held(t *testing.T) {
	t.Parallel()
	looks := [][2]int64{{10, 5}, {11, 5}, {12, 5}, {13, 5}, {14, 5}, {15, 5}, {16, 5}}
	if k := follow(looks[:6]...); k.held {
		t.Error("it is held after 25 s")
	}
	if k := follow(looks...); !k.held {
		t.Error("it is not held after 30 s without progress")
	}
	if k := follow(append(looks, [2]int64{17, 6})...); k.held {
		t.Error("it is held although it makes progress")
	}
	idle := [][2]int64{{5, 5}, {5, 5}, {5, 5}, {5, 5}, {5, 5}, {5, 5}, {5, 5}, {6, 5}}
	if k := follow(idle...); k.held {
		t.Error("it is held although its first record has just come")
	}
}

func TestTrack_Recent(t *testing.T) {
	t.Parallel()
	if k := follow([2]int64{10, 9}, [2]int64{20, 10}); !k.recent {
		t.Error("the last look but one is covered")
	}
	if k := follow([2]int64{10, 9}, [2]int64{20, 9}, [2]int64{30, 10}); k.recent {
		t.Error("only an older look is covered")
	}
}

func TestTrack_ManySamples(t *testing.T) {
	t.Parallel()
	looks := [][2]int64{}
	for i := range 5000 {
		looks = append(looks, [2]int64{int64(i + 1), 0})
	}
	k := follow(looks...)
	if len(k.samples) > mostSamples {
		t.Errorf("it keeps %d samples", len(k.samples))
	}
	k.look(at(25000), map[place]int64{{"logs", 0}: 0}, one(5000, 5000))
	if !k.until.Equal(at(25000)) {
		t.Errorf("complete until %v", k.until)
	}
}

func TestTrack_ClockJumps(t *testing.T) {
	t.Parallel()
	now := time.Now()
	if jumped(now, now.Add(5*time.Second)) {
		t.Error("a clock that goes on jumps")
	}
	later := now.Add(5 * time.Second)
	moved := time.Date(later.Year()+1, 1, 1, 0, 0, 0, 0, time.UTC) // without a monotonic reading the two agree
	if jumped(now, moved) {
		t.Error("times without a monotonic reading cannot differ")
	}
}

func TestPace_ETA(t *testing.T) {
	t.Parallel()
	var p pace
	for i, sum := range []int64{0, 100, 300} {
		p.add(at(5*i), sum)
	}
	e := p.eta(600)
	if *e.likely != 20_000 || *e.low != 15_000 || *e.high != 30_000 {
		t.Errorf("%d, %d to %d", *e.likely, *e.low, *e.high)
	}
	if e := p.eta(0); *e.likely != 0 || *e.high != 0 {
		t.Error("nothing waits, so it takes no time")
	}
	p.add(at(15), 300)
	if e := p.eta(600); e.high != nil || *e.likely != 30_000 {
		t.Errorf("%v", e)
	}
	p.add(at(20), 200)
	if e := p.eta(600); e.likely != nil {
		t.Error("an estimate comes from one look")
	}
}

func TestBegun_Told(t *testing.T) {
	t.Parallel()
	if (Begun{}).Told() || !(Begun{told: true}).Told() || !(Begun{given: &reader.Completeness{}}).Told() {
		t.Error("one ledger")
	}
	if (Begun{shards: []Begun{{told: true}, {}}}).Told() || !(Begun{shards: []Begun{{told: true}, {told: true}}}).Told() {
		t.Error("several")
	}
}

// A clock that was ahead for a while is set back: the time until which all is stored was by that clock.
func TestTrack_ClockSetBack(t *testing.T) {
	t.Parallel()
	k := follow([2]int64{10, 10})
	k.clockMoved(-time.Hour)
	k.look(at(5), map[place]int64{{"logs", 0}: 10}, one(20, 10))
	if want := at(0).Add(-time.Hour); !k.until.Equal(want) {
		t.Errorf("something waits: complete until %v, want %v", k.until, want)
	}
	k.look(at(10), map[place]int64{{"logs", 0}: 10}, one(20, 20))
	if !k.until.Equal(at(10)) {
		t.Errorf("all is stored: complete until %v, want %v", k.until, at(10))
	}
	k = follow([2]int64{10, 10})
	k.clockMoved(time.Hour)
	if !k.until.Equal(at(0)) {
		t.Errorf("the clock was behind: complete until %v, want %v", k.until, at(0))
	}
}
