package postgres

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
)

// Store writes rows in one transaction, all or none, and says what became of each, in order. It may be repeated with
// the same rows at any time, also after an error that leaves open whether they were stored. Of rows with one identity
// the earlier wins and the later is compared with it. It takes at most the store timeout. Where the server tells at
// which row it stopped, the error has a [*ServerError] that says so in [ServerError.Row].
//
// fresh dials a connection beside the pool for this call alone: it can be no victim of what an earlier statement or a
// stale cancel request left behind, and where the pool is full it does not wait.
func (db *DB) Store(ctx context.Context, rows []pipeline.Row, fresh bool) ([]pipeline.Outcome, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	outcomes, err := db.write(ctx, rows, fresh, (*transaction).commit)
	if err = db.noted("store a batch", err); err != nil {
		if errclass.Classify(err).Class == errclass.Data {
			db.last.offer(rows)
		}
		return nil, err
	}
	db.last.keep(rows, outcomes)
	return outcomes, nil
}

// write stores rows and ends with end, which commits or takes back.
func (db *DB) write(ctx context.Context, rows []pipeline.Row, fresh bool, end func(*transaction) error) ([]pipeline.Outcome, error) {
	var w *writing
	err := db.connected(ctx, fresh, func(ctx context.Context, pg *pgconn.PgConn) error {
		w = newWriting(rows, end)
		return db.found(ctx, pg, w, db.writeOn(ctx, pg, w))
	})
	return w.outcomesOr(err)
}

// found looks for a row that was refused alone: it may have been stored before a constraint was tightened, and neither
// COPY nor INSERT comes as far as finding it.
func (db *DB) found(ctx context.Context, pg *pgconn.PgConn, w *writing, refused error) error {
	if len(w.rows) > 1 || errclass.Classify(refused).Class != errclass.Data || pg.IsClosed() {
		return refused
	}
	return transact(ctx, pg, func(t *transaction) error {
		clear(w.outcomes)
		err := w.compare(t, w.firsts)
		switch {
		case err != nil && errclass.Classify(err).Class != errclass.Data:
			return err
		case err != nil, w.outcomes[0] == 0: // one that cannot be compared is not there
			return refused
		}
		return w.end(t)
	})
}

func (db *DB) writeOn(ctx context.Context, pg *pgconn.PgConn, w *writing) error {
	from := sourceOf(w.rows)
	var refused *refusedCopy
	if !db.inserts.Load() {
		err := db.quickly(ctx, pg, w, from)
		if !errors.As(err, &refused) {
			return err
		}
	}
	err := transact(ctx, pg, w.carefully)
	if err == nil {
		db.met.note(from, w.met)
		db.turn(refused)
	}
	return err
}

// quickly stores by COPY, and looks first where the batch before met rows that were there. Where it did not look and one
// is there, it is most likely the start of what is delivered again: then it looks, too.
func (db *DB) quickly(ctx context.Context, pg *pgconn.PgConn, w *writing, from source) error {
	look := db.met.has(from)
	err := transact(ctx, pg, func(t *transaction) error { return w.quickly(t, look) })
	if refused := (*refusedCopy)(nil); !look && errors.As(err, &refused) && refused.code() == pgerrcode.UniqueViolation {
		look = true
		err = transact(ctx, pg, func(t *transaction) error { return w.quickly(t, look) })
	}
	if err == nil && look {
		db.met.note(from, w.met)
	}
	return err
}

// turn goes on by INSERT where the table refuses COPY as such and has just taken an INSERT.
func (db *DB) turn(refused *refusedCopy) {
	if refused == nil || !refused.asSuch() || db.inserts.Swap(true) {
		return
	}
	db.logger.Warn().Str("code", refused.code()).
		Str("hint", "remove row-level security, the view, the rule or the changed column types; until then rows are stored by INSERT, which is slower").
		Msg("table refused COPY")
}

// connected runs do with a connection, within the store timeout.
func (db *DB) connected(ctx context.Context, fresh bool, do func(context.Context, *pgconn.PgConn) error) error {
	ctx, cancel := context.WithTimeout(db.traced(ctx), db.timeout)
	defer cancel()
	pg, release, err := db.connect(ctx, fresh)
	if err != nil {
		return err
	}
	defer release()
	return do(ctx, pg)
}

// transact runs do in a transaction. Unless do committed, all is rolled back.
func transact(ctx context.Context, pg *pgconn.PgConn, do func(*transaction) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := newTransaction(ctx, pg)
	if !t.over() { // an earlier one could not be ended
		return net.ErrClosed
	}
	if err := do(t); err != nil {
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
		connected := db.dialling(ctx)
		pg, err := pgconn.ConnectConfig(ctx, &db.where.now().Config)
		connected(err)
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
	err = db.where.clean(act, err)
	if s, ok := asServerError(err); ok {
		switch s.SQLState() {
		case pgerrcode.ReadOnlySQLTransaction:
			// A failover left our connections on a node that takes no writes. All of them go; the next try dials anew.
			db.pool.Reset()
			db.witnesses.reset()
		case pgerrcode.DiskFull:
			db.full.Store(true)
		}
	}
	return err
}
