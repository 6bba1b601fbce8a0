package complete

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

// model is a small Docket. Between any two requests of a watch or of an answer some of its events happen.
type model struct {
	t     *rapid.T
	dice  *rand.Rand
	mu    sync.Mutex // a watch asks for starts and ends at once
	clock int

	source   [][]int // ids by partition and offset
	carried  []int   // offsets of which the consumer has found homes
	done     []int   // and that it has committed; -1: none
	parking  []int
	replayed int
	replDone int
	dead     []int
	entered  int
	deskDone int
	letters  map[int]bool // open ones of the ledger
	rows     map[int]bool
	reached  map[int]int  // clock at which an id came to Kafka first
	counted  map[int]bool // letters of the last question to the ledger
	ids      int

	spools     bool       // some homes are spools, and programs fail
	olds       bool       // some programs are of an earlier release
	programs   []*spooler // consumers; the last one is the replayer
	owner      []int      // the consumer that has a partition
	notes      []string   // beside what is committed, by partition
	parkedNote string     // the replayer's
	spooled    map[int]bool
	turns      map[int]int    // by partition
	reachedBy  map[[2]int]int // committed offsets, by partition and turn
}

func newModel(t *rapid.T) *model {
	m := &model{t: t, dice: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), letters: map[int]bool{}, rows: map[int]bool{}, reached: map[int]int{}, spooled: map[int]bool{}, turns: map[int]int{}, reachedBy: map[[2]int]int{}}
	m.spools = m.draw(1) == 0
	m.olds = m.draw(2) == 0
	for n := range 2 + m.draw(2) {
		s := &spooler{m: m, id: "spool" + strconv.Itoa(n)}
		s.start()
		m.programs = append(m.programs, s)
	}
	for range 1 + m.draw(2) {
		m.addPartition()
	}
	return m
}

// draw returns 0 to n. Rapid itself may be asked by one goroutine alone, and a watch asks by several.
func (m *model) draw(n int) int { return m.dice.IntN(n + 1) }

func (m *model) now() time.Time { return time.Unix(int64(m.clock), 0) }

func (m *model) addPartition() {
	m.source, m.carried, m.done, m.notes, m.owner = append(m.source, nil), append(m.carried, 0), append(m.done, -1), append(m.notes, ""), append(m.owner, 0)
}

// live lets some events happen.
func (m *model) live() {
	for range m.draw(8) {
		m.clock++
		m.event()
	}
	m.clock++
}

func (m *model) event() {
	p := m.draw(len(m.source) - 1)
	kinds := 9
	if m.spools {
		kinds = 15
	}
	switch m.draw(kinds) {
	case 0, 1:
		m.ids++
		m.reached[m.ids] = m.clock
		m.source[p] = append(m.source[p], m.ids)
	case 2, 3:
		if m.carried[p] < len(m.source[p]) {
			at := m.carried[p]
			m.carried[p]++
			m.home(inSpool{m.source[p][at], p, m.turns[p], at}, m.programs[m.owner[p]])
		}
	case 4:
		for p := range m.source {
			m.commit(p)
		}
	case 5:
		for range m.draw(3) {
			if m.replayed < len(m.parking) {
				at := m.replayed
				m.replayed++
				m.home(inSpool{m.parking[at], -1, m.turns[-1], at}, m.replayer())
			}
		}
		if m.draw(1) == 0 {
			m.replDone, m.parkedNote = m.replayed, m.replayer().text()
			m.reachedBy[[2]int{-1, m.turns[-1]}] = m.replDone
		}
	case 6:
		for range m.draw(3) {
			if m.entered < len(m.dead) {
				m.letters[m.dead[m.entered]] = true
				m.entered++
			}
		}
		if m.draw(1) == 0 {
			m.deskDone = m.entered
		}
	case 7:
		for id := range m.ids + 1 { // a retry
			if m.letters[id] {
				m.source[p] = append(m.source[p], id)
				break
			}
		}
	case 8:
		for id := range m.rows {
			delete(m.letters, id)
		}
	case 9:
		if len(m.source) < 4 {
			m.addPartition()
		}
	case 10, 14:
		for _, s := range m.programs {
			switch {
			case m.draw(2) == 0:
			case s.keep == nil && s.old:
			case s.keep == nil:
				s.start()
			default:
				s.recover()
			}
		}
	case 11:
		m.commit(p)
	case 12:
		m.assign(p)
	case 13, 15:
		m.fail(m.draw(len(m.programs) - 1))
	}
}

