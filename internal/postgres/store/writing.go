package store

import (
	"encoding/binary"

	"github.com/jackc/pgerrcode"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
)

// writing is one batch on its way into the table, and the two ways that there are.
type writing struct {
	rows            []pipeline.Row
	firsts, doubles []int
	outcomes        []pipeline.Outcome
	met             bool // some rows were there
	watched         bool // a trigger can remove rows that Postgres counts as stored
	end             func(*transaction) error
}

func newWriting(rows []pipeline.Row, end func(*transaction) error) *writing {
	w := &writing{rows: rows, outcomes: make([]pipeline.Outcome, len(rows)), end: end}
	w.firsts, w.doubles = order(rows)
	return w
}

// outcomesOr gives the outcomes unless there is an error.
func (w *writing) outcomesOr(err error) ([]pipeline.Outcome, error) {
	if err != nil {
		return nil, err
	}
	return w.outcomes, nil
}

// refusedCopy is a COPY that failed for what the insert may be able to do.
type refusedCopy struct{ err error }

func (r *refusedCopy) Error() string { return "copy: " + r.err.Error() }
func (r *refusedCopy) Unwrap() error { return r.err }

func (r *refusedCopy) code() string {
	s, ok := db.AsServerError(r.err)
	if !ok {
		return ""
	}
	return s.SQLState()
}

// asSuch says that it may be the COPY that is refused and not a row in it. The table has row-level security, is a view, or
// has columns of other types. Their readers find too many bytes (22P03) or too few (08P01), or have no binary form (42883).
func (r *refusedCopy) asSuch() bool {
	switch r.code() {
	case pgerrcode.FeatureNotSupported, pgerrcode.WrongObjectType,
		pgerrcode.InvalidBinaryRepresentation, pgerrcode.ProtocolViolation, pgerrcode.UndefinedFunction:
		return true
	}
	return false
}

// inTheWay marks what the careful way decides: a row that is there or violates another unique index, and a table that
// takes no COPY.
func inTheWay(err error) error {
	if r := (&refusedCopy{err}); db.Stays(err) && (r.code() == pgerrcode.UniqueViolation || r.asSuch()) {
		return r
	}
	return err
}

// quickly stores the rows by COPY, which takes only what is new. With look it asks first what is there: then COPY gets
// the rest, and where there is none only the commit writes.
func (w *writing) quickly(t *transaction, look bool) error {
	rest := w.firsts
	if look {
		if err := w.compare(t, w.firsts); err != nil {
			return err
		}
		rest = w.unknown(w.firsts)
		w.met = len(rest) < len(w.firsts)
	}
	if len(rest) > 0 {
		if err := w.copy(t, rest); err != nil {
			return err
		}
	}
	if err := w.compareAll(t, w.doubles); err != nil {
		return err
	}
	return w.finish(t)
}

// finish ends the transaction. Where a trigger can remove rows it looks for them first.
func (w *writing) finish(t *transaction) error {
	if w.watched && t.unlooked() {
		if err := w.lookFor(t); err != nil {
			return err
		}
	}
	return w.end(t)
}

// lookFor fails unless all rows are there after all triggers, the deferred ones too. It also looks for those that were there
// before, as a trigger may have removed one just now. The identity is enough: no other transaction can store a row of it meanwhile.
func (w *writing) lookFor(t *transaction) error {
	err := t.ask(removableSQL, nil, func(values [][]byte) error {
		w.watched = len(values) == 1 && len(values[0]) == 1 && values[0][0] == 1
		return nil
	})
	if err != nil || !w.watched {
		return err
	}
	if err := t.ask(immediateSQL, nil, nil); err != nil {
		return err
	}
	look := &writing{rows: w.rows, outcomes: make([]pipeline.Outcome, len(w.rows))}
	others, err := look.byHash(t, w.firsts)
	if err != nil {
		return err
	}
	for _, i := range others { // a trigger masked it
		look.outcomes[i] = pipeline.Present
	}
	t.looked = true
	return look.allThere(w.firsts)
}

// unknown are those of at that have no outcome.
func (w *writing) unknown(at []int) []int {
	var left []int
	for _, i := range at {
		if w.outcomes[i] == 0 {
			left = append(left, i)
		}
	}
	return left
}

