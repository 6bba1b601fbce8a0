package ledgerdb

import (
	"context"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"docket/internal/postgres/db"
)

// Ledger is the ledger of dead letters. It is safe for concurrent use.
type Ledger struct {
	db     *db.DB
	groups groupIDs
	few    int // up to how many dead letters of a range of time are read one by one
	most   int // letters that a client brings in an hour; 0: any number
}

// New gives the ledger in a database, in the schema of decision_logs.
func New(db *db.DB) *Ledger { return &Ledger{db: db, few: fewRead} }

// Bounded has it take no more than that many letters of a client in an hour; 0: any number.
func (l *Ledger) Bounded(most int) *Ledger {
	l.most = most
	return l
}

// tries is how often a transaction that was chosen as the victim of a deadlock, or that could not be serialized, is
// run in all.
const tries = 4

// within runs do in one transaction, within the store timeout, and again where nothing was committed for the moment's sake.
// The error names act, and is as safe to log as all errors of this package. An error of do that is not the database's is
// returned as it is.
func (l *Ledger) within(ctx context.Context, act string, mode pgx.TxAccessMode, do func(ctx context.Context, tx pgx.Tx) error) error {
	return l.withinOf(ctx, act, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: mode}, do)
}

// look runs statements that change nothing and see the ledger as it is at one moment.
func (l *Ledger) look(ctx context.Context, act string, do func(ctx context.Context, tx pgx.Tx) error) error {
	// Compiling a plan takes longer than any of these may.
	return l.withinOf(ctx, act, db.Reading(l.statementLimit(), "; SET LOCAL jit = off"), do)
}

// atOnce is look for one statement, with one request: see [db.AtOnce].
func (l *Ledger) atOnce(ctx context.Context, act string, ask func(*pgx.Batch), read func(pgx.BatchResults) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.db.Timeout())
	defer cancel()
	for try := 1; ; try++ {
		err := l.db.Pool().AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
			return db.AtOnce(ctx, conn.Conn(), l.statementLimit(), pgx.RepeatableRead, ask, read)
		})
		if err == nil {
			return nil
		}
		if err = (&Error{Err: l.db.Noted(act, err)}); !again(ctx, err, try) {
			return err
		}
	}
}

// again waits before one more try, if an error is of the moment alone and tries are left.
func again(ctx context.Context, err error, try int) bool {
	s, ok := db.AsServerError(err)
	if !ok || try == tries || s.SQLState() != pgerrcode.DeadlockDetected && s.SQLState() != pgerrcode.SerializationFailure {
		return false
	}
	select {
	case <-time.After(time.Duration(try) * 20 * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}

// statementLimit is how long one statement may take.
func (l *Ledger) statementLimit() time.Duration { return l.db.Timeout() * 4 / 5 }

func (l *Ledger) withinOf(ctx context.Context, act string, options pgx.TxOptions, do func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.db.Timeout())
	defer cancel()
	for try := 1; ; try++ {
		var own error // of do, and none of the database's
		err := l.db.Pool().AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
			return db.Durably(ctx, conn.Conn(), options, func(tx pgx.Tx) error {
				own = nil
				if options.BeginQuery == "" { // else it went with BEGIN
					if _, err := tx.Exec(ctx, "SELECT set_config('statement_timeout', $1, true)", string(db.Milliseconds(l.statementLimit()))); err != nil {
						return err
					}
				}
				err := do(ctx, tx)
				if isOwn(err) {
					own = err
				}
				return err
			})
		})
		switch {
		case err == nil:
			return nil
		case own != nil:
			return own
		}
		if err = (&Error{Err: l.db.Noted(act, err)}); !again(ctx, err, try) {
			return err
		}
	}
}