// drain stores everything. So each decision that waits is late, and a count that lacks one shows.
func (m *model) drain() {
	for p := range m.source {
		for _, id := range m.source[p][m.carried[p]:] {
			m.rows[id] = true
		}
	}
	for _, id := range append(m.parking[m.replayed:], m.dead...) {
		m.rows[id] = true
	}
	for _, s := range m.programs {
		for _, r := range s.spool {
			m.rows[r.id] = true
		}
	}
}

// home gives a decision a home.
func (m *model) home(r inSpool, by *spooler) {
	switch {
	case m.spools && m.draw(6) == 0:
		by.put(r)
	case m.draw(3) == 0:
		m.parking = append(m.parking, r.id)
	case m.draw(2) == 0:
		m.dead = append(m.dead, r.id)
	default:
		m.rows[r.id] = true
	}
}

const (
	modelSource  = "logs"
	modelParking = "logs-parking"
	modelDead    = "logs-dlq"
)

func (m *model) CommittedNoted(_ context.Context, _, topic string) (map[int32]int64, map[int32]string, error) {
	m.live()
	switch topic {
	case modelParking:
		return map[int32]int64{0: int64(m.replDone)}, map[int32]string{0: m.parkedNote}, nil
	case modelDead:
		return map[int32]int64{0: int64(m.deskDone)}, nil, nil
	}
	all, notes := map[int32]int64{}, map[int32]string{}
	for p, at := range m.done {
		if at >= 0 {
			all[int32(p)], notes[int32(p)] = int64(at), m.notes[p]
		}
	}
	return all, notes, nil
}

func (m *model) Starts(context.Context, string) (map[int32]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[int32]int64{}
	for p := range m.source {
		all[int32(p)] = 0
	}
	return all, nil
}

func (m *model) Ends(_ context.Context, topic string) (map[int32]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live()
	defer m.live()
	switch topic {
	case modelParking:
		return map[int32]int64{0: int64(len(m.parking))}, nil
	case modelDead:
		return map[int32]int64{0: int64(len(m.dead))}, nil
	}
	all := map[int32]int64{}
	for p := range m.source {
		all[int32(p)] = int64(len(m.source[p]))
	}
	return all, nil
}

func (m *model) Scan(_ context.Context, topic string, from, to map[int32]int64, each func(*kgo.Record) error) (map[int32]int64, error) {
	m.live()
	for at := from[0]; at < to[0]; at++ {
		value := fmt.Sprintf(`{"decision_id":"d","timestamp":"2026-11-21T20:15:00Z","path":"%d"}`, m.parking[at])
		if err := each(&kgo.Record{Topic: topic, Offset: at, Value: []byte(value)}); err != nil {
			return from, err
		}
	}
	return from, nil
}

func (m *model) Waiting(context.Context, Range) (int64, bool, bool, error) {
	m.live()
	m.counted = maps.Clone(m.letters)
	return int64(len(m.letters)), true, true, nil
}

// claim is an answer that was given.
type claim struct {
	until   time.Time
	counted map[int]bool // parked ones and letters; all of a kind whose number was unknown
	had     map[int]bool
	none    bool // it said that spools have none
}

// answer asks for everything.
func (m *model) answer(a *Answers) (c claim, ok bool) {
	b := a.Begin(context.Background(), Range{})
	m.live()
	c.had = map[int]bool{}
	for id := range m.rows {
		c.had[id] = true
	}
	said := b.End(Facts{Found: true})
	if said.CompleteUntil == nil {
		return c, false
	}
	c.until = *said.CompleteUntil
	c.counted = m.counted
	if said.DeadLettered == nil {
		for _, id := range m.dead {
			c.counted[id] = true
		}
	}
	if c.none = b.status.unspooled(Range{}); !c.none { // an old status says it no more, and it is as true
		for id := range m.spooled {
			c.counted[id] = true
		}
	}
	for _, w := range b.status.parked.all {
		id, err := strconv.Atoi(w.path)
		if err != nil {
			m.t.Fatal(err)
		}
		c.counted[id] = true
	}
	return c, true
}

// TestWatch_CompleteUntilIsTrue lets events happen between all requests. Nothing that is stored after an answer had
// reached Kafka before the time that it said, unless it was counted.
func TestWatch_CompleteUntilIsTrue(t *testing.T) {
	t.Parallel()
	var none, unknown int // answers after something was in a spool: those that knew of no more, and the others
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		w := NewWatch(Config{Sources: []Source{{modelSource, "docket"}}, Parking: Source{modelParking, "parking"}, Dead: []Source{{modelDead, "desk"}}, Margin: -1, Now: m.now}, m)
		a := &Answers{Status: func(context.Context) Status { return w.Status() }, Books: m, Within: time.Hour}
		var claims []claim
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			m.live()
			if m.draw(2) > 0 {
				if err := w.Look(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if c, ok := m.answer(a); ok {
				claims = append(claims, c)
				switch {
				case len(m.spooled) == 0:
				case c.none:
					none++
				default:
					unknown++
				}
			}
		}
		m.drain()
		for _, c := range claims {
			for id := range m.rows {
				if !c.had[id] && !c.counted[id] && time.Unix(int64(m.reached[id]), 0).Before(c.until) {
					t.Fatalf("decision %d came at %d. It was stored after an answer that was complete until %d, and not counted", id, m.reached[id], c.until.Unix())
				}
			}
		}
	})
	if none == 0 || unknown == 0 {
		t.Errorf("%d answers knew that no spool has records any more, and %d did not", none, unknown)
	}
}

