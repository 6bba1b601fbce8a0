package historydb

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/claims"
	"docket/internal/postgres/db"
)

// Claims keeps claims in decision_reads. It is safe for concurrent use.
type Claims struct{ db *db.DB }

var _ claims.Port = (*Claims)(nil)

// NewClaims makes the claims of a database.
func NewClaims(d *db.DB) *Claims { return &Claims{d} }

// The server evaluates a condition on the row again once it has the lock, so of several processes one begins. A row that
// is not there is one that nobody claimed for a day, or that a crash removed: the time is above its versions.
const (
	beginClaimSQL = `INSERT INTO decision_reads AS r (key, version, high, until)
	VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $2, clock_timestamp() + $3::interval)
	ON CONFLICT (key) DO UPDATE SET version = greatest(r.version + 1, EXCLUDED.version), high = EXCLUDED.high, until = clock_timestamp() + $3::interval
	WHERE r.until <= clock_timestamp() OR EXCLUDED.high AND NOT r.high
	RETURNING version`
	keepClaimSQL = `UPDATE decision_reads SET until = clock_timestamp() + $3::interval WHERE key = $1 AND version = $2 AND until > clock_timestamp()`
	endClaimSQL  = `UPDATE decision_reads SET until = clock_timestamp() WHERE key = $1 AND version = $2 AND until > clock_timestamp()`
	oldClaimsSQL = `DELETE FROM decision_reads WHERE until < clock_timestamp() - interval '1 day'`
)

// Begin implements [claims.Port].
func (c *Claims) Begin(ctx context.Context, key string, p claims.Priority, lease time.Duration) (version int64, err error) {
	if err := c.db.Usable(); err != nil {
		return 0, err
	}
	err = c.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, beginClaimSQL, key, p == claims.High, lease).Scan(&version)
	})
	if errors.Is(err, pgx.ErrNoRows) { // another claim holds
		return 0, nil
	}
	if err != nil {
		return 0, c.db.Clean("begin a claim", err)
	}
	return version, nil
}

// Keep implements [claims.Port].
func (c *Claims) Keep(ctx context.Context, key string, version int64, lease time.Duration) (kept bool, err error) {
	err = c.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, keepClaimSQL, key, version, lease)
		kept = tag.RowsAffected() == 1
		return err
	})
	if err != nil {
		return false, c.db.Clean("keep a claim", err)
	}
	return kept, nil
}

// End implements [claims.Port]. It also removes rows of claims that were over a day ago.
func (c *Claims) End(ctx context.Context, key string, version int64) (ended bool, err error) {
	err = c.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, endClaimSQL, key, version)
		ended = tag.RowsAffected() == 1
		return err
	})
	if err == nil { // in a transaction of its own, as rows of others have their locks meanwhile
		err = c.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, oldClaimsSQL)
			return err
		})
	}
	if err != nil {
		return false, c.db.Clean("end a claim", err)
	}
	return ended, nil
}
