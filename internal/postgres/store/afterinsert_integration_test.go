//go:build integration

package store_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

const (
	conflicting = pipeline.Conflicting

	deleteGone  = `DELETE FROM decision_logs WHERE decision_id = NEW.decision_id AND NEW.decision_id LIKE 'gone%'; RETURN NULL;`
	deleteOther = `DELETE FROM decision_logs WHERE decision_id <> NEW.decision_id; RETURN NULL;`
	dropOwn     = `BEGIN; LOCK TABLE decision_logs; DROP TRIGGER own ON decision_logs; COMMIT` // locks in the order of writers
)

// TestAfterInsert_CreatedMeanwhile has the trigger come and go while the store is in use. While it is there, a batch with a row
// that it deletes leaves nothing. Once it is gone, rows are looked for no more.
func TestAfterInsert_CreatedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, trigger := range map[string]string{"each row": after, "deferred": deferred} {
		for _, by := range []string{"COPY", "INSERT"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				d := pgtest.New(t)
				url := d.URL
				if by == "INSERT" {
					url = server{DB: d}.NoCopy(t).URL
				}
				db := open(t, url, time.Minute)
				d.Exec(t, definer(deleteGone))
				same(t, save(t, db, row("gone-1", noon, `{}`), row("a", noon, `{}`)), []pipeline.Outcome{stored, stored})
				same(t, store.Watches(db), false)
				d.Exec(t, trigger[2:])
				code(t, db, "swallowed", row("gone-2", noon, `{}`), row("b", noon, `{}`))
				same(t, d.Count(t), 2)
				same(t, store.Watches(db), true)
				same(t, save(t, db, row("b", noon, `{}`), row("gone-1", noon, `{}`), row("b", noon, `{"v":1}`)), []pipeline.Outcome{stored, present, conflicting})
				d.Exec(t, dropOwn)
				same(t, save(t, db, row("gone-2", noon, `{}`), row("c", noon, `{}`)), []pipeline.Outcome{stored, stored})
				same(t, store.Watches(db), false)
				same(t, d.Count(t), 5)
			})
		}
	}
}

// TestAfterInsert_RowOfBefore has a trigger delete a row that was there when the batch began: it does not count as a duplicate.
func TestAfterInsert_RowOfBefore(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, time.Minute)
	save(t, db, row("a", noon, `{}`))
	d.Exec(t, own(deleteOther)+after)
	code(t, db, "swallowed", row("a", noon, `{}`), row("b", noon, `{}`))
	same(t, d.Count(t), 1)
	same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{present})
}

// TestAfterInsert_KeptRows has triggers that copy a row, mask it, or delete it and insert it again: it is stored.
func TestAfterInsert_KeptRows(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"copied": `INSERT INTO aside SELECT NEW.*; RETURN NULL;`,
		"masked": `UPDATE decision_logs SET raw = '{}', raw_sha256 = NULL WHERE decision_id = NEW.decision_id; RETURN NULL;`,
		"replaced": `IF pg_trigger_depth() = 1 THEN
			DELETE FROM decision_logs WHERE decision_id = NEW.decision_id; INSERT INTO decision_logs SELECT NEW.*; END IF; RETURN NULL;`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			d.Exec(t, `CREATE TABLE aside (LIKE decision_logs); `+own(body)+after)
			db := open(t, d.URL, time.Minute)
			same(t, save(t, db, row("a", noon, `{"v":1}`), row("b", noon, `{"v":1}`)), []pipeline.Outcome{stored, stored})
			same(t, d.Count(t), 2)
			if err := db.Probe(t.Context(), noon); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAfterInsert_EveryRow has a table that keeps nothing: it is at fault, and no record. So Docket holds, and check says why.
func TestAfterInsert_EveryRow(t *testing.T) {
	t.Parallel()
	for name, trigger := range map[string]string{"each row": after, "deferred": deferred} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			d.Exec(t, own(`DELETE FROM decision_logs WHERE decision_id = NEW.decision_id; RETURN NULL;`)+trigger)
			db := open(t, d.URL, time.Minute)
			c := carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-a", midday, nil)), sourceRecord(2, event("id-b", midday, nil))})
			if len(c.homes)+len(c.sent) > 0 || c.commit != -1 || len(c.holds) != 1 || c.holds[0].Code != "config" {
				t.Errorf("homes %v, sent %d, committed %d, held %+v", c.homes, len(c.sent), c.commit, c.holds)
			}
			levels := map[string]schema.Level{}
			fresh := open(t, d.URL, time.Minute) // as the command
			for _, check := range schema.New(fresh.DB).Check(t.Context(), fresh.Probe) {
				levels[check.Name] = check.Level
			}
			same(t, []schema.Level{levels["triggers"], levels["write"]}, []schema.Level{schema.Warn, schema.Fail})
			d.Exec(t, dropOwn)
			same(t, carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-a", midday, nil))}).homes, []string{"1 row"})
		})
	}
}

