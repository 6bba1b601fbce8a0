package pipeline

import (
	"testing"
	"testing/synctest"
	"time"
)

// A named CHECK or a trigger refuses the times of a batch's only decision, or of most of them.
func TestOddTime_IsTheRecordsFault(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string][]string{"alone": {"far1"}, "most": {"far1", "far2", "a"}} {
		for _, code := range []string{"23514", "P0001"} {
			for program, change := range map[string]func(*world){"consumer": func(*world) {}, "replayer": replayer} {
				t.Run(name+" "+code+" "+program, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(change)
						w.db.refuse = func(id string) error {
							if id[0] == 'f' {
								return sqlstate(code)
							}
							return nil
						}
						w.db.probe = func(at time.Time) error {
							if at.After(time.Now().AddDate(1, 0, 0)) {
								return sqlstate(code)
							}
							return nil
						}
						p := newPartition(t, recordsOf(0, dated(ids...)...))
						w.run(t, p)
						far := min(len(ids), 2)
						if h := w.told.homes(); h["dead_letter"] != far || h["row"] != len(ids)-far || len(w.told.held) > 0 {
							t.Errorf("homes %v, held %q", h, w.told.held)
						}
					})
				})
			}
		}
	}
}

// A missing partition is the table's fault, even if the table takes rows of other times.
func TestOddTime_MissingPartitionHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, dated("far1")...))
		there := time.Now().Add(time.Minute)
		w.db.refuse = func(string) error {
			if time.Now().Before(there) {
				return &serverError{code: "23514", table: "decision_logs"}
			}
			return nil
		}
		w.db.probe = func(at time.Time) error {
			if at.After(time.Now().AddDate(1, 0, 0)) {
				return w.db.refuse("")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "held", w.told.held, []string{"database_refuses 23514"})
		if h := w.told.homes(); h["row"] != 1 {
			t.Errorf("homes %v", h)
		}
	})
}
