//go:build synctests

package sim

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"docket/internal/audit/conservation"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgmodel"
)

// newDatabase makes a server whose table refuses the planted decisions.
func newDatabase(unknown func(string)) *pgmodel.Server {
	db := pgmodel.New(pgmodel.Config{Unknown: unknown})
	refused := []byte(`"` + conservation.RefusedMember + `"`)
	db.Constrain(pgmodel.Constraint{
		Name: "docket_demo_refuses", Columns: []string{"raw"},
		Refuses: func(r pgmodel.Row) bool { return bytes.Contains(r.Raw, refused) },
	})
	return db
}

// SQLSTATEs of transient and systemic faults, and those that blame a record. If a table answers one of the latter for
// every row, the set-up is to blame.
var (
	transients = []string{"08006", "57P01", "57P03", "40001", "40P01", "53300", "55P03", "08003"}
	// blaming are transient, and still blame a record that they hit alone, twice, while others pass.
	blaming   = []string{"57014", "XX000"}
	systemics = []string{"42P01", "42703", "42501", "53100", "28P01", "3D000", "58030", "XX001"}
	datas     = []string{"23502", "22003"}
)

func ofTheDatabase() []evil {
	coded := func(codes []string) func(dice, *schedule) event {
		return func(d dice, _ *schedule) event { return event{Arg: one(d, codes...), N: d.IntN(1000)} }
	}
	everywhere := func(w *world, e event) func() {
		return w.db.Inject(pgmodel.Fault{Point: pgmodel.Insert, SQLSTATE: e.Arg, Count: -1})
	}
	few := func(point pgmodel.Point) func(w *world, e event) func() {
		return func(w *world, e event) func() {
			return w.db.Inject(pgmodel.Fault{Point: point, Count: 1 + e.N%4, After: e.N % 3})
		}
	}
	short := func(d dice, _ *schedule) event {
		return event{N: d.IntN(1000), For: d.between(200*time.Millisecond, 4*time.Second)}
	}
	// lasting faults are longer than any wait for an early end.
	lasting := func(e event, d dice) event {
		if d.IntN(5) == 0 {
			e.For = d.between(13*time.Second, 16*time.Second)
		}
		return e
	}
	long := func(d dice, _ *schedule) event { return lasting(event{}, d) }
	return []evil{
		{"database fails", coded(append(blaming, transients...)), everywhere},
		{"database refuses all", func(d dice, s *schedule) event { return lasting(coded(append(datas, systemics...))(d, s), d) }, everywhere},
		{"database fails a few", coded(transients), func(w *world, e event) func() {
			return w.db.Inject(pgmodel.Fault{Point: pgmodel.Insert, SQLSTATE: e.Arg, Count: 1 + e.N%5, After: e.N % 3})
		}},
		{"a few rows fail", func(d dice, s *schedule) event {
			return event{Arg: one(d, one(d, transients...), one(d, systemics...), "25006"), N: d.IntN(1000), For: s.bearable(d.between(500*time.Millisecond, 5*time.Second))}
		}, func(w *world, e event) func() {
			odd := func(r pgmodel.Row) bool {
				return w.groupOf(r.Topic) != "" && r.Offset != store.ProbeOffset && int(r.Offset+r.Time.UnixMicro())%(2+e.N%5) == 0
			}
			return w.db.Inject(pgmodel.Fault{Point: pgmodel.Insert, SQLSTATE: e.Arg, Row: odd, Count: -1})
		}},
		{"login refused", coded([]string{"28P01", "53300", "57P03", "3D000"}), func(w *world, e event) func() {
			w.db.Kill()
			return w.db.Inject(pgmodel.Fault{Point: pgmodel.Startup, SQLSTATE: e.Arg, Severity: "FATAL", Count: -1})
		}},
		{"COMMIT lost", nil, few(pgmodel.Commit)},
		{"COMMIT lost", nil, few(pgmodel.Commit)},
		{"COPY cut", nil, few(pgmodel.Copying)},
		{"answer to COMMIT lost", nil, few(pgmodel.CommitApplied)},
		{"answer to COMMIT lost", nil, few(pgmodel.CommitApplied)},
		{"COMMIT refused", coded([]string{"40001", "23505", "57P01", "53100"}), func(w *world, e event) func() {
			return w.db.Inject(pgmodel.Fault{Point: pgmodel.Commit, SQLSTATE: e.Arg, Count: 1 + e.N%3})
		}},
		{"database slow", short, func(w *world, e event) func() {
			return w.db.Inject(pgmodel.Fault{Point: pgmodel.Insert, Delay: time.Duration(10+3*e.N) * time.Millisecond, Count: -1})
		}},
		{"COMMIT lives on", short, func(w *world, e event) func() {
			return w.db.Inject(pgmodel.Fault{Point: pgmodel.Commit, Delay: time.Duration(10+3*e.N) * time.Millisecond, LivesOn: true, Cut: e.N%2 == 0, Count: 1 + e.N%3})
		}},
		{"standby away", short, func(w *world, e event) func() {
			back := w.db.StandbyAway()
			if e.N%2 == 0 {
				return back
			}
			heal := w.db.LoseCancels()
			return func() { heal(); back() }
		}},
		{"wait for the standby cancelled", short, func(w *world, e event) func() {
			back := w.db.StandbyAway()
			over := w.every(time.Duration(20+10*(e.N%50))*time.Millisecond, func() {
				if n := w.db.CancelSync(); n > 0 {
					w.history.add("waits for the standby cancelled", "", strconv.Itoa(n))
				}
			})
			return func() { over(); back() }
		}},
		{"standby promoted", short, func(w *world, e event) func() {
			back, heal := w.db.StandbyAway(), nothing
			if e.N%3 == 0 {
				heal = w.db.LoseCancels()
			}
			w.later(e.For/2, func() {
				w.history.add("promoted", "", fmt.Sprintf("%d rows lost", len(w.db.Unconfirmed())))
				w.db.Promote(e.For / 4)
			})
			return func() { heal(); back() }
		}},
		{"CHECK added", nil, func(w *world, _ event) func() { w.running.Go(w.tighten); return nothing }},
		{"CHECK added", nil, func(w *world, _ event) func() { w.running.Go(w.tighten); return nothing }},
		{"CHECK dropped", nil, func(w *world, _ event) func() { w.dropCheck(); return nothing }},
		{"CHECK dropped", nil, func(w *world, _ event) func() { w.dropCheck(); return nothing }},
		{"database restarts", nil, func(w *world, e event) func() { w.db.Restart(e.For); return nothing }},
		{"database crashes", nil, func(w *world, e event) func() { w.db.Crash(e.For); return nothing }},
		{"read-only", long, func(w *world, _ event) func() { return w.db.ReadOnly() }},
		{"read-only", long, func(w *world, _ event) func() { return w.db.ReadOnly() }},
		{"database disk full", long, func(w *world, _ event) func() { return w.db.Full() }},
		{"database hangs", short, func(w *world, _ event) func() { return w.db.Hang() }},
		{"table locked", short, func(w *world, _ event) func() { return w.db.Lock() }},
		{"sessions killed", nil, func(w *world, _ event) func() { w.db.Kill(); return nothing }},
	}
}