func (w *writing) copy(t *transaction, at []int) error {
	n, err := t.copy(w.rows, at)
	switch {
	case err != nil:
		return inTheWay(err)
	case n < int64(len(at)):
		// A trigger swallows rows. The careful way asks which of them are there all the same.
		return &refusedCopy{errclass.As(&db.AnswerError{Problem: "fewer rows were copied than were sent"}, errclass.CodeProtocol)}
	case n > int64(len(at)):
		return errclass.As(&db.AnswerError{Problem: "more rows were copied than were sent"}, errclass.CodeProtocol)
	}
	for _, i := range at {
		w.outcomes[i] = pipeline.Stored
	}
	return nil
}

// carefully stores what is not there by an insert, which says itself what was new, and compares the others.
func (w *writing) carefully(t *transaction) error {
	clear(w.outcomes)
	left, err := insert(t, w.rows, w.firsts, w.outcomes)
	if err != nil {
		return err
	}
	w.met = len(left) > 0
	if err := w.compareAll(t, left); err != nil {
		return err
	}
	if err := w.compareAll(t, w.doubles); err != nil {
		return err
	}
	return w.finish(t)
}

// insert writes the rows at the positions at, which are of one identity each and in its order. It marks those that are new
// as Stored and returns the others.
func insert(t *transaction, rows []pipeline.Row, at []int, outcomes []pipeline.Outcome) ([]int, error) {
	var left []int
	next := 0
	err := t.ask(insertSQL, insertColumns(rows, at), func(values [][]byte) error {
		if len(values) != 2 || len(values[1]) != 8 {
			return errclass.As(&db.AnswerError{Problem: "the insert answered in another form than asked for"}, errclass.CodeProtocol)
		}
		// New rows come back in the order they were sent; those between them were not new.
		ts := int64(binary.BigEndian.Uint64(values[1]))
		for next < len(at) {
			i := at[next]
			next++
			if micros(rows[i].Log.Time) == ts && rows[i].Log.ID == string(values[0]) {
				outcomes[i] = pipeline.Stored
				return nil
			}
			left = append(left, i)
		}
		return errMissing()
	})
	left = append(left, at[next:]...)
	t.wrote = len(left) < len(at)
	return left, err
}

// compareAll is compare for rows that must be there.
func (w *writing) compareAll(t *transaction, at []int) error {
	if err := w.compare(t, at); err != nil {
		return err
	}
	return w.allThere(at)
}

// errMissing is the error of a row that the table took and does not have.
func errMissing() error {
	return errclass.As(&db.AnswerError{Problem: "a row was neither stored nor refused: a trigger swallows or deletes it, or alters its identity"}, errclass.CodeSwallowed)
}

func (w *writing) allThere(at []int) error {
	if len(w.unknown(at)) > 0 {
		return errMissing() // or somebody deleted it between our insert and our look; then the next try stores it
	}
	return nil
}

// compare looks which rows are there and marks them Present or Conflicting.
func (w *writing) compare(t *transaction, at []int) error {
	left, err := w.byHash(t, at)
	if err != nil {
		return err
	}
	return w.byPayload(t, left)
}

// byPayload does it by the payload alone, which is sent.
func (w *writing) byPayload(t *transaction, at []int) error {
	for len(at) > 0 {
		n := portion(w.rows, at)
		if err := w.payloadPortion(t, at[:n]); err != nil {
			return err
		}
		at = at[n:]
	}
	return nil
}

// maxPortion bounds what one comparison sends, in bytes, unless a single row is longer: all of it is in memory, here
// and on the server.
const maxPortion = 1 << 20

// portion is how many of the rows go into one comparison by payload.
func portion(rows []pipeline.Row, at []int) int {
	return portionOf(at, func(i int) int { return len(rows[i].Log.ID) + len(rows[i].Log.Raw) + 20 })
}

// portionOf is how many go into one where so many bytes are sent of each.
func portionOf(at []int, sent func(i int) int) int {
	size := 0
	for n, i := range at {
		if size += sent(i); size > maxPortion && n > 0 {
			return n
		}
	}
	return len(at)
}

func (w *writing) payloadPortion(t *transaction, at []int) error {
	return t.ask(compareSQL, compareColumns(w.rows, at), func(values [][]byte) error {
		if len(values) != 2 || len(values[0]) != 8 || len(values[1]) != 1 {
			return errOtherForm()
		}
		n := binary.BigEndian.Uint64(values[0])
		if n < 1 || n > uint64(len(at)) || w.outcomes[at[n-1]] != 0 {
			return errNotSent()
		}
		w.outcomes[at[n-1]] = pipeline.Conflicting
		if values[1][0] == 1 {
			w.outcomes[at[n-1]] = pipeline.Present
		}
		return nil
	})
}
