package lookup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/history/reader"
	"docket/internal/record/envelope"
)

// quietWorld has a decision with a row, and a watch that says whether something waits.
func quietWorld(t *testing.T, quiet bool) (*world, *Look) {
	t.Helper()
	w := newWorld(t)
	w.rows = []reader.Decision{{Row: reader.Row{ID: "d-1", Time: noon, Topic: "logs"}}}
	l := w.look()
	l.Quiet = func() Quiet {
		return Quiet{Until: noon.Add(-7 * time.Second), Nothing: quiet, Spools: Noted{Known: true}}
	}
	return w, l
}

func TestAround_AsksNoKafka(t *testing.T) {
	t.Parallel()
	w, l := quietWorld(t, true)
	asked := 0
	l.Topics = func() (Topics, func(), error) { asked++; return w, func() {}, nil }
	w.letters = []ledger.Entry{{Letter: ledger.Letter{ID: "letter", DecisionID: "d-1", Origin: envelope.Origin{Topic: "other"}}}}
	a, ok := l.Around(t.Context(), "d-1")
	if !ok || asked != 0 || len(a.Rows) != 1 || len(a.Letters) != 1 {
		t.Errorf("%v, asked Kafka %d times: %+v", ok, asked, a)
	}
	named := 0
	for _, p := range a.Looked {
		if p.Note == "0 up to 2026-05-01T11:59:53Z" {
			named++
		}
	}
	if named != 4 {
		t.Errorf("%d topics are named with the time until which they were read: %v", named, a.Looked)
	}
	whole := l.Find(t.Context(), "d-1")
	if len(whole.Looked)+len(whole.NotLooked) != len(a.Looked)+len(a.NotLooked) {
		t.Errorf("the whole look names other places:\n%v\n%v", whole.Looked, a.Looked)
	}
}

func TestAround_LooksWhereSomethingWaits(t *testing.T) {
	t.Parallel()
	_, l := quietWorld(t, false)
	if _, ok := l.Around(t.Context(), "d-1"); ok {
		t.Error("it needs no look although something waits")
	}
	asked := 0
	find := l.Topics
	l.Topics = func() (Topics, func(), error) { asked++; return find() }
	if a, err := NewShared(l).Around(t.Context(), "d-1"); err != nil || asked != 1 || len(a.Rows) != 1 {
		t.Errorf("asked Kafka %d times: %+v, %v", asked, a, err)
	}
	l.Quiet = nil
	if _, ok := l.Around(t.Context(), "d-1"); ok {
		t.Error("it needs no look although nobody knows what waits")
	}
}

// TestAround_SlowKafka names the topics instead of waiting for them.
func TestAround_SlowKafka(t *testing.T) {
	t.Parallel()
	w, l := quietWorld(t, false)
	w.left = []ledger.Surplus{{Topic: "dlq", First: 3, Next: 3, Last: 5, Letters: 3, State: ledger.SurplusOpen}}
	l.Quiet = func() Quiet { return Quiet{Slow: true} }
	l.Topics = func() (Topics, func(), error) { t.Error("it asks Kafka"); return w, func() {}, nil }
	a, ok := l.Around(t.Context(), "d-1")
	slow := 0
	for _, g := range a.NotLooked {
		if strings.Contains(g.Why, "too slowly") {
			slow++
		}
	}
	if !ok || len(a.Rows) != 1 || slow != 5 {
		t.Errorf("%v, %d topics are named: %v", ok, slow, a.NotLooked)
	}
	l.Quiet = func() Quiet { return Quiet{Slow: true, Nothing: true, Until: noon} }
	if a, _ := l.Around(t.Context(), "d-1"); len(a.NotLooked) != 1 {
		t.Errorf("only the letters that a desk left were not searched: %v", a.NotLooked)
	}
}

func TestAround_LettersLeftInKafka(t *testing.T) {
	t.Parallel()
	w, l := quietWorld(t, true)
	w.left = []ledger.Surplus{{Topic: "dlq", First: 3, Next: 3, Last: 5, Letters: 3, State: ledger.SurplusOpen}}
	if _, ok := l.Around(t.Context(), "d-1"); ok {
		t.Error("it needs no look although a desk left dead letters in Kafka")
	}
}

func TestAround_SaysWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	w, l := quietWorld(t, true)
	w.noLedger = errBound
	a, ok := l.Around(t.Context(), "d-1")
	if !ok || a.Complete() || !strings.Contains(a.NotLooked[0].Name, "ledger") {
		t.Errorf("%v: %v", ok, a.NotLooked)
	}
}

