package db

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/errclass"
)

// warning is under which a connection remembers that the server warned.
const warning = "docket.warning"

// noteWarning remembers warnings of the server itself. A trigger can warn too; it comes with the context that it ran in.
func noteWarning(pg *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" && n.Where == "" {
		pg.CustomData()[warning] = true
	}
}

// ForgetWarnings forgets what the server warned of on a connection.
func ForgetWarnings(pg *pgconn.PgConn) { delete(pg.CustomData(), warning) }

// Warned says whether the server warned on a connection since [ForgetWarnings].
func Warned(pg *pgconn.PgConn) bool { return pg.CustomData()[warning] != nil }

// ErrUnconfirmed is the error of a COMMIT that was answered with a warning. Postgres warns where somebody ended the wait for
// the synchronous standby: this server has the commit, and a failover can lose it.
func ErrUnconfirmed() error {
	return errclass.As(&AnswerError{Problem: "COMMIT was answered with a warning: no standby is known to have it"}, errclass.CodeAmbiguousCommit)
}

// WarnedSQL has the server send the warning of COMMIT, whatever the role or the database has. It lasts for the transaction.
// [Warned] can say nothing about a transaction without it.
const WarnedSQL = `set_config('client_min_messages', 'warning', true)`

// OnDiskSQL has COMMIT wait until the server has the transaction on its disk, where the role or the database has it off. It lasts for
// the transaction.
const OnDiskSQL = `set_config('synchronous_commit',
                  CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
                  true)`

// HexSQL has the server send bytes as the driver reads them, where the role or the database has another form. It lasts for the
// transaction.
const HexSQL = `set_config('bytea_output', 'hex', true)`

// Durably runs do in a transaction on a connection, as [pgx.BeginTxFunc] does. A crash of the server does not take it back. Where
// COMMIT is answered with a warning the error is ambiguous.
func Durably(ctx context.Context, conn *pgx.Conn, options pgx.TxOptions, do func(pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT "+WarnedSQL+", "+OnDiskSQL+", "+HexSQL); err != nil {
			return err
		}
		if err := do(tx); err != nil {
			return err
		}
		ForgetWarnings(conn.PgConn())
		return nil
	})
	if err == nil && Warned(conn.PgConn()) {
		return ErrUnconfirmed()
	}
	return err
}

// ConfirmSQL writes to the log of the server and nowhere else, so that COMMIT has something to wait for. Any role may call
// it, as long as nobody took EXECUTE from PUBLIC; at any wal_level it writes.
const ConfirmSQL = `SELECT pg_logical_emit_message(true, 'docket', '')`

// Confirm writes something harmless, for a transaction that may have seen what others stored and written nothing.
func Confirm(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, ConfirmSQL)
	return err
}

// ReadCommitted runs do in a transaction in which each statement sees what was committed before it, whatever the database or the role
// has by default. A statement alone has their default: where that is serializable, it fails with 40001 because others write.
func (db *DB) ReadCommitted(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, do)
}
