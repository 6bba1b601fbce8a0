package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
)

// wideProbe is how many rows a probe has after a disk was found full. One row may still fit into a page that the table
// has already; so many need new ones, of the index too.
const wideProbe = 256

// Probe stores a known-good row of the given time by the statements of [Store.Store], has deferred constraints checked, and rolls
// it all back. Then it commits something harmless and waits for that as for any commit. It does so on a connection that it
// dials, within its own store timeout. The zero time is the present, or else the time of a decision that is stored or was refused.
//
// nil means that the table takes good rows of that time and that commits are confirmed. Where Store goes by COPY no insert is
// tried: a table can take the one and not the other, as with a rule for UPDATE, and rows that are there already are asked for.
func (st *Store) Probe(ctx context.Context, at time.Time) error {
	return st.Noted("probe the table", st.Beside(ctx, true, func(ctx context.Context, pg *pgconn.PgConn) error {
		return st.probeOn(ctx, pg, at)
	}))
}

// probeOn is Probe on a connection that is there.
func (st *Store) probeOn(ctx context.Context, pg *pgconn.PgConn, at time.Time) error {
	if err := st.probeAny(ctx, pg, at); err != nil {
		return err
	}
	return transact(ctx, pg, (*transaction).commit)
}

// probeAny asks for one good row after the other until the table takes one: the last that it took, one that is made up, and
// one that is stored. The probe of any time also asks for some of the batches that were refused. Users' constraints need not
// like the one that is made up, and the others may be from before a constraint was tightened. The error is that of the first.
// A failure that says nothing of a row ends it.
func (st *Store) probeAny(ctx context.Context, pg *pgconn.PgConn, at time.Time) (refused error) {
	own, began := at.IsZero(), time.Now()
	if own {
		at = began
	}
	settled := func(c *canary, at time.Time) bool {
		err := st.probeRow(ctx, pg, c, at)
		if other := c.apart(); other != nil && isTaken(err) && !pg.IsClosed() {
			err = st.probeRow(ctx, pg, other, at)
		}
		class := errclass.Classify(err).Class
		again := (class == errclass.Data || class == errclass.Systemic) && !pg.IsClosed()
		if !again || refused == nil {
			refused = err
		}
		return !again
	}
	last := st.last.get()
	if last != nil && settled(last, at) || settled(madeUp, at) {
		return refused
	}
	lately := own && last != nil
	if last == nil {
		around := 24 * time.Hour
		if own {
			around = anyTime
		}
		if last = seen(ctx, pg, at, around, st.Timeout()/4); last != nil && settled(last, at) {
			return refused
		}
	}
	if !own || last != nil && settled(last, last.at) {
		return refused
	}
	first := refused
	for range mostAsked {
		c := st.last.offered()
		if c == nil || time.Since(began) > st.Timeout()/2 {
			break
		}
		if !settled(c, c.at) {
			continue
		}
		if refused != nil { // of the moment, as after too long a time or a lost look: the table has refused rows all the same
			return first
		}
		st.last.took(c)
		return nil
	}
	if !lately || time.Since(began) > st.Timeout()/2 {
		return refused
	}
	// Another process may have stored a row since a constraint was tightened. The look comes last, as it may end the connection.
	if c := seen(ctx, pg, at, time.Minute, st.Timeout()/4); c != nil && settled(c, at) && refused != nil {
		return first
	}
	return refused
}

// isTaken reports whether a row was refused because of another row: by a unique index or an exclusion constraint. That
// says nothing of the table.
func isTaken(err error) bool {
	s, ok := db.AsServerError(err)
	return ok && (s.SQLState() == pgerrcode.UniqueViolation || s.SQLState() == pgerrcode.ExclusionViolation)
}

// ofTheRows reports whether a constraint of any kind refused rows, or their values were at fault.
func ofTheRows(err error) bool {
	s, ok := db.AsServerError(err)
	return ok && (pgerrcode.IsIntegrityConstraintViolation(s.SQLState()) || errclass.Classify(err).Class == errclass.Data)
}

// probeRow stores a good row of that time, and takes it back. After a disk was found full it stores many.
func (st *Store) probeRow(ctx context.Context, pg *pgconn.PgConn, c *canary, at time.Time) error {
	if st.FoundFull() {
		err := st.probeRows(ctx, pg, c, at, wideProbe)
		if !ofTheRows(err) && !isSwallowed(err) || pg.IsClosed() {
			return err
		}
		// Users' constraints and triggers may have room for one of them, or for its number alone. If the disk is full all the
		// same, the next write says so.
	}
	return st.probeRows(ctx, pg, c, at, 1)
}

func (st *Store) probeRows(ctx context.Context, pg *pgconn.PgConn, c *canary, at time.Time, n int) error {
	rows := make([]pipeline.Row, n)
	for i := range rows {
		rows[i] = c.row(at, i)
	}
	w := newWriting(rows, (*transaction).takeBack)
	return st.watching(w, func() error { return st.probeWriting(ctx, pg, w) })
}

func (st *Store) probeWriting(ctx context.Context, pg *pgconn.PgConn, w *writing) error {
	var refused *refusedCopy
	if !st.inserts.Load() {
		err := transact(ctx, pg, w.probeCopy)
		if s, ok := db.AsServerError(err); ok && strings.HasPrefix(s.SQLState(), "22") {
			// Nothing is wrong with the row: a column is not of the type whose binary form it was sent.
			err = &refusedCopy{db.NewServerError(pgerrcode.WrongObjectType, s.Severity())}
		}
		switch {
		case err == nil:
			st.FoundRoom()
			return nil
		case !errors.As(err, &refused) || !refused.asSuch():
			return err
		}
	}
	if err := transact(ctx, pg, w.probeInsert); err != nil {
		return err
	}
	st.turn(refused)
	st.FoundRoom()
	return nil
}

// swallowedProbe is the error of good rows of which the table did not keep all.
type swallowedProbe struct{ error }

func (s *swallowedProbe) Unwrap() error { return s.error }

func isSwallowed(err error) bool {
	_, is := errors.AsType[*swallowedProbe](err)
	return is
}

func errSwallowed() error {
	return &swallowedProbe{errclass.As(&db.AnswerError{Problem: "a good row was neither stored nor refused: a trigger or rule swallows or deletes it"}, errclass.CodeConfig)}
}

func (w *writing) probeCopy(t *transaction) error {
	n, err := t.copy(w.rows, w.firsts)
	switch {
	case err != nil:
		return inTheWay(err)
	case n != int64(len(w.firsts)):
		return errSwallowed()
	}
	if err := w.comparesBothWays(t, w.firsts[:1]); err != nil { // the answers do not count: a trigger can alter the identity
		return err
	}
	return w.finishProbe(t)
}

func (w *writing) probeInsert(t *transaction) error {
	left, err := insert(t, w.rows, w.firsts, w.outcomes)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return errSwallowed()
	}
	if err := w.comparesBothWays(t, w.firsts[:1]); err != nil { // as the next row that is there already will need it
		return err
	}
	return w.finishProbe(t)
}

// finishProbe is finish for a row that is good: if a trigger removes it, the table is at fault.
func (w *writing) finishProbe(t *transaction) error {
	err := w.finish(t)
	if errclass.Classify(err).Code == errclass.CodeSwallowed {
		return errSwallowed()
	}
	return err
}

// comparesBothWays asks for rows by their hash and by their payload, whatever the answers are.
func (w *writing) comparesBothWays(t *transaction, at []int) error {
	clear(w.outcomes)
	if _, err := w.byHash(t, at); err != nil {
		return err
	}
	clear(w.outcomes)
	return w.byPayload(t, at)
}
