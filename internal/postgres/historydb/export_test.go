package historydb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

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

// Patient lets writers wait for a minute while archives count, as on a busy machine.
func (a *Archives) Patient() *Archives {
	a.within = time.Minute
	return a
}

// LeavingRows is how many rows of a day may be counted while writers wait.
const LeavingRows = leavingRows

// BeforeWrite has a round call do between its last read and its write.
func (s *States) BeforeWrite(do func()) { s.beforeWrite = do }

// Look runs do as the reader's questions are run: those that scan, or others.
func (r *Reader) Look(ctx context.Context, within time.Duration, scans bool, do func(ctx context.Context, tx pgx.Tx) error) error {
	if scans {
		return r.scan(ctx, within, do)
	}
	return r.look(ctx, within, do)
}
