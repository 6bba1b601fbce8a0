package store

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/errclass"
	"docket/internal/postgres/db"
)

// transaction is one transaction on a connection that it has for itself. BEGIN and the limits travel with the first
// statement, the look at the table with COMMIT.
type transaction struct {
	ctx    context.Context
	pg     *pgconn.PgConn
	pipe   *pgconn.Pipeline // for all statements but COPY; nil until it is needed
	begun  bool
	copied bool          // rows came by COPY, which asks for less than the insert does
	wrote  bool          // an insert stored rows; COPY says it with copied
	looked bool          // the rows are there after all triggers
	left   time.Duration // that the limits were set for; 0: they were not
}

// inBinary is the form of parameters and results.
var inBinary = []int16{1}

func newTransaction(ctx context.Context, pg *pgconn.PgConn) *transaction {
	return &transaction{ctx: ctx, pg: pg}
}

// speak gives the pipeline. Where the context is done or the connection is gone, every use of it is that error.
func (t *transaction) speak() *pgconn.Pipeline {
	if t.pipe == nil {
		t.pipe = t.pg.StartPipeline(t.ctx)
	}
	return t.pipe
}

// begin sends BEGIN where that was not done, and the limits where much less time is left than they were set for. It says
// how many answers that has.
func (t *transaction) begin() int {
	statements := 0
	if !t.begun {
		t.begun = true
		statements++
		t.speak().SendQueryParams(beginSQL, nil, nil, nil, nil)
	}
	if left := remaining(t.ctx); t.outgrown(left) {
		t.left = left
		statements++
		t.speak().SendQueryParams(limitsSQL, limits(left), nil, nil, nil)
	}
	return statements
}

// ask runs one statement with parameters in binary form. It hands each row of the answer, in binary form too, to each; the
// values are good until each returns.
func (t *transaction) ask(sql string, params [][]byte, each func(values [][]byte) error) error {
	ended := t.stated(sql)
	tag, err := t.asked(sql, params, each)
	ended(tag, err)
	return err
}

func (t *transaction) asked(sql string, params [][]byte, each func(values [][]byte) error) (pgconn.CommandTag, error) {
	before := t.begin()
	t.pipe.SendQueryParams(sql, params, nil, inBinary, inBinary)
	if err := t.begins(before); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := t.answer(each)
	if err != nil {
		return tag, err
	}
	return tag, t.synced()
}

// begins sends what was begun with, and reads so many answers.
func (t *transaction) begins(answers int) error {
	// Sync and not Flush: inside BEGIN it commits nothing, and only after it does the server count how long the
	// transaction idles. A client that vanishes would otherwise keep its locks until TCP finds out.
	if err := t.pipe.Sync(); err != nil {
		return err
	}
	for range answers {
		if _, err := t.answer(nil); err != nil {
			return err
		}
	}
	return nil
}

// synced reads the answer to Sync.
func (t *transaction) synced() error {
	result, err := t.pipe.GetResults()
	if err != nil {
		return err
	}
	if _, ok := result.(*pgconn.PipelineSync); !ok {
		return errclass.As(&db.AnswerError{Problem: "a statement was answered twice"}, errclass.CodeProtocol)
	}
	return nil
}

// outgrown says that the limits were set for much more than is left, or were not set.
func (t *transaction) outgrown(left time.Duration) bool { return t.left == 0 || left < t.left*9/10 }

// remaining is the time that is left to us.
func remaining(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return time.Minute
}

// limits are what the server may take, below what is left to us, also when a tenth of that is gone: locks get half of the
// statement's time, so that 55P03 tells a lock from a slow statement.
func limits(left time.Duration) [][]byte {
	statement := left * 4 / 5
	return [][]byte{db.Milliseconds(statement), db.Milliseconds(statement / 2), db.Milliseconds(left), seconds(left / 2), seconds(left / 8)}
}

func seconds(d time.Duration) []byte {
	return strconv.AppendInt(nil, max(int64(d/time.Second), 1), 10) // 0 would mean the system's default
}