// TestAround_SameIDShared: requests for one id share a look, and none has one that began before it.
func TestAround_SameIDShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		release := make(chan struct{})
		s := &Shared{turn: make(chan struct{}, 1), around: func(_ context.Context, id string) (Answer, bool) {
			looks++
			n := looks
			<-release
			return Answer{ID: id, Rows: make([]reader.Decision, n)}, true
		}}
		var asked sync.WaitGroup
		ask := func(n, want int) {
			for range n {
				asked.Go(func() {
					if a, err := s.Around(t.Context(), "d-1"); err != nil || len(a.Rows) < want {
						t.Errorf("the answer is of look %d, want %d, %v", len(a.Rows), want, err)
					}
				})
			}
			synctest.Wait()
		}
		ask(1, 1)
		ask(100, 2) // the first look began before they came
		close(release)
		asked.Wait()
		if looks != 2 || len(s.near) != 0 {
			t.Errorf("%d looks, %d ids are kept", looks, len(s.near))
		}
	})
}

// TestAround_PanicHoldsNobody: a look that ends in a panic answers those that wait for it. They look by themselves.
func TestAround_PanicHoldsNobody(t *testing.T) {
	t.Parallel()
	s := &Shared{around: func(context.Context, string) (Answer, bool) { panic("on purpose") }}
	one, at := s.approach("d-1")
	other, _ := s.approach("d-1")
	func() {
		defer func() { _ = recover() }() // a server recovers, too
		s.lookAround(t.Context(), "d-1", at)
	}()
	if len(one.done) != 1 || len(other.done) != 1 {
		t.Error("a request waits for ever")
	}
}

// TestAround_LeaverHoldsNobody: a request that gives up does not stop the others.
func TestAround_LeaverHoldsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &Shared{turn: make(chan struct{}, 1), around: func(ctx context.Context, id string) (Answer, bool) {
			<-release
			return Answer{ID: id}, ctx.Err() == nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var asked sync.WaitGroup
		asked.Go(func() {
			if _, err := s.Around(ctx, "d-1"); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		})
		synctest.Wait()
		asked.Go(func() {
			if a, err := s.Around(t.Context(), "d-1"); err != nil || a.ID != "d-1" {
				t.Errorf("%+v, %v", a, err)
			}
		})
		synctest.Wait()
		cancel()
		close(release)
		asked.Wait()
	})
}

// TestAround_LateScanAnswers has a scan answer for ids that it did not meet, for five seconds.
func TestAround_LateScanAnswers(t *testing.T) {
	t.Parallel()
	w, l := quietWorld(t, false)
	at, asked, places := noon, 0, 0
	l.Now = func() time.Time { return at }
	find := l.Topics
	l.Topics = func() (Topics, func(), error) { asked++; return find() }
	s := NewShared(l)
	w.put("logs", log("d-2", ""))
	w.put("dlq", log("d-3", ""))
	for i, c := range []struct {
		act   func()
		id    string
		asks  bool
		found int
	}{
		{func() {}, "d-1", true, 0},
		{func() {}, "d-1", false, 0},
		{func() {}, "d-4", false, 0},
		{func() { at = at.Add(4 * time.Second) }, "d-1", false, 0},
		{func() {}, "d-2", true, 1},
		{func() {}, "d-3", true, 1},
		{func() { at = at.Add(4 * time.Second) }, "d-1", false, 0},
		{func() { at = at.Add(2 * time.Second) }, "d-1", true, 0},
		{func() { at = at.Add(-time.Second) }, "d-1", true, 0}, // a clock that was set back
		{func() { w.broken["parking"] = errors.New("away"); at = at.Add(7 * time.Second) }, "d-1", true, 0},
		{func() {}, "d-1", true, 0}, // a scan with a gap answers for nobody
		{func() { delete(w.broken, "parking") }, "d-1", true, 0},
		{func() { w.noLedger = errors.New("away") }, "d-1", true, 0},
		{func() { w.noLedger = nil }, "d-1", true, 0},
		{func() {}, "d-1", false, 0},
		{func() {
			w.left = []ledger.Surplus{{Topic: "dlq", First: 0, Next: 0, Last: 0, Letters: 1, State: ledger.SurplusOpen}}
		}, "d-1", true, 0},
	} {
		c.act()
		before := asked
		a, err := s.Around(t.Context(), c.id)
		if err != nil || (asked > before) != c.asks || len(a.Found) != c.found || len(a.Rows) != 1 {
			t.Errorf("question %d, for %s: asked Kafka %d times: %+v, %v", i, c.id, asked-before, a, err)
		}
		if len(a.Looked)+len(a.NotLooked) < places {
			t.Errorf("question %d names fewer places: %v, %v", i, a.Looked, a.NotLooked)
		}
		places = max(places, len(a.Looked))
	}
}

