package pipeline

import (
	"strings"
	"testing"
	"testing/synctest"

	"docket/internal/errclass"
)

func TestRoute_MissingParentIsParkedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		orphan := func(id string) error {
			if id == "x" {
				return sqlstate("23503")
			}
			return nil
		}
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "x")...))
		w.db.refuse = orphan
		w.run(t, p)
		equal(t, "parked", w.kafka.sent("parking"), []string{"1/0 transient 23503 0"})

		again := w.kafka.took[0]
		again.Topic, again.Offset = "decision-logs", 0
		r := newWorld(func(w *world) { w.config.Replay = true })
		r.db.refuse = orphan
		p = newPartition(t, []*kgoRecord{again})
		r.run(t, p)
		equal(t, "dead letters", r.kafka.sent("dlq"), []string{"1/0 data 23503 0"})
	})
}

func TestRoute_EveryClassEndsInAHome(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, v := range errclass.Table() {
		if len(v.Code) != 5 || strings.ToUpper(v.Code) != v.Code || v.Class == errclass.OK || seen[v.Code] {
			continue
		}
		seen[v.Code] = true
		v = errclass.Classify(sqlstate(v.Code))
		t.Run(v.Code, func(t *testing.T) {
			t.Parallel()
			for _, replay := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					w, p := newWorld(func(w *world) { w.config.Replay = replay }), newPartition(t, recordsOf(0, good("a", "b", "x", "c")...))
					w.db.refuse = func(id string) error {
						if id == "x" {
							return sqlstate(v.Code)
						}
						return nil
					}
					w.run(t, p)
					h := w.told.homes()
					parkedWhole := !replay && v.Class == errclass.Transient && v.Rule != errclass.RetryBisect && v.Rule != errclass.ParkOnceBisect
					rows := 3
					if parkedWhole {
						rows = 0 // except those that a retry in parts could store
					}
					if h["row"] < rows || h["row"]+h["parked"]+h["dead_letter"] != 4 || p.last() != 4 {
						t.Errorf("replay %v: homes %v, committed %d", replay, h, p.last())
					}
					if dead := h["dead_letter"]; (dead == 1) != (v.Class == errclass.Data && (replay || v.Rule != errclass.ParkOnceBisect) || v.Rule == errclass.RetryBisect) {
						t.Errorf("replay %v: %s %v: %d dead letters", replay, v.Class, v.Rule, dead)
					}
				})
			}
		})
	}
}
