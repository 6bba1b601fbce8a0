package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/errclass"
)

// transaction is one transaction on a connection that it has for itself, its statements sent as a pipeline: BEGIN and
// the limits travel with the first statement.
type transaction struct {
	pg    *pgconn.PgConn
	pipe  *pgconn.Pipeline
	begun bool
}

// inBinary is the form of parameters and results.
var inBinary = []int16{1}

func newTransaction(ctx context.Context, pg *pgconn.PgConn) *transaction {
	return &transaction{pg: pg, pipe: pg.StartPipeline(ctx)}
}

// ask runs one statement with parameters in binary form and hands each row of the answer, in binary form too, to
// each; the values are good until each returns.
func (t *transaction) ask(ctx context.Context, sql string, params [][]byte, each func(values [][]byte) error) error {
	statements := 2
	if !t.begun {
		t.begun = true
		statements++
		t.pipe.SendQueryParams(beginSQL, nil, nil, nil, nil)
	}
	t.pipe.SendQueryParams(limitsSQL, limits(ctx), nil, nil, nil)
	t.pipe.SendQueryParams(sql, params, nil, inBinary, inBinary)
	// Sync and not Flush: inside BEGIN it commits nothing, and only after it does the server count how long the
	// transaction idles. A client that vanishes would otherwise keep its locks until TCP finds out.
	if err := t.pipe.Sync(); err != nil {
		return err
	}
	for range statements - 1 {
		if _, err := t.answer(nil); err != nil {
			return err
		}
	}
	if _, err := t.answer(each); err != nil {
		return err
	}
	return t.synced()
}

// synced reads the answer to Sync.
func (t *transaction) synced() error {
	result, err := t.pipe.GetResults()
	if err != nil {
		return err
	}
	if _, ok := result.(*pgconn.PipelineSync); !ok {
		return errclass.As(&AnswerError{Problem: "a statement was answered twice"}, errclass.CodeProtocol)
	}
	return nil
}

// limits are what the server may take, below what is left to us: locks get half of the statement's time, so that 55P03
// tells a lock from a slow statement.
func limits(ctx context.Context) [][]byte {
	left := time.Minute
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	statement := left * 4 / 5
	return [][]byte{milliseconds(statement), milliseconds(statement / 2), milliseconds(left)}
}

func milliseconds(d time.Duration) []byte {
	return strconv.AppendInt(nil, max(d.Milliseconds(), 1), 10) // 0 would mean no limit
}

// answer reads one statement's answer to its end.
func (t *transaction) answer(each func(values [][]byte) error) (pgconn.CommandTag, error) {
	result, err := t.pipe.GetResults()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	reader, ok := result.(*pgconn.ResultReader)
	if !ok {
		return pgconn.CommandTag{}, errclass.As(&AnswerError{Problem: "a statement was not answered"}, errclass.CodeProtocol)
	}
	var refused error
	for reader.NextRow() {
		if each != nil && refused == nil {
			refused = each(reader.Values())
		}
	}
	tag, err := reader.Close()
	if err == nil {
		err = refused
	}
	return tag, err
}

// commit ends the transaction. An error without an answer of the server is ambiguous and marked so.
func (t *transaction) commit() error {
	t.pipe.SendQueryParams(commitSQL, nil, nil, nil, nil)
	if err := t.pipe.Sync(); err != nil {
		return lostCommit(err)
	}
	tag, err := t.answer(nil)
	if err != nil {
		return lostCommit(err)
	}
	if tag.String() != "COMMIT" {
		return errclass.As(&AnswerError{Problem: "COMMIT was answered with a rollback"}, errclass.CodeCommitRollback)
	}
	// It is committed: the server says so only afterwards. What is lost from here on is only the connection, and the
	// pool sees that for itself.
	_ = t.pipe.Close()
	return nil
}

// lostCommit marks what leaves open whether the commit took place. An ERROR of the server does not: that is a refusal,
// as of a deferred constraint.
func lostCommit(err error) error {
	if s, ok := asServerError(err); ok && s.Severity() == "ERROR" {
		return err
	}
	return errclass.As(err, errclass.CodeAmbiguousCommit)
}

// rollback ends the transaction without a trace. Where that fails the connection is closed, which has the same effect. On
// one that is closed already nothing may be written: the driver is taking its leave of the server on it, beside us, and
// two writers at a time make it panic.
func (t *transaction) rollback() {
	if t.pg.IsClosed() {
		_ = t.pipe.Close()
		return
	}
	t.pipe.SendPipelineSync() // where none was sent after an error the server skips all that comes before this
	t.pipe.SendQueryParams(rollbackSQL, nil, nil, nil, nil)
	_ = t.pipe.Sync()
	_ = t.pipe.Close()
}

// takesWrites is the check of a new connection. It makes a node that is read-only as good as away, so that of several
// hosts the one that takes writes is found.
func takesWrites(ctx context.Context, pg *pgconn.PgConn) error {
	result := pg.ExecParams(ctx, readOnlySQL, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if len(result.Rows) != 1 || string(result.Rows[0][0]) != "off" {
		return &ServerError{code: pgerrcode.ReadOnlySQLTransaction, severity: "ERROR"}
	}
	return nil
}
