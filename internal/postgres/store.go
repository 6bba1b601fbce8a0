package postgres

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/errclass"
	"docket/internal/pipeline"
)

// Store writes rows in one transaction, all or none, and says what became of each, in order. It may be repeated with
// the same rows at any time, also after an error that leaves open whether they were stored. Of rows with one identity
// the earlier wins and the later is compared with it. It takes at most the store timeout.
//
// fresh dials a connection beside the pool for this call alone: it can be no victim of what an earlier statement or a
// stale cancel request left behind, and where the pool is full it does not wait.
func (db *DB) Store(ctx context.Context, rows []pipeline.Row, fresh bool) ([]pipeline.Outcome, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	outcomes := make([]pipeline.Outcome, len(rows))
	err := db.transact(ctx, fresh, func(ctx context.Context, t *transaction) error {
		firsts, doubles := order(rows)
		left, err := insert(ctx, t, rows, firsts, outcomes)
		if err != nil {
			return err
		}
		if left = append(left, doubles...); len(left) > 0 {
			if err := compare(ctx, t, rows, left, outcomes); err != nil {
				return err
			}
		}
		return t.commit()
	})
	if err = db.noted("store a batch", err); err != nil {
		return nil, err
	}
	return outcomes, nil
}

// insert writes the rows at the positions at, which are of one identity each and in its order, marks those that are
// new as Stored and returns the others. This is the seam for another way of writing: only who answers for "what is
// new" would change.
func insert(ctx context.Context, t *transaction, rows []pipeline.Row, at []int, outcomes []pipeline.Outcome) ([]int, error) {
	var left []int
	next := 0
	err := t.ask(ctx, insertSQL, insertColumns(rows, at), func(values [][]byte) error {
		if len(values) != 2 || len(values[1]) != 8 {
			return errclass.As(&AnswerError{Problem: "the insert answered in another form than asked for"}, errclass.CodeProtocol)
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
		return errclass.As(&AnswerError{Problem: "the insert returned a row that was not sent"}, errclass.CodeProtocol)
	})
	return append(left, at[next:]...), err
}

// compare looks at the rows that were there before and marks them Present or Conflicting.
func compare(ctx context.Context, t *transaction, rows []pipeline.Row, at []int, outcomes []pipeline.Outcome) error {
	seen := 0
	err := t.ask(ctx, compareSQL, compareColumns(rows, at), func(values [][]byte) error {
		if len(values) != 2 || len(values[0]) != 8 || len(values[1]) != 1 {
			return errclass.As(&AnswerError{Problem: "the comparison answered in another form than asked for"}, errclass.CodeProtocol)
		}
		n := binary.BigEndian.Uint64(values[0])
		if n < 1 || n > uint64(len(at)) || outcomes[at[n-1]] != 0 {
			return errclass.As(&AnswerError{Problem: "the comparison returned a row that was not sent"}, errclass.CodeProtocol)
		}
		outcomes[at[n-1]] = pipeline.Conflicting
		if values[1][0] == 1 {
			outcomes[at[n-1]] = pipeline.Present
		}
		seen++
		return nil
	})
	if err == nil && seen < len(at) {
		// Somebody deleted a row between our insert and our look. In a stricter isolation the server says 40001 to this.
		return &ServerError{code: pgerrcode.SerializationFailure, severity: "ERROR"}
	}
	return err
}

// transact runs do in a transaction, within the store timeout. Unless do committed, all is rolled back.
func (db *DB) transact(ctx context.Context, fresh bool, do func(context.Context, *transaction) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	pg, release, err := db.connect(ctx, fresh)
	if err != nil {
		return err
	}
	defer release()
	t := newTransaction(ctx, pg)
	if err := do(ctx, t); err != nil {
		t.rollback()
		return err
	}
	return nil
}

// connect takes a connection from the pool or, fresh, dials one beside it.
func (db *DB) connect(ctx context.Context, fresh bool) (pg *pgconn.PgConn, release func(), err error) {
	if db.closed.Load() {
		return nil, nil, errPoolClosed()
	}
	if fresh {
		pg, err := pgconn.ConnectConfig(ctx, &db.conn.Copy().Config)
		if err != nil {
			return nil, nil, err
		}
		return pg, func() { hangUp(ctx, pg) }, nil
	}
	conn, err := db.pool.Acquire(ctx)
	switch {
	case err == nil:
		return conn.Conn().PgConn(), conn.Release, nil
	case db.closed.Load():
		return nil, nil, errPoolClosed()
	case ctx.Err() != nil && db.pool.Stat().AcquiredConns() >= db.pool.Stat().MaxConns():
		return nil, nil, errclass.As(err, errclass.CodePoolExhausted)
	}
	return nil, nil, err
}

// hangUp says goodbye to the server without waiting long for it.
func hangUp(ctx context.Context, pg *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = pg.Close(ctx)
}

// noted makes err safe to show and draws the conclusions for the next try.
func (db *DB) noted(act string, err error) error {
	if err == nil {
		return nil
	}
	err = clean(act, err)
	if s, ok := asServerError(err); ok {
		switch s.SQLState() {
		case pgerrcode.ReadOnlySQLTransaction:
			// A failover left our connections on a node that takes no writes. All of them go; the next try dials anew.
			db.pool.Reset()
		case pgerrcode.DiskFull:
			db.full.Store(true)
		}
	}
	return err
}
