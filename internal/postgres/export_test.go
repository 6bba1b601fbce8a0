package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Partition makes the table one of partitions, as the migration does, or takes it back. small is the number of rows up to
// which one transaction does it; after each step done is called, and its error ends all there, as a kill would.
func Partition(ctx context.Context, db *DB, small int, back bool, done func(step string) error) error {
	conn, err := pgx.ConnectConfig(ctx, db.where.now())
	if err != nil {
		return err
	}
	defer hangUp(ctx, conn.PgConn())
	p := &partitioner{conn: conn, log: db.logger, small: small, moves: small, tries: 100, pause: 10 * time.Millisecond, step: done}
	if back {
		return p.down(ctx)
	}
	return p.up(ctx)
}

// Statements that look for rows that are there.
const (
	PlaceSQL   = placeSQL
	CompareSQL = compareSQL
	LookupSQL  = lookupSQL
	ByIDSQL    = byIDSQL
	ByIndexSQL = byIndexSQL
)

// ReadAtMost sets how many dead letters of a range of time are read rather than taken from the counters.
func (l *Ledger) ReadAtMost(n int) { l.few = n }