// TestAround_MovedSinceTheScan has a record leave a topic after a scan met it. The next scan forgets it there, and cannot read
// the topic to which it moved.
func TestAround_MovedSinceTheScan(t *testing.T) {
	t.Parallel()
	w, l := quietWorld(t, false)
	asked := 0
	find := l.Topics
	l.Topics = func() (Topics, func(), error) { asked++; return find() }
	s := NewShared(l)
	ask := func(id string) (Answer, bool) {
		t.Helper()
		before := asked
		a, err := s.Around(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return a, asked > before
	}
	w.put("logs", log("d-2", ""))
	w.put("logs", log("d-3", ""))
	ask("d-1")
	if _, asks := ask("d-1"); asks {
		t.Error("the first scan does not answer")
	}
	w.put("parking", log("d-2", ""))
	w.committed["logs"], w.broken["parking"] = 1, errors.New("away")
	ask("d-3")
	if a, asks := ask("d-2"); !asks || a.Complete() {
		t.Errorf("an earlier scan answers for a record that has moved since: %+v", a)
	}
	delete(w.broken, "parking")
	if a, asks := ask("d-2"); !asks || len(a.Found) != 1 {
		t.Errorf("%+v", a)
	}
}

// TestAround_SpoolsBeforeTheScan has a scan answer for nobody while a spool of the host sends what it has.
func TestAround_SpoolsBeforeTheScan(t *testing.T) {
	t.Parallel()
	w, _ := quietWorld(t, false)
	w.spool("1_a_1.jsonl.gz", spooled(t, "parking", log("d-2", "")))
	l := w.look()
	l.Quiet = func() Quiet { return Quiet{Until: noon} }
	asked := 0
	find := l.Topics
	l.Topics = func() (Topics, func(), error) { asked++; return find() }
	s := NewShared(l)
	for range 2 {
		if _, err := s.Around(t.Context(), "d-1"); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 2 {
		t.Errorf("asked Kafka %d times", asked)
	}
}

// TestRows_GapsAreOfTheTable: until when the answer is complete is not known then.
func TestRows_GapsAreOfTheTable(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string]func(context.Context, string) ([]reader.Decision, error){
		"the table is away": func(context.Context, string) ([]reader.Decision, error) { return nil, errors.New("away") },
		"a day is not readable": func(ctx context.Context, _ string) ([]reader.Decision, error) {
			var parts reader.Parts
			parts.Miss("day 2026-03-04", errors.New("no right"))
			return []reader.Decision{{Row: reader.Row{ID: "d-1"}}}, reader.Told(ctx, parts.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			l := w.look()
			l.Rows = rows
			if a := l.Find(t.Context(), "d-1"); !reader.RowsLack(a.NotLooked) || !a.Whole {
				t.Errorf("%+v", a.NotLooked)
			}
			shards := &Look{Shards: []ShardLook{{"a", w.look()}, {"b", l}}}
			if a := shards.Find(t.Context(), "d-1"); !reader.RowsLack(a.NotLooked) || !a.Whole {
				t.Errorf("shards: %+v", a.NotLooked)
			}
		})
	}
}

// TestFind_ReplayerSpoolsMeanwhile has the replayer on this host spool a parked record while an answer reads, and commit it.
func TestFind_ReplayerSpoolsMeanwhile(t *testing.T) {
	t.Parallel()
	const id = "aaaaaaaaaaaaaaaa"
	w := newWorld(t)
	w.put("parking", log("d-1", ""))
	w.committed["parking"], w.notes = 0, map[string]string{}
	dir := w.spool(".lock", []byte(id+" 1\n"))
	w.moved = func(asked string) {
		if asked == "committed parking" || asked == "committed logs" {
			return
		}
		if asked == "committed dlq" { // from here on: spooled, and committed
			if err := os.WriteFile(filepath.Join(dir, "1_a_1.jsonl.gz"), spooled(t, "dlq", log("d-1", "")), 0o600); err != nil {
				t.Error(err)
			}
			w.committed["parking"], w.notes["parking"] = 1, "docket1 "+id+".7.1"
		}
	}
	if a := w.find(); a.Nowhere() {
		t.Errorf("found nowhere, and looked at %v", a.Looked)
	}
}
