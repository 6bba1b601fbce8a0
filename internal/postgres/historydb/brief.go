package historydb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
)

// briefTime limits the statement of [page.brief]. Beyond it the page is searched for in windows that shrink. All of it, with the
// wait for a connection, may take three times as long.
const briefTime = slowWindow

// brief reads a page with one request, where a search takes six transactions or more. It looks through the first minute of the
// page, or through all that is later than now. That is enough if it fills the page, or if nothing else is asked for. Otherwise,
// and while a day is being archived, brief returns false, and the page has to be searched for.
func (p *page) brief(ctx context.Context) bool {
	s, to, all, ok := p.minute(time.Now())
	if !ok {
		return false
	}
	of := payloads(ctx, p.Payload)
	args := []any{of.ids, of.times}
	keys := s.plainSQL(to, &args)
	way := " DESC"
	if s.oldest {
		way = ""
	}
	// If the minute does not fill the page, its keys alone are read.
	statement := `WITH i AS MATERIALIZED (` + keys + `) ` + columnsSQL + ` FROM i JOIN decision_logs d ON d.decision_id = i.decision_id AND d.ts = i.ts AND ` + s.within(to, &args) +
		lookedIntoSQL + ` WHERE ` + db.Arg(&args, all) + `::bool OR (SELECT count(*) FROM i) > ` + db.Arg(&args, p.limit) + `::int ORDER BY i.ts` + way + `, i.decision_id COLLATE "C"` + way
	var asked steady
	within := min(p.total/2, 3*p.r.briefTime)
	err := p.r.limited(ctx, within, min(within*9/10, p.r.briefTime), pgx.ReadCommitted, func(b *pgx.Batch) {
		b.Queue(layoutSQL)
		b.Queue(statement, args...)
		b.Queue(layoutSQL)
	}, func(answers pgx.BatchResults) error { return asked.read(answers, of) })
	p.decisions = asked.found
	return err == nil && (all || len(p.decisions) > p.limit) && asked.whole()
}

// minute is the first window of a page: from the place of the search to a time, zero: without an end. all says that nothing is
// asked for beyond it. It returns false if a search in windows knows better where to begin.
//
// The clock of the server may differ from now, as the width of the window is only a guess.
func (p *page) minute(now time.Time) (s *search, to time.Time, all, ok bool) {
	f := p.filter
	s = &search{filter: f, oldest: p.Oldest, need: p.limit + 1, at: p.after}
	plain := len(f.RequestedBy) == 0 && !s.aim() && len(s.verdicts()) == 0
	begin, end := f.Until, f.Since
	if p.Oldest {
		begin, end = f.Since, f.Until
	}
	if !s.at.set && !begin.IsZero() {
		s.at = spot{at: begin, set: true}
	}
	switch {
	case p.Oldest && !s.at.set:
		return s, to, false, false // it has to find the oldest
	case p.Oldest && s.at.at.After(now):
		return s, end, true, true
	case p.Oldest:
		to = s.at.at.Add(firstWindow)
		all = !end.IsZero() && !end.After(to)
	default:
		to = now
		if s.at.set && s.at.at.Before(now) {
			to = s.at.at
		}
		to = to.Add(-firstWindow)
		all = !end.Before(to)
	}
	if all {
		to = end
	}
	return s, to, all, all || plain
}