// TestTriggers_RoleThatCannotLook has roles that cannot see whether a trigger left their rows. No row of theirs counts as stored:
// Docket holds, check says what they lack, and all rows are stored once they have it.
func TestTriggers_RoleThatCannotLook(t *testing.T) {
	t.Parallel()
	for _, grants := range []string{"INSERT", "INSERT, SELECT (path)", "INSERT, SELECT (decision_id, ts)"} {
		for name, trigger := range map[string]string{
			"before": definer(`RETURN NEW;`) + before, "after": definer(deleteGone) + after, "deferred": definer(deleteGone) + deferred,
		} {
			t.Run(grants+" "+name, func(t *testing.T) {
				t.Parallel()
				d := pgtest.New(t)
				d.Exec(t, trigger)
				db := open(t, d.Role(t, grants), time.Minute)
				batch := []*kgo.Record{sourceRecord(1, event("id-a", midday, nil)), sourceRecord(2, event("id-b", midday, nil))}
				c := carry(t, db, false, 1, batch)
				if len(c.homes)+len(c.sent) > 0 || c.commit != -1 || len(c.holds) != 1 || c.holds[0].Code != "42501" {
					t.Errorf("homes %v, sent %d, committed %d, held %+v", c.homes, len(c.sent), c.commit, c.holds)
				}
				same(t, d.Count(t), 0)
				found := map[string]schema.Check{}
				for _, check := range schema.New(db.DB).Check(t.Context(), db.Probe) {
					found[check.Name] = check
				}
				if c := found["grants"]; c.Level != schema.Fail || !strings.Contains(c.Detail, "SELECT") || !strings.Contains(c.Hint, "GRANT SELECT") {
					t.Errorf("%+v", c)
				}
				d.Exec(t, `GRANT SELECT ON decision_logs TO PUBLIC`)
				same(t, carry(t, db, false, 0, batch).homes, []string{"1 row", "2 row"})
			})
		}
	}
}

// TestAfterInsert_UnderWriters has writers store while the trigger comes and goes, also through a pooler: each row that one of
// them was told is stored is there at the end, and not one is lost to the trigger.
func TestAfterInsert_UnderWriters(t *testing.T) {
	t.Parallel()
	for _, through := range []string{"the server", "a pooler"} {
		t.Run(through, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			url := d.URL
			if through == "a pooler" {
				url = pooled(t, d.URL, 3)(d.URL)
			}
			d.Exec(t, definer(deleteGone))
			const writers, rounds = 6, 8
			var (
				wait    sync.WaitGroup
				refused atomic.Int64
				done    atomic.Bool
				told    atomic.Int64 // rows
			)
			for w := range writers {
				db := open(t, url, time.Minute)
				wait.Go(func() {
					for b := 0; !done.Load() && t.Context().Err() == nil; b++ {
						rows := []pipeline.Row{row(fmt.Sprintf("%d-%d", w, b), noon, `{}`), row(fmt.Sprintf("gone-%d-%d", w, b), day(b%3), `{}`)}
						out, err := db.Store(t.Context(), rows, false)
						told.Add(int64(len(out)))
						if errclass.Classify(err).Code == errclass.CodeSwallowed {
							refused.Add(1)
						} else if err != nil && t.Context().Err() == nil {
							t.Errorf("store: %v", err)
							return
						}
					}
				})
			}
			for round := range rounds {
				before := refused.Load()
				d.Exec(t, []string{after, deferred}[round%2][2:])
				for end := time.Now().Add(20 * time.Second); refused.Load() < before+writers; time.Sleep(time.Millisecond) {
					if t.Failed() || time.Now().After(end) {
						done.Store(true)
						t.Fatalf("round %d: %d writes were refused, want %d more", round, refused.Load(), before+writers-refused.Load())
					}
				}
				d.Exec(t, dropOwn)
			}
			done.Store(true)
			wait.Wait()
			same(t, int64(d.Count(t)), told.Load())
		})
	}
}
