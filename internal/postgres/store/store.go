package store

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
)

// Store is the table decision_logs: it stores batches, and proves that the table takes good rows. It is safe for concurrent use.
type Store struct {
	*db.DB // its pool, which others may use too

	inserts atomic.Bool // the table takes no COPY
	watched atomic.Bool // a trigger can remove rows that Postgres counts as stored
	met     memory      // whose last batch met rows that were there
	last    lastTaken   // the decisions that a probe resembles
}

var _ pipeline.Store = (*Store)(nil)

// New gives the table decision_logs of a database.
func New(db *db.DB) *Store { return &Store{DB: db} }

// Open is [db.Open] and [New]: a store with a pool of its own.
func Open(cfg db.Config, logger zerolog.Logger) (*Store, error) {
	db, err := db.Open(cfg, logger)
	if err != nil {
		return nil, err
	}
	return New(db), nil
}

// Store writes rows in one transaction, all or none, and says what became of each, in order. It may be repeated with
// the same rows at any time, also after an error that leaves open whether they were stored. Of rows with one identity
// the earlier wins and the later is compared with it. It takes at most the store timeout. Where the server tells at
// which row it stopped, the error has a [*db.ServerError] that says so in [db.ServerError.Row].
//
// fresh dials a connection beside the pool for this call alone. An earlier statement or a stale cancel request cannot harm
// it, and it does not wait where the pool is full.
func (st *Store) Store(ctx context.Context, rows []pipeline.Row, fresh bool) ([]pipeline.Outcome, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	outcomes, err := st.write(ctx, rows, fresh, (*transaction).commit)
	if err = st.Noted("store a batch", err); err != nil {
		if errclass.Classify(err).Class == errclass.Data {
			st.last.offer(rows)
		}
		return nil, err
	}
	st.last.keep(rows, outcomes)
	if st.FoundFull() && stored(outcomes) >= wideProbe {
		st.FoundRoom()
	}
	return outcomes, nil
}

// stored is how many rows are new.
func stored(outcomes []pipeline.Outcome) (n int) {
	for _, o := range outcomes {
		if o == pipeline.Stored {
			n++
		}
	}
	return n
}

// write stores rows and ends with end, which commits or takes back.
func (st *Store) write(ctx context.Context, rows []pipeline.Row, fresh bool, end func(*transaction) error) ([]pipeline.Outcome, error) {
	var w *writing
	err := st.Connected(ctx, fresh, func(ctx context.Context, pg *pgconn.PgConn) error {
		w = newWriting(rows, end)
		return st.found(ctx, pg, w, st.watching(w, func() error { return st.writeOn(ctx, pg, w) }))
	})
	return w.outcomesOr(err)
}

// found looks for a row that was refused alone: it may have been stored before a constraint was tightened, and neither
// COPY nor INSERT comes as far as finding it.
func (st *Store) found(ctx context.Context, pg *pgconn.PgConn, w *writing, refused error) error {
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

// watching runs a write, and once more where it has to look for its rows and did not know that.
func (st *Store) watching(w *writing, write func() error) error {
	w.watched = st.watched.Load()
	err := write()
	if _, unlooked := errors.AsType[*unlookedRows](err); unlooked {
		st.watched.Store(true)
		w.watched = true
		clear(w.outcomes)
		err = write()
	}
	if err == nil {
		st.watched.Store(w.watched)
	}
	return err
}

func (st *Store) writeOn(ctx context.Context, pg *pgconn.PgConn, w *writing) error {
	from := sourceOf(w.rows)
	var refused *refusedCopy
	if !st.inserts.Load() {
		err := st.quickly(ctx, pg, w, from)
		if !errors.As(err, &refused) {
			return err
		}
	}
	err := transact(ctx, pg, w.carefully)
	if err == nil {
		st.met.note(from, w.met)
		st.turn(refused)
	}
	return err
}

// quickly stores by COPY, and looks first where the batch before met rows that were there. Where it did not look and one
// is there, it is most likely the start of what is delivered again: then it looks, too.
func (st *Store) quickly(ctx context.Context, pg *pgconn.PgConn, w *writing, from source) error {
	look := st.met.has(from)
	err := transact(ctx, pg, func(t *transaction) error { return w.quickly(t, look) })
	if refused := (*refusedCopy)(nil); !look && errors.As(err, &refused) && refused.code() == pgerrcode.UniqueViolation {
		look = true
		err = transact(ctx, pg, func(t *transaction) error { return w.quickly(t, look) })
	}
	if err == nil && look {
		st.met.note(from, w.met)
	}
	return err
}

// turn switches to INSERT where the table refuses COPY as such and has just taken an INSERT.
func (st *Store) turn(refused *refusedCopy) {
	if refused == nil || !refused.asSuch() || st.inserts.Swap(true) {
		return
	}
	st.Logger().Warn().Str("code", refused.code()).
		Str("hint", "remove row-level security, the view, the rule or the changed column types; until then rows are stored by INSERT, which is slower").
		Msg("table refused COPY")
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
