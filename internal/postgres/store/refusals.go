package store

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
)

// Refusals asks the table about each row alone and keeps none. The data fault for which it does not take rows[i] is
// refused[i], a [*db.ServerError]. It is nil where the table takes it, or has a row of that identity. Any other failure ends
// the asking, and then nothing is known of any row. It takes at most the store timeout.
//
// Each row is an INSERT of its own, taken back before the next, by a block that the server runs: a row costs neither a
// round trip nor an error in the server's log. Nothing is committed, so no lost answer leaves anything open. Where there is
// no PL/pgSQL it fails.
//
// Where probe is not zero it asks as a second time wants it: on a connection beside the pool, dialled a few seconds ago at
// most and never used for anything that was kept. On it the table then has to take a known-good row of that time. Where it
// does not, the error is a [*pipeline.Unwell].
func (st *Store) Refusals(ctx context.Context, rows []pipeline.Row, probe time.Time) (refused []error, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	const act = "ask about single rows"
	a := &asking{rows: rows, look: st.met.has(sourceOf(rows)) || !probe.IsZero(), act: act}
	if probe.IsZero() {
		err = st.Connected(ctx, false, func(ctx context.Context, pg *pgconn.PgConn) error { return transact(ctx, pg, a.each) })
	} else {
		err = st.Beside(ctx, false, func(ctx context.Context, pg *pgconn.PgConn) error {
			if err := transact(ctx, pg, a.each); err != nil {
				return err
			}
			if err := st.probeOn(ctx, pg, probe); err != nil {
				return &pipeline.Unwell{Err: err}
			}
			return nil
		})
	}
	if unwell, ok := errors.AsType[*pipeline.Unwell](err); ok {
		return nil, &pipeline.Unwell{Err: st.Noted("probe the table", unwell.Err)}
	}
	if err = st.Noted(act, err); err != nil {
		return nil, err
	}
	return a.refused, nil
}

// asking is what the table is asked about, row by row.
type asking struct {
	rows    []pipeline.Row
	refused []error
	look    bool // a row that is there already is not asked about: always so the second time, as it can be from before a constraint
	act     string
}

// each asks about all rows, a portion in one go.
func (a *asking) each(t *transaction) error {
	a.refused = make([]error, len(a.rows)) // the answers of a lost connection do not count
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

// Between the fields of a line, and between lines.
const (
	fieldEnd = "\x1f"
	lineEnd  = "\x1e"
)

// hear takes note of the rows that are refused. Each has a line with its number, the code, and the names of constraint,
// column and table. No name holds the end of a field or a line. A line with another number of fields names no row.
func (a *asking) hear(at []int, values [][]byte) error {
	if len(values) != 1 {
		return errNotAsked()
	}
	if len(values[0]) == 0 {
		return nil
	}
	var before string // the line of the row before, as a rule the same
	var why error
	for line := range strings.SplitSeq(string(values[0]), lineEnd) {
		number, said, _ := strings.Cut(line, fieldEnd)
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(at) || a.refused[at[n-1]] != nil {
			return errNotAsked()
		}
		if why == nil || said != before {
			if why, err = a.reason(said); err != nil {
				return err
			}
			before = said
		}
		a.refused[at[n-1]] = why
	}
	return nil
}

// reason is what was said of a row, as its error.
func (a *asking) reason(said string) (why, err error) {
	fields := strings.Split(said, fieldEnd)
	if len(fields) != 4 {
		return nil, errNotAsked()
	}
	s := db.ServerErrorOf(&pgconn.PgError{Code: fields[0], ConstraintName: fields[1], ColumnName: fields[2], TableName: fields[3]})
	if errclass.Classify(s).Class != errclass.Data {
		return nil, s
	}
	return db.Clean(a.act, s), nil
}

func errNotAsked() error {
	return errclass.As(&db.AnswerError{Problem: "a row was refused that was not sent"}, errclass.CodeProtocol)
}
