package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"time"

	"docket/internal/decision"
	"docket/internal/errclass"
	"docket/internal/pipeline"
)

// wideProbe is how many rows a probe has after a disk was found full. One row may still fit into a page that the table
// has already; so many need new ones, of the index too.
const wideProbe = 256

// Probe stores a known-good row of the given time by the statement of [DB.Store], on a connection of its own and
// within its own store timeout, has deferred constraints checked, and rolls it all back. nil means that the table takes
// good rows of that time.
func (db *DB) Probe(ctx context.Context, at time.Time) error {
	n := 1
	if db.full.Load() {
		n = wideProbe
	}
	rows := make([]pipeline.Row, n)
	for i := range rows {
		rows[i] = knownGood(at)
	}
	err := db.transact(ctx, true, func(ctx context.Context, t *transaction) error {
		firsts, _ := order(rows)
		left, err := insert(ctx, t, rows, firsts, make([]pipeline.Outcome, n))
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return errclass.As(&AnswerError{Problem: "a good row was neither stored nor refused: a trigger or rule swallows it"}, errclass.CodeConfig)
		}
		if err := t.ask(ctx, immediateSQL, nil, nil); err != nil {
			return err
		}
		t.rollback()
		return nil
	})
	if err != nil {
		return db.noted("probe the table", err)
	}
	db.full.Store(false)
	return nil
}

// knownGood is a row with a value in every column, none of them remarkable. Its id is new each time, so that two
// probes never wait for each other.
func knownGood(at time.Time) pipeline.Row {
	id := "docket-probe-" + rand.Text()
	labels := `{"id":"docket-probe","version":"0"}`
	raw := fmt.Sprintf(`{"decision_id":%q,"timestamp":%q,"path":"docket/probe","result":true,"requested_by":"docket","req_id":1,"labels":%s,"bundles":{}}`,
		id, at.UTC().Format(time.RFC3339Nano), labels)
	return pipeline.Row{
		Topic: "docket-probe",
		Log: &decision.Log{
			ID: id, Time: at,
			Path: given("docket/probe"), Service: given("docket"), RequestedBy: given("docket"),
			OPAID: given("docket-probe"), OPAVersion: given("0"),
			Allowed: given(true), ReqID: given(int64(1)),
			Labels: []byte(labels), Bundles: []byte(`{}`), Raw: []byte(raw),
		},
	}
}

func given[T any](v T) sql.Null[T] { return sql.Null[T]{V: v, Valid: true} }
