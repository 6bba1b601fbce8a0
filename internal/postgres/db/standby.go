package db

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// standbyKey is that of the note of [WatchStandby].
type standbyKey struct{}

// WatchStandby returns a context for questions. Afterwards standby says whether one of them went to a standby, which may lack what the
// primary has. A pool that takes a node without writes has one if no host of the URL is the primary.
func WatchStandby(ctx context.Context) (asking context.Context, standby func() bool) {
	seen := new(atomic.Bool)
	return context.WithValue(ctx, standbyKey{}, seen), seen.Load
}

// askStandby asks what a connection leads to, before a question of [WatchStandby] has it. A standby may be promoted at any time, so
// the answer after the question says nothing of it. A primary stays one for as long as its connections last.
func askStandby(ctx context.Context, conn *pgx.Conn) (usable bool, err error) {
	seen, _ := ctx.Value(standbyKey{}).(*atomic.Bool)
	if seen == nil {
		return true, nil
	}
	var is bool
	if err := conn.QueryRow(ctx, standbySQL).Scan(&is); err != nil {
		return false, err
	}
	if is {
		seen.Store(true)
	}
	return true, nil
}
