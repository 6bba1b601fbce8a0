//go:build integration

package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/postgres/db"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/testkit/pgtest"
)

var noonOfTrial = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// tryOut is a table with a ledger.
type tryOut struct {
	t    testing.TB
	pg   *pgtest.DB
	db   *store.Store
	book *ledgerdb.Ledger
}

func newTryOut(t testing.TB) *tryOut {
	t.Helper()
	d := &tryOut{t: t, pg: pgtest.New(t)}
	db, err := store.Open(db.Config{URL: d.pg.URL, StoreTimeout: 20 * time.Second, MaxConns: 12}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	d.db, d.book = db, ledgerdb.New(db.DB)
	return d
}

func trialValue(id, path, more string) string {
	return fmt.Sprintf(`{"decision_id":%q,"timestamp":%q,"path":%q%s}`, id, noonOfTrial.Format(time.RFC3339), path, more)
}

// enter enters dead letters with these values.
func (d *tryOut) enter(kind envelope.Kind, values ...string) (ids []string) {
	d.t.Helper()
	letters := make([]ledger.Letter, len(values))
	for i, v := range values {
		o := envelope.Origin{Topic: "decision-logs", Partition: int32(i % 3), Offset: int64(i), Index: 0, Timestamp: noonOfTrial}
		letters[i] = ledger.Letter{
			ID: envelope.ID(o, []byte(v)), Origin: o, Cause: envelope.Cause{Kind: kind, Code: "57P03", Message: "away"},
			Found:         ledger.Found{Topic: "decision-logs-dlq", Offset: int64(i), Stamp: noonOfTrial},
			FirstFailedAt: noonOfTrial, FailedAt: noonOfTrial.Add(time.Duration(i) * time.Millisecond), Key: []byte("k"), Value: []byte(v),
		}
		ids = append(ids, letters[i].ID)
	}
	if _, err := d.book.Enter(context.Background(), letters, 3, ledger.Actor{Name: "desk"}); err != nil {
		d.t.Fatal(err)
	}
	return ids
}

func (d *tryOut) store(values ...string) {
	d.t.Helper()
	var rows []pipeline.Row
	for i, v := range values {
		r, refused := decision.Decode([]byte(v), 1<<20)
		if refused != nil {
			d.t.Fatal(refused)
		}
		rows = append(rows, pipeline.Row{Log: &r.Parts[0].Log, Topic: "decision-logs", Offset: int64(i)})
	}
	if _, err := d.db.Store(context.Background(), rows, false); err != nil {
		d.t.Fatal(err)
	}
}

func (d *tryOut) trial() *worker.Trial {
	return worker.NewTrial(worker.TrialConfig{MaxRecordBytes: 1 << 20, Hint: db.Hint}, d.book, d.db)
}

func (d *tryOut) wants(want string) worker.TrialResult {
	d.t.Helper()
	r, err := d.trial().Run(context.Background(), ledger.Filter{}, 0, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	if r.String() != want {
		d.t.Errorf("%s\nnot %s", r, want)
	}
	return r
}

func TestTrial_OnPostgres(t *testing.T) {
	t.Parallel()
	d := newTryOut(t)
	d.store(trialValue("there", "ok", ""), trialValue("other", "ok", `,"result":true`))
	d.pg.Exec(t, `ALTER TABLE decision_logs ADD CONSTRAINT small CHECK (path <> 'bad' AND path <> 'there') NOT VALID`)
	values := []string{
		trialValue("there", "ok", ` `), trialValue("other", "ok", `,"result":1`), `{"half`,
		trialValue("a", "ok", "") + "\n" + trialValue("b", "bad", ""), trialValue("c", "ok", "") + "\n" + trialValue("d", "ok", ""),
		trialValue("twice", "ok", `,"result":true`), trialValue("twice", "ok", `,"result":false`),
	}
	for i := range 4993 {
		path := "ok"
		if i%1000 == 0 {
			path = "bad"
		}
		values = append(values, trialValue(fmt.Sprint("id-", i), path, ""))
	}
	ids := d.enter(envelope.Data, values...)
	// The two of one identity may be read in another order, and in different portions. Nothing else depends on the
	// order.
	r, err := d.trial().Run(t.Context(), ledger.Filter{}, 0, nil)
	if err != nil || r.Total != 5000 || r.There != 1 || r.Conflict+r.Would != 1+1+1+1+4988 || len(r.StillFail) != 1 ||
		r.StillFail[0] != (worker.TrialFault{Code: "23514", Constraint: "small", Letters: 6}) || r.Undecodable[decision.Syntax] != 1 || len(r.Undecodable) != 1 {
		t.Errorf("%v: %+v", err, r)
	}
	if n := d.pg.Count(t); n != 2 {
		t.Errorf("%d rows after the trial, not 2", n)
	}
	var states, sendings int
	d.pg.Query(t, `SELECT count(*) FROM dead_letters WHERE state = 'PENDING'`, &states)
	d.pg.Query(t, `SELECT count(*) FROM dead_letter_outbox`, &sendings)
	if states != len(ids) || sendings != 0 {
		t.Errorf("%d are PENDING, %d in the outbox", states, sendings)
	}
	// Everything that the trial accepted is stored by the retry.
	d.pg.Exec(t, `ALTER TABLE decision_logs DROP CONSTRAINT small`)
	if r, err := d.trial().RunIDs(t.Context(), ids[:5], nil); err != nil || r.String() != "2 would be stored, 1 has its row already, "+
		"1 still fails with id_conflict (stored with another payload), 1 cannot be read (syntax)" {
		t.Errorf("%v: %s", err, r)
	}
}

func TestTrial_UnwellTableOnPostgres(t *testing.T) {
	t.Parallel()
	d := newTryOut(t)
	d.enter(envelope.Data, trialValue("a", "ok", ""))
	d.pg.RaiseAll(t, pgtest.Fault{Code: "23514", Constraint: "odd"})
	r, err := d.trial().Run(t.Context(), ledger.Filter{}, 0, nil)
	if err != nil || r.Unwell == nil || r.Unwell.Code != "23514" || r.Total != 0 {
		t.Errorf("%v: %+v", err, r)
	}
	d.pg.Calm(t)
	d.wants("1 would be stored")
}

func TestTrial_BrokenTriggerOnPostgres(t *testing.T) {
	t.Parallel()
	d := newTryOut(t)
	var values []string
	for i := range 300 {
		values = append(values, trialValue(fmt.Sprint(i), []string{"ok", "broken"}[i%100/99], ""))
	}
	d.enter(envelope.Data, values...)
	d.pg.BeforeInsert(t, `IF NEW.path = 'broken' THEN NEW.path := NEW.nothing; END IF; RETURN NEW;`)
	if r := d.wants("297 would be stored, 3 still fail with 42703"); r.Total != 300 {
		t.Errorf("%+v", r)
	}
}

func TestTrial_LostConnection(t *testing.T) {
	t.Parallel()
	d := newTryOut(t)
	d.enter(envelope.Data, trialValue("a", "ok", ""))
	d.pg.BeforeInsert(t, `IF NEW.decision_id = 'a' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NEW;`)
	if r, err := d.trial().Run(t.Context(), ledger.Filter{}, 0, nil); err == nil || r.Total != 0 {
		t.Errorf("%v: %s", err, r)
	}
}

func TestTrial_EditedValueOnPostgres(t *testing.T) {
	t.Parallel()
	d := newTryOut(t)
	d.pg.Exec(t, `ALTER TABLE decision_logs ADD CONSTRAINT small CHECK (path <> 'bad')`)
	for value, want := range map[string]string{
		trialValue("a", "ok", ""):  "1 would be stored",
		trialValue("a", "bad", ""): "0 would be stored, 1 still fails with 23514 (constraint small)",
		`{}`:                       "0 would be stored, 1 cannot be read (missing_field)",
	} {
		if r, err := d.trial().RunValue(t.Context(), []byte(value)); err != nil || r.String() != want {
			t.Errorf("%v: %s, not %s", err, r, want)
		}
	}
	if n := d.pg.Count(t); n != 0 {
		t.Errorf("%d rows", n)
	}
}
