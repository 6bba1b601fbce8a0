package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/errclass"
	"docket/internal/pipeline"
)

// Refusals asks the table about each row alone and keeps none. refused[i] is the data fault for which it does not take
// rows[i], a [*ServerError]; nil where it takes it, or has a row of that identity. Any other failure ends the asking, and
// then nothing is known of any row. It takes at most the store timeout.
//
// Each row is an INSERT of its own, taken back before the next. They travel together: a row costs no round trip, and
// nothing is committed, so no lost answer leaves anything open.
//
// Where probe is not zero it asks on a connection that was not used before, and only while the table takes a known-good
// row of that time on it, before the first and after the last. Where it does not, the error is a [*pipeline.Unwell].
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
		if err := db.probeOn(ctx, pg, probe); err != nil {
			return &pipeline.Unwell{Err: err}
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

// askName is the prepared statement of one asking. It is gone before the transaction ends, or the connection is: no
// other client behind a pooler ever meets it.
const askName = "docket_ask"

// asked bounds what is on its way at a time, in rows; [maxPortion] does in bytes.
const asked = 256

// each asks about all rows. Whatever goes wrong in between costs the connection, so that nothing stays on it.
func (a *asking) each(t *transaction) error {
	at, err := a.unknown(t)
	if err != nil || len(at) == 0 {
		t.rollback()
		return err
	}
	if err := a.prepare(t); err != nil {
		return t.lost(err)
	}
	for len(at) > 0 {
		n := min(portion(a.rows, at), asked)
		if err := a.some(t, at[:n]); err != nil {
			return t.lost(err)
		}
		at = at[n:]
	}
	t.pipe.SendDeallocate(askName)
	if err := t.pipe.Sync(); err != nil {
		return t.lost(err)
	}
	if _, err := result[*pgconn.CloseComplete](t); err != nil {
		return t.lost(err)
	}
	if err := t.synced(); err != nil {
		return t.lost(err)
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

func (a *asking) prepare(t *transaction) error {
	answers := t.begin()
	t.pipe.SendQueryParams(savepointSQL, nil, nil, nil, nil)
	t.pipe.SendPrepare(askName, askSQL, nil)
	if err := t.begins(answers + 1); err != nil {
		return err
	}
	if _, err := result[*pgconn.StatementDescription](t); err != nil {
		return err
	}
	return t.synced()
}

// some sends rows in one go, each followed by its taking back, and reads what the table says to each.
func (a *asking) some(t *transaction, at []int) error {
	values := &askValues{}
	for _, i := range at {
		t.pipe.SendQueryPrepared(askName, values.of(&a.rows[i]), inBinary, nil)
		t.pipe.SendPipelineSync() // what follows a refusal is skipped up to here
		t.pipe.SendQueryParams(backSQL, nil, nil, nil, nil)
	}
	if err := t.pipe.Sync(); err != nil {
		return err
	}
	for _, i := range at {
		if err := a.hear(t, i); err != nil {
			return err
		}
	}
	return t.synced()
}

// hear reads what the table says to one row.
func (a *asking) hear(t *transaction, i int) error {
	tag, err := t.answer(nil)
	s, refused := asServerError(err)
	switch {
	case err == nil && tag.RowsAffected() != 1:
		return errSwallowed()
	case err == nil, refused && s.SQLState() == pgerrcode.UniqueViolation:
	case refused && stays(err) && errclass.Classify(s).Class == errclass.Data:
		a.refused[i] = clean(a.act, err)
	default:
		return err
	}
	if err := t.synced(); err != nil {
		return err
	}
	_, err = t.answer(nil)
	return err
}

// result reads an answer that is no statement's.
func result[T any](t *transaction) (T, error) {
	var none T
	got, err := t.pipe.GetResults()
	if err != nil {
		return none, err
	}
	if is, ok := got.(T); ok {
		return is, nil
	}
	return none, errclass.As(&AnswerError{Problem: "a request was answered with something else"}, errclass.CodeProtocol)
}

// askValues are the parameters of askSQL, in memory that is used again for the next row.
type askValues struct {
	params [16][]byte
	buf    []byte
}

// of gives the values of a row, good until the next call.
func (v *askValues) of(r *pipeline.Row) [][]byte {
	l := r.Log
	v.buf = v.buf[:0]
	if size := len(l.ID) + len(l.Path.V) + len(l.RequestedBy.V) + len(l.OPAID.V) + len(l.OPAVersion.V) + len(l.Service.V) + len(r.Topic) + 64; cap(v.buf) < size {
		v.buf = make([]byte, 0, size) // at once: what was given out must not move
	}
	v.params = [16][]byte{
		v.text(l.ID, true), v.int8(micros(l.Time), true), v.text(l.Path.V, l.Path.Valid), v.bool(l.Allowed.V, l.Allowed.Valid),
		v.text(l.RequestedBy.V, l.RequestedBy.Valid), v.int8(l.ReqID.V, l.ReqID.Valid), v.text(l.OPAID.V, l.OPAID.Valid),
		v.text(l.OPAVersion.V, l.OPAVersion.Valid), v.text(l.Service.V, l.Service.Valid),
		given0(l.Labels), given0(l.Bundles), given0(l.Raw),
		v.text(r.Topic, true), v.int4(r.Partition), v.int8(r.Offset, true), v.int4(int32(r.Index)),
	}
	return v.params[:]
}

// given0 is a text of JSON; none is NULL.
func given0(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

func (v *askValues) since(from int) []byte { return v.buf[from:len(v.buf):len(v.buf)] }

func (v *askValues) text(s string, valid bool) []byte {
	if !valid {
		return nil
	}
	from := len(v.buf)
	v.buf = append(v.buf, s...)
	return v.since(from)
}

func (v *askValues) bool(b, valid bool) []byte {
	switch {
	case !valid:
		return nil
	case b:
		return []byte{1}
	}
	return []byte{0}
}

func (v *askValues) int4(n int32) []byte {
	from := len(v.buf)
	v.buf = binary.BigEndian.AppendUint32(v.buf, uint32(n))
	return v.since(from)
}

func (v *askValues) int8(n int64, valid bool) []byte {
	if !valid {
		return nil
	}
	from := len(v.buf)
	v.buf = binary.BigEndian.AppendUint64(v.buf, uint64(n))
	return v.since(from)
}
