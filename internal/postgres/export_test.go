package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
)

// Partition makes the table one of partitions, as the migration does, or takes it back. small is the number of rows up to
// which one transaction does it; after each step done is called, and its error ends all there, as a kill would.
func Partition(ctx context.Context, d *db.DB, small int, back bool, done func(step string) error) error {
	conn, err := pgx.ConnectConfig(ctx, d.ConnConfig())
	if err != nil {
		return err
	}
	defer db.HangUp(ctx, conn.PgConn())
	p := &partitioner{conn: conn, log: *d.Logger(), small: small, moves: small, tries: 100, pause: 10 * time.Millisecond, step: done}
	if back {
		return p.down(ctx)
	}
	return p.up(ctx)
}

// Statements that look for rows that are there.
const (
	KnownSQL   = knownSQL
	CompareSQL = compareSQL
	LookupSQL  = lookupSQL
	ByIDSQL    = byIDSQL
	ByIndexSQL = byIndexSQL
)

// ReadAtMost sets how many dead letters of a range of time are read rather than taken from the counters.
func (l *Ledger) ReadAtMost(n int) { l.few = n }

// CountTo lets the mark of the counts come as near to the clock as open transactions let it.
func (r *Reader) CountTo() *Reader {
	r.counts.ahead = countSlack
	return r
}

// Hurry makes archives wait for nobody; with to, they count as [Reader.CountTo] does. within is how long writers may wait, 0: as ever.
func (a *Archives) Hurry(to bool, within time.Duration) *Archives {
	a.hurry, a.ahead = true, 0
	if to {
		a.ahead = countSlack
	}
	if within > 0 {
		a.within = within
	}
	return a
}

// CountTo lets archives count as [Reader.CountTo] does, so that what was just stored can be restored at once.
func (a *Archives) CountTo() *Archives {
	a.ahead = countSlack
	return a
}

// LeavingRows is how many rows of a day may be counted while writers wait.
const LeavingRows = leavingRows
