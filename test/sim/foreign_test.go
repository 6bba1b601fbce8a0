//go:build synctests

package sim

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgerrcode"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
	"docket/internal/errclass"
	"docket/internal/record/home"
	"docket/internal/testkit/pgmodel"
)

// foreign are additions of the table's owner. Each is about decisions of its own, so that the truth is known.
type foreign struct {
	Refuses  bool // a CHECK refuses some
	Swallows bool // a trigger returns NULL for some
	Masks    bool // a trigger alters the payload of some
}

// nature is the effect of the additions on a decision.
type nature int

const (
	ordinary nature = iota
	refused         // by a CHECK that is there from the start
	outdated        // by a CHECK that a schedule may add
	vanishing
	masked
)

// natures are those of all decisions of the pool by id. A probe row has an id of its own, and no addition is about
// it.
var natures = sync.OnceValue(func() map[string]nature {
	all := map[string]nature{}
	for _, r := range slices.Concat(pool(), floods()) {
		for _, d := range r.Decisions {
			h := fnv.New32a()
			_, _ = h.Write([]byte(d.ID)) // a hash takes everything
			switch h.Sum32() % 12 {
			case 0:
				all[d.ID] = refused
			case 1, 2:
				all[d.ID] = outdated
			case 3:
				all[d.ID] = vanishing
			case 4, 5:
				all[d.ID] = masked
			}
		}
	}
	delete(all, "")
	return all
})

// maskedPayload is stored instead of the payload.
var maskedPayload = []byte(`{"masked":true}`)

// check is a CHECK that refuses the decisions of a nature.
func check(n nature) pgmodel.Constraint {
	return pgmodel.Constraint{
		Name: fmt.Sprint("foreign_", n), Columns: []string{"decision_id"},
		Refuses: func(r pgmodel.Row) bool { return natures()[r.DecisionID] == n },
	}
}

// addTo alters the table. repair drops the CHECK.
func (f foreign) addTo(db *pgmodel.Server) (repair func()) {
	repair = nothing
	if f.Refuses {
		repair = db.Constrain(check(refused))
	}
	if f.Swallows {
		db.Alter(func(r *pgmodel.Row) bool { return natures()[r.DecisionID] != vanishing })
	}
	if f.Masks {
		db.Alter(func(r *pgmodel.Row) bool {
			if isMasked(r.DecisionID) {
				r.Raw = maskedPayload
			}
			return true
		})
	}
	return repair
}

// isMasked reports whether the masking trigger changes a decision. Decisions that a CHECK refuses at first are
// included.
func isMasked(id string) bool { return natures()[id] == masked || natures()[id] == refused }

// dropCheck drops the CHECK that was there from the start, like an owner who sees the dead letters.
func (w *world) dropCheck() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.plan.Table.Refuses && w.repaired.IsZero() {
		w.repaired = time.Now()
		w.repair()
		w.history.add("CHECK is gone", "", "")
	}
}

// tighten adds a CHECK, like an owner: ALTER TABLE waits for all users of the table, and later ones wait for it.
func (w *world) tighten() {
	w.db.AddConstraint(check(outdated))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tightened.IsZero() {
		w.tightened = time.Now()
		w.history.add("CHECK is there", "", "")
	}
}

// byCheck is the code for a row that a CHECK refuses.
const byCheck = "23514"

// code returns the expected code of a decision on this table. If stored, its identity has a row. If blamed, it is a
// dead letter of a CHECK. The witness checks that a CHECK has refused each blamed decision.
func (w *world) code(d conservation.Decision, stored, blamed bool) string {
	switch n := natures()[d.ID]; {
	case d.Code == byCheck && n == vanishing && w.plan.Table.Swallows: // triggers come first
		return errclass.CodeInternal
	case d.Code == byCheck && (n == masked || n == refused && (!w.plan.Table.Refuses || !w.repaired.IsZero() && !blamed)) && w.plan.Table.Masks: // and the CHECK may accept the result
		return ""
	case d.Code != "":
		return d.Code
	case n == refused && w.plan.Table.Refuses && (blamed || w.repaired.IsZero()):
		return byCheck
	case n == vanishing && w.plan.Table.Swallows:
		return errclass.CodeInternal
	case n == outdated && !w.tightened.IsZero() && !stored: // rows from before the CHECK stay
		return byCheck
	}
	return ""
}

