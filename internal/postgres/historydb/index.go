package historydb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
)

// longestIndexing is how long days are indexed in one go. An index that waits for a transaction that is open for longer is given up, and made later.
const longestIndexing = time.Hour

// Index makes what searches go by on days that are over, where this role owns them, and says how many indexes that were. It is cheap
// where they have it.
func (r *Reader) Index(ctx context.Context) (int64, error) {
	if err := r.db.Usable(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, longestIndexing)
	defer cancel()
	r.days.Lock()
	defer r.days.Unlock()
	made, err := r.index(ctx)
	return made, r.db.Noted("index days that are over", err)
}

// index does it on a session of its own, which has no limits of the role.
func (r *Reader) index(ctx context.Context) (int64, error) {
	conn, err := pgx.ConnectConfig(ctx, r.db.ConnConfig())
	if err != nil {
		return 0, err
	}
	defer db.HangUp(ctx, conn.PgConn())
	if err := schema.Unhurried(ctx, conn); err != nil {
		return 0, err
	}
	return schema.IndexDays(ctx, conn, r.days.known)
}
