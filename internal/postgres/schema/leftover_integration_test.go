//go:build integration

package schema_test

import (
	"context"
	"errors"
	"testing"

	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

var errKilled = errors.New("killed")

// killedAt ends a migration of the large way after a step.
func killedAt(t *testing.T, db *store.Store, at string) {
	t.Helper()
	err := schema.Partition(context.Background(), db.DB, 0, false, func(step string) error {
		if step == at {
			return errKilled
		}
		return nil
	})
	if !errors.Is(err, errKilled) {
		t.Fatalf("got %v", err)
	}
}

// wantObstacle runs the migration, which must refuse.
func wantObstacle(t *testing.T, db *store.Store, small int) {
	t.Helper()
	err := schema.Partition(context.Background(), db.DB, small, false, onward)
	var met *schema.ObstacleError
	if !errors.As(err, &met) {
		t.Fatalf("got %v", err)
	}
}

// A refused migration that was killed leaves nothing behind. Its cut would come nearer until the table takes nothing.
func TestPartition_ObstacleBetweenTwoRuns(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"cut", "strays", "validated"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewPlain(t)
			db := open(t, d.URL, 0)
			save(t, db, row("far", day(400), `{}`))
			killedAt(t, db, at)
			d.Exec(t, `CREATE VIEW odd AS SELECT path FROM decision_logs`)
			wantObstacle(t, db, 0)
			same(t, d.Count(t), 1)
			save(t, db, row("a", day(300), `{}`))
		})
	}
}

// Rows that a table does not take again, as a trigger was made meanwhile, stay aside and are named. The cut goes all the same.
func TestPartition_RowsThatTheTableDoesNotTake(t *testing.T) {
	t.Parallel()
	const onFar = ` ON decision_logs FOR EACH ROW WHEN (NEW.decision_id = 'far') EXECUTE FUNCTION odd()`
	for name, sql := range map[string][2]string{
		"swallowed":             {`RETURN NULL`, `CREATE TRIGGER odd BEFORE INSERT` + onFar},
		"altered":               {`NEW.decision_id := 'other'; RETURN NEW`, `CREATE TRIGGER odd BEFORE INSERT` + onFar},
		"deleted":               {`DELETE FROM decision_logs WHERE decision_id = 'far'; RETURN NULL`, `CREATE TRIGGER odd AFTER INSERT` + onFar},
		"deleted at the commit": {`DELETE FROM decision_logs WHERE decision_id = 'far'; RETURN NULL`, `CREATE CONSTRAINT TRIGGER odd AFTER INSERT ON decision_logs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.decision_id = 'far') EXECUTE FUNCTION odd()`},
		"refused":               {`RAISE 'no'`, `CREATE TRIGGER odd BEFORE INSERT` + onFar},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewPlain(t)
			db := open(t, d.URL, 0)
			save(t, db, row("far", day(400), `{}`))
			killedAt(t, db, "strays")
			d.Exec(t, `CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+sql[0]+`; END $$`)
			d.Exec(t, sql[1])
			err := schema.Partition(context.Background(), db.DB, 0, false, onward)
			if met, is := errors.AsType[*schema.ObstacleError](err); !is || len(met.Obstacles) != 2 {
				t.Fatalf("got %v, want the trigger and the rows", err)
			}
			var aside int
			d.Query(t, `SELECT count(*) FROM decision_logs_strays WHERE decision_id = 'far'`, &aside)
			same(t, []int{aside, d.Count(t)}, []int{1, 0})
			save(t, db, row("a", day(300), `{}`))
			d.Exec(t, `DROP TRIGGER odd ON decision_logs; DROP FUNCTION odd; INSERT INTO decision_logs SELECT * FROM decision_logs_strays; DROP TABLE decision_logs_strays`)
			mustPartition(t, db, 100)
			same(t, place(t, d, "far"), "decision_logs_default")
		})
	}
}

// A table of the name under which rows are put aside is somebody's, unless a migration is under way.
func TestPartition_StraysOfAnother(t *testing.T) {
	t.Parallel()
	for name, small := range map[string]int{"small": 100, "large": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewPlain(t)
			db := open(t, d.URL, 0)
			d.Exec(t, `CREATE TABLE decision_logs_strays AS SELECT 'mine' AS decision_id, now() AS ts, '{}'::jsonb AS raw, 't' AS source_topic, 0 AS source_partition, 0 AS source_offset, 0 AS source_index`)
			wantObstacle(t, db, small)
			var n int
			d.Query(t, `SELECT count(*) FROM decision_logs_strays`, &n)
			same(t, []int{n, d.Count(t)}, []int{1, 0})
		})
	}
}

// After the CHECK was dropped by hand, the rows that are aside are told; they are never left out without a word.
func TestPartition_TellsRowsLeftAside(t *testing.T) {
	t.Parallel()
	d := pgtest.NewPlain(t)
	db := open(t, d.URL, 0)
	save(t, db, row("far", day(400), `{}`))
	killedAt(t, db, "strays")
	d.Exec(t, `ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_before_cut`)
	save(t, db, row("today", day(0), `{}`))
	wantObstacle(t, db, 100)
	d.Exec(t, `INSERT INTO decision_logs SELECT * FROM decision_logs_strays; DROP TABLE decision_logs_strays`)
	mustPartition(t, db, 100)
	same(t, []string{place(t, d, "far"), place(t, d, "today")}, []string{"decision_logs_default", named(0)})
}

// The way back writes all rows into the first partition, which has triggers that the whole table does not show.
func TestPartition_BackPastATriggerOfThePartition(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string][2]string{
		"swallowed":             {`RETURN NULL`, `CREATE TRIGGER odd BEFORE INSERT ON decision_logs_before FOR EACH ROW EXECUTE FUNCTION odd()`},
		"deleted at the commit": {`DELETE FROM decision_logs_before WHERE decision_id = NEW.decision_id; RETURN NULL`, `CREATE CONSTRAINT TRIGGER odd AFTER INSERT ON decision_logs_before DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION odd()`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			db := open(t, d.URL, 0)
			save(t, db, row("today", day(0), `{}`), row("far", day(400), `{}`))
			d.Exec(t, `CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+sql[0]+`; END $$; `+sql[1])
			if err := schema.Partition(context.Background(), db.DB, 0, true, onward); err == nil {
				t.Errorf("no error")
			}
			same(t, d.Count(t), 2)
		})
	}
}
