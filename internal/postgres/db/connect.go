package db

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/errclass"
)

// Connected runs do with a connection, within the store timeout.
func (db *DB) Connected(ctx context.Context, fresh bool, do func(context.Context, *pgconn.PgConn) error) error {
	ctx, cancel := context.WithTimeout(db.traced(ctx), db.timeout)
	defer cancel()
	pg, release, err := db.connect(ctx, fresh)
	if err != nil {
		return err
	}
	defer release()
	return do(ctx, pg)
}

// connect takes a connection from the pool or, fresh, dials one beside it.
func (db *DB) connect(ctx context.Context, fresh bool) (pg *pgconn.PgConn, release func(), err error) {
	if db.closed.Load() {
		return nil, nil, ErrPoolClosed()
	}
	if fresh {
		connected := db.dialling(ctx)
		pg, err := pgconn.ConnectConfig(ctx, &db.where.now().Config)
		connected(err)
		if err != nil {
			return nil, nil, err
		}
		return pg, func() { HangUp(ctx, pg) }, nil
	}
	conn, err := db.pool.Acquire(ctx)
	switch {
	case err == nil:
		return conn.Conn().PgConn(), conn.Release, nil
	case db.closed.Load():
		return nil, nil, ErrPoolClosed()
	case ctx.Err() != nil && db.pool.Stat().AcquiredConns() >= db.pool.Stat().MaxConns():
		return nil, nil, errclass.As(err, errclass.CodePoolExhausted)
	}
	return nil, nil, err
}

// HangUp says goodbye to the server without waiting long for it.
func HangUp(ctx context.Context, pg *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = pg.Close(ctx) // the connection is gone either way, and nothing on it is open
}

// Noted makes err safe to show and draws the conclusions for the next try.
func (db *DB) Noted(act string, err error) error {
	if err == nil {
		return nil
	}
	err = db.where.clean(act, err)
	if s, ok := AsServerError(err); ok {
		switch s.SQLState() {
		case pgerrcode.ReadOnlySQLTransaction:
			// A failover left our connections on a node that takes no writes. All of them go; the next try dials new ones.
			db.pool.Reset()
			db.witnesses.reset()
		case pgerrcode.DiskFull:
			db.full.Store(true)
		}
	}
	return err
}

// takesWrites is the check of a new connection. It makes a node that is read-only as good as away, so that of several
// hosts the one that takes writes is found.
func takesWrites(ctx context.Context, pg *pgconn.PgConn) error {
	if err := speaksUTF8(ctx, pg); err != nil {
		return err
	}
	result := pg.ExecParams(ctx, readOnlySQL, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if len(result.Rows) != 1 || string(result.Rows[0][0]) != "off" {
		return NewServerError(pgerrcode.ReadOnlySQLTransaction, "ERROR")
	}
	return nil
}

// standbyError refuses a standby while another host may be the primary. With final the driver does not come back to it.
type standbyError struct{ final bool }

func (standbyError) Error() string { return "the server is a standby" }

// As has the driver take this host in the end, if no other one can be taken.
func (e standbyError) As(target any) bool {
	_, is := target.(**pgconn.NotPreferredError)
	return is && !e.final
}

// primaryFirst makes the check of one new connection that takes a standby only if no host of the URL is the primary. The driver
// tries all hosts, and then the last refused one again. A host may be tried with and without TLS: the first way counts.
func primaryFirst() pgconn.ValidateConnectFunc {
	refused := map[string]bool{} // addresses; true: with TLS
	return func(ctx context.Context, pg *pgconn.PgConn) error {
		if err := speaksUTF8(ctx, pg); err != nil {
			return err
		}
		result := pg.ExecParams(ctx, standbySQL, nil, nil, nil, nil).Read()
		if result.Err != nil {
			return result.Err
		}
		if len(result.Rows) != 1 || string(result.Rows[0][0]) != "t" {
			return nil
		}
		address := pg.Conn().RemoteAddr().String()
		_, encrypted := pg.Conn().(*tls.Conn)
		before, again := refused[address]
		switch {
		case !again:
			refused[address] = encrypted
			return standbyError{}
		case before != encrypted:
			return standbyError{final: true}
		}
		return nil
	}
}

// speaksUTF8 refuses a connection that takes our text for another encoding: a pooler may not hand on what we ask for.
func speaksUTF8(_ context.Context, pg *pgconn.PgConn) error {
	if is := pg.ParameterStatus("client_encoding"); is != "" && is != encoding {
		return errclass.As(&AnswerError{Problem: "client_encoding is not UTF8 although it was asked for: look at the pooler"}, errclass.CodeConfig)
	}
	return nil
}

const (
	// RollbackSQL takes a transaction back.
	RollbackSQL = `ROLLBACK`

	readOnlySQL = `SELECT current_setting('transaction_read_only')`
	standbySQL  = `SELECT pg_is_in_recovery()`
)
