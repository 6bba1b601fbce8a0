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
