package historydb

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive"
	"docket/internal/history/complete"
	"docket/internal/history/reader"
)

// CountTo lets the mark of the counts come as near to the clock as open transactions let it.
func (r *Reader) CountTo() *Reader {
	r.counts.ahead = countSlack
	return r
}

// Hurry makes archives wait for nobody and try once; with to, they count as [Reader.CountTo] does. Writers may wait for as long
// as within; 0 is a minute, as a busy machine needs more than [leavingTime].
func (a *Archives) Hurry(to bool, within time.Duration) *Archives {
	a.hurry, a.ahead, a.within = true, 0, cmp.Or(within, time.Minute)
	if to {
		a.ahead = countSlack
	}
	return a
}

// CountTo lets archives count as [Reader.CountTo] does, so that what was just stored can be restored at once. Writers may wait
// for a minute.
func (a *Archives) CountTo() *Archives {
	a.ahead, a.within = countSlack, time.Minute
	return a
}

// Sliced has days be read in slices of so many bytes of the table.
func (a *Archives) Sliced(bytes int64) *Archives {
	a.sliced = bytes
	return a
}

// Unchanged reports whether a day surely has the rows that were read last. With misread one row of these was read twice, and another
// one was not.
func Unchanged(ctx context.Context, day archive.OpenDay, shape archive.Shape, misread bool) (bool, error) {
	d := day.(*archiveDay)
	if misread {
		d.seen.names++
	}
	return d.unchanged(ctx, shape)
}

// BeforeJoin has do be called before a second session takes part in reading a day.
func (a *Archives) BeforeJoin(do func()) { a.beforeJoin = do }

// Alone has a day be read and loaded by one session, as where the server has no room for a second one.
func Alone(day archive.OpenDay) { day.(*archiveDay).alone = true }

// Together reports whether two sessions read a day.
func Together(day archive.OpenDay) bool { return day.(*archiveDay).second != nil }

// Within sets how long writers may wait for one count.
func (a *Archives) Within(d time.Duration) *Archives {
	a.within = d
	return a
}

// MostUnderWay is how many retries are looked through for closed letters.
const MostUnderWay = mostUnderWay

// MostOpen is how many open letters of a span of time are counted.
const MostOpen = mostOpen

// WaitingOneByOne is [Reader.Waiting] for a login that may not read the counters.
func (r *Reader) WaitingOneByOne(ctx context.Context, of complete.Range) (n int64, known bool, err error) {
	var args []any
	statement := waitingSQL(of, false, &args)
	err = r.db.Pool().QueryRow(ctx, statement, args...).Scan(&n, &known)
	return n, known, err
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

// Patient lets a page of one request, or a look-up by the first characters of an id, take a minute, as on a busy machine.
func (r *Reader) Patient() *Reader {
	r.briefTime, r.prefixTime = time.Minute, time.Minute
	return r
}

// Brief reads a page with one request, as [Reader.Search] does first. It returns false if that does not do.
func (r *Reader) Brief(ctx context.Context, f reader.Filter, p reader.Page) (found reader.Found, ok bool) {
	after, err := parseCursor(p.After, p.Oldest)
	pg := page{Page: p, r: r, filter: f, after: after, limit: p.Limit, total: r.patience(ctx)}
	if ok = err == nil && pg.brief(ctx); ok {
		pg.end(&found)
	}
	return found, ok
}

// Windows searches for a page in windows, as [Reader.Search] does if one request does not do.
func (r *Reader) Windows(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	after, err := parseCursor(p.After, p.Oldest)
	if err != nil {
		return reader.Found{}, err
	}
	return (&page{Page: p, r: r, filter: f, after: after, limit: p.Limit, total: r.patience(ctx)}).windows(ctx)
}
