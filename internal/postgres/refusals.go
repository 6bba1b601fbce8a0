package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/errclass"
	"docket/internal/pipeline"
)

// Refusals asks the table about each row alone and keeps none. refused[i] is the data fault for which it does not take
// rows[i], a [*ServerError]; nil where it takes it, or has a row of that identity. Any other failure ends the asking, and
// then nothing is known of any row. It takes at most the store timeout.
//
// Each row is an INSERT of its own, taken back before the next, by a block that the server runs: a row costs neither a
// round trip nor an error in the server's log. Nothing is committed, so no lost answer leaves anything open. Where there is
// no PL/pgSQL it fails.
//
// Where probe is not zero it asks on a connection that was not used before, on which the table then has to take a
// known-good row of that time. Where it does not, the error is a [*pipeline.Unwell].
func (db *DB) Refusals(ctx context.Context, rows []pipeline.Row, probe time.Time) (refused []error, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	const act = "ask about single rows"
	a := &asking{rows: rows, refused: make([]error, len(rows)), look: db.met.has(sourceOf(rows)), act: act}
	err = db.connected(ctx, !probe.IsZero(), func(ctx context.Context, pg *pgconn.PgConn) error {
		if probe.IsZero() {
			return transact(ctx, pg, a.each)
		}
		if err := transact(ctx, pg, a.each); err != nil {
			return err
		}
		if err := db.probeOn(ctx, pg, probe); err != nil {
			return &pipeline.Unwell{Err: err}
		}
		return nil
	})
	if unwell, ok := errors.AsType[*pipeline.Unwell](err); ok {
		return nil, &pipeline.Unwell{Err: db.noted("probe the table", unwell.Err)}
	}
	if err = db.noted(act, err); err != nil {
		return nil, err
	}
	return a.refused, nil
}

// asking is what the table is asked about, row by row.
type asking struct {
	rows    []pipeline.Row
	refused []error
	look    bool // what is there already is not asked about
	act     string
}

// each asks about all rows, a portion in one go.
func (a *asking) each(t *transaction) error {
	at, err := a.unknown(t)
	if err != nil {
		return err
	}
	for len(at) > 0 {
		n := portion(a.rows, at)
		if err := a.some(t, at[:n]); err != nil {
			return err
		}
		at = at[n:]
	}
	t.rollback()
	return nil
}

// unknown are the positions of the rows to ask about, those that are there left out where a look is due.
func (a *asking) unknown(t *transaction) ([]int, error) {
	at := make([]int, len(a.rows))
	for i := range at {
		at[i] = i
	}
	if !a.look {
		return at, nil
	}
	w := &writing{rows: a.rows, outcomes: make([]pipeline.Outcome, len(a.rows))}
	if err := w.compare(t, at); err != nil {
		return nil, err
	}
	return w.unknown(at), nil
}

// some asks about the rows at these positions.
func (a *asking) some(t *transaction, at []int) error {
	before := t.begin()
	t.pipe.SendQueryParams(offerSQL, insertColumns(a.rows, at), nil, inBinary, nil)
	t.pipe.SendQueryParams(askSQL, nil, nil, nil, nil)
	t.pipe.SendQueryParams(refusedSQL, nil, nil, nil, inBinary)
	if err := t.begins(before + 2); err != nil {
		return err
	}
	if _, err := t.answer(func(values [][]byte) error { return a.hear(at, values) }); err != nil {
		return err
	}
	return t.synced()
}

// hear takes note of a row that is refused.
func (a *asking) hear(at []int, values [][]byte) error {
	if len(values) == 5 && len(values[0]) == 8 {
		if n := binary.BigEndian.Uint64(values[0]); n >= 1 && n <= uint64(len(at)) {
			s := newServerError(&pgconn.PgError{
				Code: string(values[1]), ConstraintName: string(values[2]), ColumnName: string(values[3]), TableName: string(values[4]),
			})
			if errclass.Classify(s).Class != errclass.Data {
				return s
			}
			a.refused[at[n-1]] = clean(a.act, s)
			return nil
		}
	}
	return errclass.As(&AnswerError{Problem: "a row was refused that was not sent"}, errclass.CodeProtocol)
}