// outlived reports whether a forwarded record is a dead letter of the dropped CHECK, of a decision that was read
// again later. Then the decision got its row, or a dead letter for another reason. Both homes were right at their
// time.
func (w *world) outlived(rows []pgmodel.Row, letters []letter) func(verify.Forwarded) bool {
	again := map[verify.Place]bool{}
	for _, r := range rows {
		if !w.repaired.IsZero() && !r.At.Before(w.repaired) {
			again[verify.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Index: int(r.Index)}] = true
		}
	}
	for _, l := range letters {
		if !w.repaired.IsZero() && l.Home == home.DeadLetter && l.Code != byCheck && !l.FailedAt.Before(w.repaired) {
			at, _ := w.ledger.Canonical(l.Place)
			again[at] = true
		}
	}
	return func(f verify.Forwarded) bool {
		at, known := w.ledger.Canonical(f.Place)
		if f.Home != home.DeadLetter || f.Code != byCheck || !known || !again[at] || !f.FailedAt.Before(w.repaired) && !w.wasRefused(at, w.repaired) {
			return false
		}
		r, _ := w.ledger.At(at.Topic, at.Partition, at.Offset)
		return at.Index < len(r.Decisions) && natures()[r.Decisions[at.Index].ID] == refused
	}
}

// deserved returns the truth for this table, and for the rows it had when a CHECK was added.
func (w *world) deserved(rows []pgmodel.Row, forwarded []verify.Forwarded) *conservation.Produced {
	blamed := map[verify.Place]bool{}
	for i := range forwarded {
		if f := &forwarded[i]; f.Home == home.DeadLetter && f.Code == byCheck {
			at, _ := w.ledger.Canonical(f.Place)
			blamed[at] = true
		}
	}
	stored := map[verify.Identity]bool{}
	for _, r := range rows {
		stored[identity(r.DecisionID, r.Time)] = true
	}
	slow := w.swallowedSlowly(forwarded)
	return w.ledger.Judged(func(at conservation.Place, d conservation.Decision) string {
		code := w.code(d, stored[identity(d.ID, d.Time)], blamed[at])
		if code == errclass.CodeInternal && slow[at] {
			return errclass.CodeTooSlow
		}
		return code
	})
}

// swallowedSlowly returns the dead letters that were too slow alone, twice. A row that a trigger drops is asked for
// again. So a slow database can exceed the limit with it, and still take the probe row in time.
func (w *world) swallowedSlowly(forwarded []verify.Forwarded) map[verify.Place]bool {
	slow := map[verify.Place]bool{}
	for i := range forwarded {
		f := &forwarded[i]
		if f.Home != home.DeadLetter || f.Code != errclass.CodeTooSlow {
			continue
		}
		at, _ := w.ledger.Canonical(f.Place)
		n := 0
		for _, p := range w.processes() {
			for _, t := range w.witness.of(p) {
				if t.code == pgerrcode.QueryCanceled && len(t.rows) == 1 && t.rows[0] == at && !t.at.After(f.FailedAt) {
					n++
				}
			}
		}
		slow[at] = n >= 2
	}
	return slow
}

// wasRefused reports whether the CHECK refused a decision before a time. Between the refusal and the letter a probe
// must pass, and the CHECK may be dropped then.
func (w *world) wasRefused(at verify.Place, before time.Time) bool {
	return slices.ContainsFunc(w.processes(), func(p *process) bool {
		return slices.ContainsFunc(w.witness.of(p), func(t try) bool {
			return t.code == byCheck && len(t.rows) == 1 && t.rows[0] == at && t.at.Before(before)
		})
	})
}

// unmasked returns the rows with their original payloads, found by the hash of the bytes.
func (w *world) unmasked(rows []pgmodel.Row) []pgmodel.Row {
	if !w.plan.Table.Masks {
		return rows
	}
	bodies := map[string][]byte{}
	w.ledger.Each(func(_ conservation.Place, _ []byte, d conservation.Decision) {
		if isMasked(d.ID) {
			sum := sha256.Sum256(d.Body)
			bodies[string(sum[:])] = d.Body
		}
	})
	for i := range rows {
		if r := &rows[i]; isMasked(r.DecisionID) && string(r.Raw) == string(maskedPayload) && bodies[string(r.Sum)] != nil {
			r.Raw = bodies[string(r.Sum)]
		}
	}
	return rows
}

// judgeTable checks that no decision is blamed by a CHECK before the CHECK was added.
func (w *world) judgeTable(ev *evidence) {
	for _, d := range ev.truth.Decisions() {
		if r, _ := w.ledger.At(d.Topic, d.Partition, d.Offset); natures()[d.ID] != outdated || r.Decisions[d.Index].Code != "" {
			continue // it would be refused without it
		}
		for _, l := range ev.letters[d.Place] {
			if l.Home == home.DeadLetter && !l.FailedAt.IsZero() && strings.HasPrefix(l.Code, "23") && d.Code == byCheck && (w.tightened.IsZero() || l.FailedAt.Before(w.tightened)) {
				w.found(fmt.Sprintf("I5 dead letters deserve it: %v was refused at %v, and the CHECK was added at %v", d.Place, w.history.at(l.FailedAt), w.history.at(w.tightened)))
			}
		}
	}
}
