package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
)

// beforeCut is the error for rows past the cut-over, while the table is being partitioned.
func beforeCut() error {
	return &serverError{code: "23514", table: "decision_logs", constraint: "decision_logs_before_cut"}
}

// dated makes decisions of these ids. If the id begins with far, it has the time of a day that the table refuses.
func dated(ids ...string) []string {
	values := make([]string, len(ids))
	for i, id := range ids {
		at := time.Now()
		if strings.HasPrefix(id, "far") {
			at = at.AddDate(10, 0, 0)
		}
		values[i] = fmt.Sprintf(`{"decision_id":%q,"timestamp":%q}`, id, at.UTC().Format(time.RFC3339Nano))
	}
	return values
}

// cut makes the table refuse rows and probes that are dated far, while on returns true.
func (w *world) cut(on func() bool) {
	w.db.refuse = func(id string) error {
		if on() && strings.HasPrefix(id, "far") {
			return beforeCut()
		}
		return nil
	}
	w.db.probe = func(at time.Time) error {
		if on() && at.After(time.Now().AddDate(1, 0, 0)) {
			return beforeCut()
		}
		return nil
	}
}

func always() bool { return true }

func TestMigration_ParksOnlyRefusedRecords(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string][]string{
		"one of many": {"a", "b", "far1", "c", "d"}, "most of them": {"far1", "far2", "a", "far3"}, "alone": {"far1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.cut(always)
				p := newPartition(t, recordsOf(0, dated(ids...)...))
				w.run(t, p)
				far := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !strings.HasPrefix(id, "far") })
				h := w.told.homes()
				if h["parked"] != len(far) || h["row"] != len(ids)-len(far) || len(w.kafka.sent("dlq")) > 0 || p.holds > 0 {
					t.Errorf("homes %v, %d holds, dead letters %v", h, p.holds, w.kafka.sent("dlq"))
				}
			})
		})
	}
}

// TestMigration_SpendsNoAttempt replays a record that has one attempt left.
func TestMigration_SpendsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string][]string{"among others": {"a", "far1", "b"}, "alone": {"far1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(replayer)
				w.cut(always)
				rs := parkedOf(4, ids...)
				for i, value := range dated(ids...) {
					rs[i].Value = []byte(value)
				}
				w.run(t, newPartition(t, rs))
				h := w.told.homes()
				if h["parked"] != 1 || h["exhausted"] != 0 || h["dead_letter"] != 0 {
					t.Fatalf("homes %v", h)
				}
				i := slices.IndexFunc(w.kafka.took, func(r *kgo.Record) bool { return strings.Contains(string(r.Value), "far1") })
				if got := headerOf(w.kafka.took[i], envelope.RetryAttempt); got != "4" {
					t.Errorf("attempt %s", got)
				}
			})
		})
	}
}

// TestMigration_NeverFinishedHolds has the present past the cut-over, so the table refuses it.
func TestMigration_NeverFinishedHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, dated("a", "b")...))
		done := func() bool { return w.db.probes > 6 }
		w.db.refuse = func(string) error {
			if !done() {
				return beforeCut()
			}
			return nil
		}
		w.db.probe = func(time.Time) error { return w.db.refuse("") }
		w.run(t, p)
		equal(t, "held", w.told.held, []string{"database_refuses 23514"})
		if h := w.told.homes(); h["row"] != 2 || len(w.kafka.took) > 0 {
			t.Errorf("homes %v", h)
		}
	})
}

// TestRetries_KeepTheirPauses measures the pause before each further try of a failing batch.
func TestRetries_KeepTheirPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		from, at := time.Now(), []time.Duration{}
		w.db.away = func() error { at = append(at, time.Since(from)); return sqlstate("40001") }
		w.run(t, newPartition(t, recordsOf(0, good("a", "b")...)))
		if want := []time.Duration{0, time.Second, 3 * time.Second}; !slices.Equal(at, want) || w.told.homes()["parked"] != 2 {
			t.Errorf("tries after %v, want %v; homes %v", at, want, w.told.homes())
		}
	})
}
