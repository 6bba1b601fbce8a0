package historydb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
)

// newestWithin limits the statement of a page of the newest. Beyond it the page is searched for in windows that shrink.
const newestWithin = slowWindow

// newest reads the page with one request if it begins with the newest decisions and those of the last minute fill it. So does
// most of what a console asks on a busy server, where each answer that is waited for costs most. It returns false if the page
// is to be searched for, or a day is being archived.
func (p *page) newest(ctx context.Context) bool {
	s := &search{filter: p.filter, need: p.limit + 1}
	if p.Oldest || p.after.set || !p.filter.Until.IsZero() || len(p.filter.RequestedBy) > 0 || s.aim() || len(s.verdicts()) > 0 {
		return false
	}
	of := payloads(ctx, p.Payload)
	args := []any{of.ids, of.times}
	// The clock may differ from the server's: the minute is only a guess at what fills a page.
	from := later(p.filter.Since, time.Now().Add(-firstWindow))
	keys := s.plainSQL(from, &args)
	statement := columnsSQL + ` FROM (` + keys + `) AS i JOIN decision_logs d ON d.decision_id = i.decision_id AND d.ts = i.ts AND d.ts >= ` + db.Arg(&args, from) + `::timestamptz` +
		lookedIntoSQL + ` ORDER BY i.ts DESC, i.decision_id COLLATE "C" DESC`
	var before, after layout
	err := p.r.limited(ctx, p.total, min(p.total/2, newestWithin), pgx.ReadCommitted, func(b *pgx.Batch) {
		b.Queue(layoutSQL)
		b.Queue(statement, args...)
		b.Queue(layoutSQL)
	}, func(answers pgx.BatchResults) (err error) {
		if before, err = layoutOf(answers.Query()); err != nil {
			return err
		}
		rows, err := answers.Query()
		if err != nil {
			return err
		}
		if p.decisions, err = of.collect(rows); err != nil {
			return err
		}
		after, err = layoutOf(answers.Query())
		return err
	})
	return err == nil && len(p.decisions) > p.limit && len(before.days) == 0 && before.same(after)
}
