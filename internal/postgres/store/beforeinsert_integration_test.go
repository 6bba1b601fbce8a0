//go:build integration

package store_test

import (
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

// TestBeforeInsert_AltersIdentity has a trigger give a row another identity. It is swallowed, the first time as well as the
// second, and its neighbour is stored. No row has its home under another id.
func TestBeforeInsert_AltersIdentity(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"decision_id": `IF NEW.decision_id LIKE 'odd%' THEN NEW.decision_id := 'x' || NEW.decision_id; END IF; RETURN NEW;`,
		"ts":          `IF NEW.decision_id LIKE 'odd%' THEN NEW.ts := NEW.ts + interval '1 second'; END IF; RETURN NEW;`,
	} {
		for _, by := range []string{"COPY", "INSERT"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				d := pgtest.New(t)
				d.Exec(t, own(body)+before)
				url := d.URL
				if by == "INSERT" {
					url = server{DB: d}.NoCopy(t).URL
				}
				db := open(t, url, time.Minute)
				for range 2 {
					code(t, db, "swallowed", row("odd", noon, `{}`))
					code(t, db, "swallowed", row("odd", noon, `{}`), row("a", noon, `{}`))
				}
				same(t, d.Count(t), 0)
				same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
				same(t, store.Watches(db), true)
				d.Exec(t, dropOwn)
				same(t, save(t, db, row("odd", noon, `{}`)), []pipeline.Outcome{stored})
				same(t, store.Watches(db), false)
			})
		}
	}
}

// TestBeforeInsert_MasksPayload: a trigger may alter all but the identity. Its rows are stored, and their second delivery is known.
func TestBeforeInsert_MasksPayload(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, own(`NEW.raw := '{}'; RETURN NEW;`)+before)
	db := open(t, d.URL, time.Minute)
	same(t, save(t, db, row("a", noon, `{"v":1}`), row("b", noon, `{"v":2}`)), []pipeline.Outcome{stored, stored})
	same(t, save(t, db, row("a", noon, `{"v":1}`), row("c", noon, `{"v":3}`)), []pipeline.Outcome{present, stored})
	same(t, d.Count(t), 3)
}

// TestBeforeInsert_DeletesOther has a trigger delete a row of its batch that was stored a moment ago.
func TestBeforeInsert_DeletesOther(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, own(`DELETE FROM decision_logs WHERE decision_id = 'a'; RETURN NEW;`)+before)
	db := open(t, d.URL, time.Minute)
	same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
	code(t, db, "swallowed", row("a", noon, `{}`), row("b", noon, `{}`))
	same(t, d.Count(t), 1)
}

// TestBeforeInsert_DeletesAtCommit has a trigger before the insert write to a table whose deferred trigger deletes the row at the
// commit. The row is swallowed, and no row that is gone has a home.
func TestBeforeInsert_DeletesAtCommit(t *testing.T) {
	t.Parallel()
	for name, trigger := range map[string]string{
		"each row":   own(`INSERT INTO noted VALUES (NEW.decision_id); RETURN NEW;`) + before,
		"each batch": own(`INSERT INTO noted VALUES ('odd'); RETURN NULL;`) + `; CREATE TRIGGER own BEFORE INSERT ON decision_logs EXECUTE FUNCTION own()`,
	} {
		for _, by := range []string{"COPY", "INSERT"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				d := pgtest.New(t)
				d.Exec(t, `CREATE TABLE noted (id text); GRANT ALL ON noted TO PUBLIC;
					CREATE FUNCTION clear() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$ BEGIN
						DELETE FROM decision_logs WHERE decision_id = NEW.id AND decision_id = 'odd'; RETURN NULL; END $$;
					CREATE CONSTRAINT TRIGGER clear AFTER INSERT ON noted DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION clear();`+trigger)
				url := d.URL
				if by == "INSERT" {
					url = server{DB: d}.NoCopy(t).URL
				}
				db := open(t, url, time.Minute)
				code(t, db, "swallowed", row("a", noon, `{}`), row("odd", noon, `{}`))
				same(t, d.Count(t), 0)
				same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
			})
		}
	}
}
