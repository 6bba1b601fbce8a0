package complete

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/internal/record/commitnote"
)

// spooler is a program with a spool.
type spooler struct {
	m     *model
	id    string
	since int64
	spool []inSpool
	keep  *commitnote.Keeper // nil: it is down
	old   bool               // its release knows of no notes
}

// inSpool is a record in a spool. A partition has a turn each time that it is assigned.
type inSpool struct {
	id, partition, turn, offset int // partition -1: of the parking topic
}

// committed reports whether an offset was committed because of it. If it was not, another program gave the record a home, too.
func (m *model) committed(r inSpool) bool { return r.offset < m.reachedBy[[2]int{r.partition, r.turn}] }

// start begins a process that has the spool.
func (s *spooler) start() {
	s.since++
	s.old = s.m.olds && s.m.draw(1) == 0
	s.keep = commitnote.NewKeeper(func() (commitnote.Spool, bool) {
		return commitnote.Spool{ID: s.id, Since: s.since, Holds: len(s.spool) > 0}, true
	}, s.m.now)
}

// text is committed beside its offsets.
func (s *spooler) text() string {
	if s.old {
		return ""
	}
	return s.keep.Text()
}

// met has it read what is committed of a partition that it takes over.
func (s *spooler) met(offset int, text string) {
	if offset >= 0 && !s.old {
		s.keep.Met(int64(offset), text)
	}
}

func (s *spooler) put(r inSpool) {
	if s.spool = append(s.spool, r); len(s.spool) == 1 {
		s.since++
	}
	s.m.spooled[r.id] = true
}

// recover publishes what is in the spool.
func (s *spooler) recover() {
	for _, r := range s.spool {
		s.m.publish(r.id)
	}
	if len(s.spool) > 0 {
		s.spool = nil
		s.since++
	}
}

// publish sends a record to the topic of its kind.
func (m *model) publish(id int) {
	if m.draw(1) == 0 {
		m.parking = append(m.parking, id)
	} else {
		m.dead = append(m.dead, id)
	}
}

func (m *model) replayer() *spooler { return m.programs[len(m.programs)-1] }

// assign gives a partition to a consumer that is up. It reads from what is committed.
func (m *model) assign(p int) {
	m.turns[p]++
	for {
		m.owner[p] = m.draw(len(m.programs) - 2)
		if s := m.programs[m.owner[p]]; s.keep != nil {
			m.carried[p] = max(0, m.done[p])
			s.met(m.done[p], m.notes[p])
			return
		}
	}
}

// fail ends a program, which may start again at once or later. The first consumer is never down for long.
func (m *model) fail(n int) {
	s := m.programs[n]
	s.keep = nil
	switch {
	case s == m.replayer():
		s.start()
		s.met(m.replDone, m.parkedNote)
		m.replayed = m.replDone
		m.turns[-1]++
		return
	case n == 0 || !s.old && m.draw(1) == 0: // nobody opens the spool of an earlier release any more
		s.start()
	}
	for p, of := range m.owner {
		if of == n {
			m.assign(p)
		}
	}
}

// commit commits what has a home in a partition, or notes it again.
func (m *model) commit(p int) {
	if m.carried[p] > 0 || m.done[p] >= 0 {
		m.done[p], m.notes[p] = m.carried[p], m.programs[m.owner[p]].text()
		m.reachedBy[[2]int{p, m.turns[p]}] = m.done[p]
	}
}

// TestWatch_NoneMeansNone: if a look finds that no spool has records of a range, none has a committed one. It does not matter
// whose spool it is, whether that program is up, and whether its release knows of notes.
func TestWatch_NoneMeansNone(t *testing.T) {
	t.Parallel()
	var none, late, some int
	check := func(t *rapid.T) {
		m := newModel(t)
		w := NewWatch(Config{Sources: []Source{{modelSource, "docket"}}, Parking: Source{modelParking, "parking"}, Dead: []Source{{modelDead, "desk"}}, Margin: -1, Now: m.now, SkipsParkedTimes: true}, restModel{m})
		for range 40 {
			m.live()
			if err := w.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			of := w.Status()
			switch {
			case of.unspooled(Range{}):
				none++
			case of.unspooled(Range{Since: m.now().Add(ahead + 2*time.Second)}):
				late++
			default:
				some++
			}
			for _, s := range m.programs {
				for _, r := range s.spool {
					// Its time is as far ahead of its arrival as one may be.
					if since := time.Unix(int64(m.reached[r.id]), 0).Add(ahead); m.committed(r) && of.unspooled(Range{Since: since}) {
						t.Fatalf("decision %d is in the spool of %s, and the look knows of none since %v; up: %v; notes %q and %q", r.id, s.id, since, s.keep != nil, m.notes, m.parkedNote)
					}
				}
			}
		}
	}
	for range 6 { // a spool that nobody names is rare
		rapid.Check(t, check)
	}
	if none == 0 || late == 0 || some == 0 {
		t.Errorf("%d looks found no record in a spool, %d none that came late, and %d some", none, late, some)
	}
}
