package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// rollbackTime is how long the end of a failed transaction may take. After it the pool closes the connection.
const rollbackTime = time.Second

// AtOnce sends statements with one request, in a transaction that writes nothing. So nobody waits for answers to BEGIN, to the
// settings and to COMMIT, which a busy server delays. With [pgx.ReadCommitted] each statement sees what was committed when it
// began. With [pgx.RepeatableRead] all see one moment. limit is of each statement.
//
// ask queues the statements, and read takes their answers in that order. The error is that of read, of the server or of the
// connection.
func AtOnce(ctx context.Context, conn *pgx.Conn, limit time.Duration, level pgx.TxIsoLevel, ask func(*pgx.Batch), read func(pgx.BatchResults) error) error {
	var all pgx.Batch
	if level == pgx.ReadCommitted {
		all.Queue("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
	} else {
		all.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	}
	// An index is taken where there is one, as a table may have grown since it was analyzed.
	all.Queue(`SELECT set_config('statement_timeout', $1, true), set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true),
		set_config('max_parallel_workers_per_gather', '0', true), set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), `+HexSQL, string(Milliseconds(limit)))
	ask(&all)
	all.Queue("COMMIT")
	err := answered(conn.SendBatch(ctx, &all), read)
	if err != nil && !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
		defer cancel()
		_, _ = conn.Exec(ending, "ROLLBACK") // if it fails, the pool closes the connection
	}
	return err
}

func answered(answers pgx.BatchResults, read func(pgx.BatchResults) error) error {
	err := func() error {
		for range 2 { // BEGIN and the settings
			if _, err := answers.Exec(); err != nil {
				return err
			}
		}
		if err := read(answers); err != nil {
			return err
		}
		_, err := answers.Exec()
		return err
	}()
	if last := answers.Close(); err == nil {
		err = last
	}
	return err
}
