package verify

import (
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"

	"docket/internal/record/home"
)

// holdHolds is I11: while the injector's systemic fault lasts (+ 1 batch): new DLQ + PDLQ = 0, and for 53100 also new
// PK = 0. Nothing is parked while a systemic fault is the only one. The one batch of a process is the one that it
// polled before the fault began, if that is known. Else it is the first that it publishes.
func holdHolds(m *sortedEvidence) Result {
	h := m.history
	systemic := 0
	t := m.tally()
	for _, f := range h.Faults {
		if !f.Systemic {
			continue
		}
		systemic++
		spared := make(map[string]string)
		for _, p := range h.Publishes {
			if !f.lasts(p.At) || p.Home == home.Parked && !f.Alone && f.Code != pgerrcode.DiskFull {
				continue
			}
			t.check()
			if m.spares(f, p, spared) {
				continue
			}
			t.fault(Place{}, p.ID, fmt.Sprintf("published to %v by %s at %s, while %s lasted", p.Home, p.Process, clock(p.At), f.told()), m.published(p.ID)...)
		}
	}
	switch {
	case len(h.Faults) == 0 && len(h.Publishes) == 0:
		return undecided(notWatched)
	case systemic == 0:
		return undecided("no fault of the set-up was injected")
	}
	return t.result(false)
}

// spares reports whether a publish belongs to the one batch that may be finished.
func (m *sortedEvidence) spares(f Fault, p Publish, spared map[string]string) bool {
	if !p.Begun.IsZero() {
		return p.Begun.Before(f.From)
	}
	first, known := spared[p.Process]
	if !known {
		spared[p.Process] = p.Batch
		return true
	}
	return p.Batch != "" && p.Batch == first
}

// published returns the trace of the decision with a dead-letter id.
func (m *sortedEvidence) published(id string) []string {
	for i := range m.ev.Forwarded {
		if f := &m.ev.Forwarded[i]; id != "" && f.ID == id {
			if d := m.truth.At(f.Place); d != nil {
				return m.trace(d)
			}
			return []string{f.told()}
		}
	}
	return nil
}

func (f Fault) lasts(at time.Time) bool {
	return !at.Before(f.From) && (f.To.IsZero() || at.Before(f.To))
}

func (f Fault) told() string {
	until := "never healed"
	if !f.To.IsZero() {
		until = "to " + clock(f.To)
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s (from %s, %s)", f.Kind, f.Name, f.Code, clock(f.From), until)), " ")
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05.000000") }
