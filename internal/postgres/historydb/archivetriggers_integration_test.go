//go:build integration

package historydb_test

import (
	"errors"
	"testing"

	"docket/internal/history/archive"
)

// TestRestore_TriggerDeletesRows: a day whose rows a trigger deletes as they come back is not restored, and still counts as archived.
func TestRestore_TriggerDeletesRows(t *testing.T) {
	t.Parallel()
	for name, trigger := range map[string]string{
		"at once":       `CREATE TRIGGER own AFTER INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION own()`,
		"at the commit": `CREATE CONSTRAINT TRIGGER own AFTER INSERT ON decision_logs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION own()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := old(t)
			a.settle()
			a.rows(1, 20)
			a.archive(false)
			a.Exec(t, `CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM decision_logs WHERE decision_id = NEW.decision_id AND NEW.decision_id = 'd7'; RETURN NULL; END $$; `+trigger)
			var refused *archive.CannotError
			if done, err := a.c.Restore(t.Context(), a.day); !errors.As(err, &refused) {
				t.Errorf("%+v, %v", done, err)
			}
			var left bool
			if a.Query(t, `SELECT EXISTS (SELECT FROM decision_counts_left)`, &left); !left {
				t.Error("the day counts as restored")
			}
			a.Exec(t, `DROP TRIGGER own ON decision_logs`)
			if a.restore(); a.Count(t) != 20 {
				t.Errorf("%d rows after a restore without the trigger", a.Count(t))
			}
		})
	}
}