// TestWatch_SaysUntilWhenAllIsStored lets everything come to rest. Then an answer is complete until the last look.
func TestWatch_SaysUntilWhenAllIsStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		m.live()
		for p := range m.source {
			for _, id := range m.source[p] {
				m.rows[id] = true
			}
			m.carried[p] = len(m.source[p])
			m.done[p] = m.carried[p]
		}
		w := NewWatch(Config{Sources: []Source{{modelSource, "docket"}}, Parking: Source{modelParking, "parking"}, Dead: []Source{{modelDead, "desk"}}, Margin: -1, Now: m.now}, restModel{m})
		if err := w.Look(context.Background()); err != nil {
			t.Fatal(err)
		}
		if until := w.Status().Until(); !until.Equal(m.now()) {
			t.Fatalf("it is complete until %v, want %v", until, m.now())
		}
	})
}

// restModel is a model in which nothing happens.
type restModel struct{ *model }

func (m restModel) CommittedNoted(_ context.Context, _, topic string) (map[int32]int64, map[int32]string, error) {
	all, notes := map[int32]int64{}, map[int32]string{}
	switch topic {
	case modelSource:
		for p, at := range m.done {
			if at >= 0 {
				all[int32(p)], notes[int32(p)] = int64(at), m.notes[p]
			}
		}
	case modelParking:
		all[0], notes[0] = int64(m.replDone), m.parkedNote
	}
	return all, notes, nil
}

func (m restModel) Ends(_ context.Context, topic string) (map[int32]int64, error) {
	all := map[int32]int64{}
	if topic == modelSource {
		for p := range m.source {
			all[int32(p)] = int64(len(m.source[p]))
		}
	}
	return all, nil
}

// TestParking_OffsetsMovedBack has an operator move the replayer's offsets back: the records between wait again.
func TestParking_OffsetsMovedBack(t *testing.T) {
	t.Parallel()
	m := &model{parking: []int{1, 2, 3}}
	scan := scanned{m}
	var k parking
	for _, step := range []struct {
		done int64
		wait int
	}{{3, 0}, {1, 2}, {2, 1}, {0, 3}} {
		if err := k.follow(t.Context(), scan, modelParking, map[int32]int64{0: step.done}, map[int32]int64{0: 3}, 1<<20); err != nil {
			t.Fatal(err)
		}
		if n := len(k.snapshot().all); n != step.wait {
			t.Errorf("%d records wait behind offset %d, want %d", n, step.done, step.wait)
		}
	}
}

// TestParking_TopicMadeAgain makes the topic again: the replayer's offset is beyond its end, and all of its records wait.
func TestParking_TopicMadeAgain(t *testing.T) {
	t.Parallel()
	m := &model{parking: []int{1, 2, 3}}
	scan := scanned{m}
	var k parking
	for _, step := range []struct {
		done, end int64
		wait      int
	}{{100, 2, 2}, {100, 3, 3}, {1, 3, 2}, {3, 3, 0}} {
		if err := k.follow(t.Context(), scan, modelParking, map[int32]int64{0: step.done}, map[int32]int64{0: step.end}, 1<<20); err != nil {
			t.Fatal(err)
		}
		if n := len(k.snapshot().all); n != step.wait {
			t.Errorf("%d records wait of %d with the offset %d, want %d", n, step.end, step.done, step.wait)
		}
	}
}

// scanned is a model in which nothing happens between two requests.
type scanned struct{ *model }

func (s scanned) Scan(_ context.Context, topic string, from, to map[int32]int64, each func(*kgo.Record) error) (map[int32]int64, error) {
	for at := from[0]; at < to[0]; at++ {
		value := fmt.Sprintf(`{"decision_id":"d-%d","timestamp":"2026-11-21T20:15:00Z"}`, s.parking[at])
		if err := each(&kgo.Record{Topic: topic, Offset: at, Value: []byte(value)}); err != nil {
			return from, err
		}
	}
	return from, nil
}