// answer reads one statement's answer to its end.
func (t *transaction) answer(each func(values [][]byte) error) (pgconn.CommandTag, error) {
	result, err := t.pipe.GetResults()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	reader, ok := result.(*pgconn.ResultReader)
	if !ok {
		return pgconn.CommandTag{}, errclass.As(&db.AnswerError{Problem: "a statement was not answered"}, errclass.CodeProtocol)
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

// commit ends the transaction. An error without an answer of the server is ambiguous and marked so, and so is an answer
// with a warning: it says that no standby is known to have the rows. A transaction that wrote nothing writes something
// harmless first, because Postgres waits for nobody where there is nothing to commit. Rows of others that this transaction
// saw are confirmed by the standby only once a later commit is.
func (t *transaction) commit() error {
	ended := t.stated(commitSQL)
	err := t.committed()
	ended(pgconn.CommandTag{}, err)
	return err
}

func (t *transaction) committed() error {
	pipe, before := t.speak(), 0
	if !t.begun {
		before = t.begin()
	}
	// In the same go: an error makes the server skip COMMIT.
	switch {
	case t.copied:
		pipe.SendQueryParams(tableSQL, nil, nil, nil, nil)
		before++
	case !t.wrote:
		pipe.SendQueryParams(db.ConfirmSQL, nil, nil, nil, nil)
		before++
	}
	if t.unlooked() {
		pipe.SendQueryParams(unlookedSQL, nil, nil, nil, nil)
		before++
	}
	pipe.SendQueryParams(commitSQL, nil, nil, nil, nil)
	if err := pipe.Sync(); err != nil {
		return lostCommit(err)
	}
	for range before {
		if _, err := t.answer(nil); err != nil {
			return lostCommit(tableError(err))
		}
	}
	// A server that is short of transaction ids warns of that whenever it gives one out, as to ConfirmSQL.
	db.ForgetWarnings(t.pg)
	tag, err := t.answer(nil)
	switch {
	case err != nil:
		return lostCommit(err)
	case tag.String() != "COMMIT":
		return errclass.As(&db.AnswerError{Problem: "COMMIT was answered with a rollback"}, errclass.CodeCommitRollback)
	case db.Warned(t.pg):
		return db.ErrUnconfirmed()
	}
	// It is committed: the server says so only afterwards. From here on only the connection can be lost, and the
	// pool sees that for itself.
	_ = pipe.Close()
	return nil
}

// takeBack has everything checked that commit would have checked, and rolls back.
func (t *transaction) takeBack() error {
	if err := t.ask(immediateSQL, nil, nil); err != nil {
		return err
	}
	if t.copied {
		if err := t.ask(tableSQL, nil, nil); err != nil {
			return tableError(err)
		}
	}
	if t.unlooked() {
		if err := t.ask(unlookedSQL, nil, nil); err != nil {
			return tableError(err)
		}
	}
	t.rollback()
	return nil
}

// unlooked says that rows were written and not looked for.
func (t *transaction) unlooked() bool { return (t.copied || t.wrote) && !t.looked }

// tableError gives an error of tableSQL its meaning: the code that the insert has for a lost identity, or that the table is
// not one for COPY. One of unlookedSQL says that the rows have to be looked for.
func tableError(err error) error {
	s, ok := db.AsServerError(err)
	switch {
	case !ok:
	case s.SQLState() == pgerrcode.DivisionByZero:
		return db.NewServerError(pgerrcode.InvalidColumnReference, s.Severity())
	case s.SQLState() == pgerrcode.InvalidArgumentForLogarithm:
		return &refusedCopy{db.NewServerError(pgerrcode.WrongObjectType, s.Severity())}
	case s.SQLState() == pgerrcode.InvalidArgumentForPowerFunction:
		return &unlookedRows{db.NewServerError(pgerrcode.SerializationFailure, s.Severity())}
	}
	return err
}

// unlookedRows is a write that a trigger may have changed, and that was not committed. It is the moment's fault, as the next
// write looks.
type unlookedRows struct{ err error }

func (u *unlookedRows) Error() string { return "rows were not looked for: " + u.err.Error() }
func (u *unlookedRows) Unwrap() error { return u.err }

// lostCommit marks what leaves open whether the commit took place. An ERROR of the server does not: that is a refusal,
// as of a deferred constraint.
func lostCommit(err error) error {
	if s, ok := db.AsServerError(err); ok && s.Severity() == "ERROR" {
		return err
	}
	return errclass.As(err, errclass.CodeAmbiguousCommit)
}

// rollback ends the transaction without a trace. Where that fails the connection is closed, or not fit for the pool,
// which closes it: that has the same effect.
func (t *transaction) rollback() {
	if t.pg.IsClosed() {
		if t.pipe != nil {
			// The driver is saying goodbye on it in the background, and panics when somebody else writes there meanwhile.
			go func() {
				<-t.pg.CleanupDone()
				_ = t.pipe.Close() // only lets go of the context
			}()
		}
		return
	}
	pipe := t.speak()
	pipe.SendPipelineSync() // where none was sent after an error the server skips all that comes before this
	pipe.SendQueryParams(db.RollbackSQL, nil, nil, nil, nil)
	_ = pipe.Sync()
	_ = pipe.Close()
}

// over says whether nothing is left of the transaction on a connection that can be used again.
func (t *transaction) over() bool { return !t.pg.IsClosed() && t.pg.TxStatus() == 'I' }
