package ledgerdb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

// fewRead is how many dead letters of a range of time are read one by one rather than taken from the counters by day.
const fewRead = 100_000

const day = 24 * time.Hour

// countersSQL is a statement that gives group_id, state and n for what f chooses, several rows of one group and state among
// them. It is empty where the counters do not know, or where it is as good to read the dead letters themselves.
func (l *Ledger) countersSQL(ctx context.Context, tx pgx.Tx, f ledger.Filter) (sql string, args []any, err error) {
	if f.AttemptsBelow > 0 || looked(f) {
		return "", nil, nil
	}
	if !dated(f) && !placed(f) {
		return `SELECT c.group_id, c.state, c.n FROM dead_letter_counts c WHERE ` + counterSQL(f, &args), args, nil
	}
	from, to := ceilDay(f.From), f.To.Truncate(day)
	if f.Path != "" || dated(f) && !f.From.IsZero() && !f.To.IsZero() && !from.Before(to) {
		return "", nil, nil
	}
	if dated(f) {
		var n int64
		err := tx.QueryRow(ctx, `SELECT coalesce(sum(c.n), 0)::bigint FROM dead_letter_days c WHERE `+daysSQL(f.From.Truncate(day), ceilDay(f.To), &args), args...).Scan(&n)
		if err != nil || n <= int64(l.few) {
			return "", nil, err
		}
		args = nil
	}
	sql = `SELECT c.group_id, c.state, c.n FROM dead_letter_days c WHERE ` + daysSQL(from, to, &args) + ` AND ` + originSQL("c", f, &args) + ` AND ` + counterSQL(f, &args)
	// The rest of the days that the range cuts.
	for _, cut := range [][2]time.Time{{f.From, from}, {to, f.To}} {
		if cut[0].Before(cut[1]) {
			part := f
			part.From, part.To = cut[0], cut[1]
			sql += ` UNION ALL SELECT d.group_id, d.state, 1 FROM dead_letters d WHERE ` + wholeSQL(part, &args)
		}
	}
	return sql, args, nil
}

// daysSQL is the condition on the day of dead_letter_days c; a zero time does not bound it.
func daysSQL(from, to time.Time, args *[]any) string {
	var of []string
	if !from.IsZero() {
		of = append(of, "c.day >= "+db.Arg(args, from.UTC().Format(time.DateOnly))+"::date")
	}
	if !to.IsZero() {
		of = append(of, "c.day < "+db.Arg(args, to.UTC().Format(time.DateOnly))+"::date")
	}
	return allOf(of)
}

// ceilDay is the start of the next day, UTC, or t where it is one; zero stays zero.
func ceilDay(t time.Time) time.Time {
	start := t.Truncate(day)
	if start.Before(t) {
		return start.Add(day)
	}
	return start
}
