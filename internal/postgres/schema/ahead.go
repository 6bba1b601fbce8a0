package schema

import (
	"context"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
)

const makeSQL = `SELECT count(*) FROM decision_logs_make_partitions($1)`

// All the days get makeTimeout. One statement, in which the default partition may be locked, gets no longer than writers
// with rows for it can wait with their tries. A person can make a day that takes longer at a quiet time.
const (
	makeTimeout          = time.Minute
	makeStatementTimeout = 5 * time.Second
)

// MakePartitions makes the partitions that are missing from today, in UTC, to so many days ahead, from 0 to 366. It says
// how many it made; another worker may do the same at once. Where the table's partitions are not Docket's, or there are
// none, it does nothing.
func (s *Schema) MakePartitions(ctx context.Context, ahead int) (int, error) {
	if err := s.db.Usable(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.makes)
	defer cancel()
	sum := 0
	for {
		var made int
		err := pgx.BeginTxFunc(ctx, s.db.Pool(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			var there bool
			if err := tx.QueryRow(ctx, `SELECT to_regprocedure('decision_logs_make_partitions(int)') IS NOT NULL,
				set_config('statement_timeout', $1, true)`, string(db.Milliseconds(s.makeOne))).Scan(&there, nil); err != nil || !there {
				return err
			}
			return tx.QueryRow(ctx, makeSQL, ahead).Scan(&made)
		})
		if said, ok := db.AsServerError(err); ok && said.SQLState() == pgerrcode.UndefinedFunction {
			return sum, nil // it went between the two
		}
		if err != nil {
			return sum, s.db.Noted("make partitions", err)
		}
		if sum += made; made == 0 {
			return sum, nil
		}
	}
}
