package historydb

import (
	"context"
	"time"

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
	made, err := schema.IndexDays(ctx, r.db.Pool(), r.days.known)
	return made, r.db.Noted("index days that are over", err)
}
