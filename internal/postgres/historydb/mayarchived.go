package historydb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"docket/internal/postgres/db"
)

// mayArchivedTime is how long it may take to find out whether something was archived.
const mayArchivedTime = 500 * time.Millisecond

const (
	// byDaySQL tells whether the table has partitions, and whether this role may read the counts of days.
	byDaySQL = `
SELECT coalesce((SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass('decision_logs')), false),
       coalesce(has_table_privilege(to_regclass('decision_counts_days')::oid, 'SELECT'), false)`
	// countedDaysSQL steps from each counted day to the next one.
	countedDaysSQL = `
WITH RECURSIVE d(day) AS (
	SELECT min(day) FROM decision_counts_days
	UNION ALL
	SELECT (SELECT min(c.day) FROM decision_counts_days c WHERE c.day > d.day) FROM d WHERE d.day IS NOT NULL)
SELECT day FROM d WHERE day IS NOT NULL AND isfinite(day)`
	// lettersReadableSQL tells whether this role may read the ledger and its audit.
	lettersReadableSQL = `
SELECT to_regclass('dead_letters') IS NULL,
       coalesce(bool_and(has_table_privilege(oid, 'SELECT')), false) FROM unnest(ARRAY[to_regclass('dead_letters')::oid, to_regclass('dead_letter_audit')::oid, to_regclass('dead_letter_surplus')::oid]) AS oid`
	lettersArchivedSQL = `
SELECT EXISTS (SELECT FROM dead_letters WHERE state = 'RESOLVED' AND archived_in IS NOT NULL)
    OR EXISTS (SELECT FROM dead_letter_surplus WHERE state = 'archived')
    OR EXISTS (SELECT FROM dead_letter_audit WHERE act = 'archived')`
)

// MayBeArchived reports whether days or dead letters may have been archived, by the counts of days and by gaps between the
// partitions. If this role may not read these, or not in time, the answer is true.
func (r *Reader) MayBeArchived(ctx context.Context) (maybe bool, err error) {
	within := min(r.patience(ctx), mayArchivedTime)
	err = r.look(ctx, within, func(ctx context.Context, tx pgx.Tx) error {
		if maybe, err = daysMayBeArchived(ctx, tx, span{}, nil); maybe || err != nil {
			return err
		}
		var none, readable bool
		if err := tx.QueryRow(ctx, lettersReadableSQL).Scan(&none, &readable); err != nil || none {
			return err
		}
		if !readable {
			maybe = true
			return nil
		}
		return tx.QueryRow(ctx, lettersArchivedSQL).Scan(&maybe)
	})
	if err != nil {
		return true, db.Clean("look whether days were archived", err)
	}
	return maybe, nil
}

// Gone reports whether days of a range may have been archived or removed, as [Reader.MayBeArchived] does. Zero times are open.
// Days that were taken out and are still there are not gone, as questions read them. It takes half a second at most.
func (r *Reader) Gone(ctx context.Context, since, until time.Time) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(r.patience(ctx), mayArchivedTime))
	defer cancel()
	l, err := r.layout(ctx)
	if err != nil {
		return true, db.Clean("look for days that are being archived", err)
	}
	err = r.look(ctx, r.patience(ctx), func(ctx context.Context, tx pgx.Tx) error {
		gone, err = daysMayBeArchived(ctx, tx, span{since, until}, l.days)
		return err
	})
	if err != nil {
		return true, db.Clean("look whether days were archived", err)
	}
	return gone, nil
}

// daysMayBeArchived looks for days of a range that left the table, beside those that are still there.
func daysMayBeArchived(ctx context.Context, tx pgx.Tx, of span, leaving []source) (bool, error) {
	var parted, counts bool
	if err := tx.QueryRow(ctx, byDaySQL).Scan(&parted, &counts); err != nil || !parted {
		return false, err
	}
	parts, err := partitionBounds(ctx, tx)
	if err != nil {
		return false, err
	}
	for i := range leaving {
		parts = append(parts, bounds{from: &leaving[i].day.from, to: &leaving[i].day.to})
	}
	slices.SortStableFunc(parts, earlierBounds)
	if !counts {
		return missing(parts, nil, of), nil
	}
	rows, err := tx.Query(ctx, countedDaysSQL)
	if err != nil {
		return false, err
	}
	var day pgtype.Timestamptz
	var counted []time.Time
	// Only days that ended long ago are archived. A decision of a clock that is ahead has its row, in no day's partition.
	most := time.Now().AddDate(0, 0, 1)
	_, err = pgx.ForEachRow(rows, []any{&day}, func() error {
		if !day.Time.After(most) {
			counted = append(counted, day.Time)
		}
		return nil
	})
	return missing(parts, counted, of), err
}

// earlierBounds orders partitions by their start. One without a start comes first.
func earlierBounds(a, b bounds) int {
	switch {
	case a.from == nil || b.from == nil:
		return cmp.Compare(boolean(a.from != nil), boolean(b.from != nil))
	default:
		return a.from.Compare(*b.from)
	}
}

func boolean(is bool) int {
	if is {
		return 1
	}
	return 0
}

// missing reports whether a day of a range may have been archived or removed. A counted day without a partition was. Before
// the first counted day, the counts began later, or were emptied. There they do not tell whether a gap between partitions had
// days. Behind it a gap had none, as an archive counts a day before it drops it. Partitions and days are in their order.
func missing(parts []bounds, counted []time.Time, of span) bool {
	if slices.ContainsFunc(counted, func(day time.Time) bool {
		return of.touches(span{day, day.AddDate(0, 0, 1)}) && !covered(parts, day)
	}) {
		return true
	}
	began := firstCounted(parts, counted)
	var to *time.Time
	first := true
	for _, b := range parts {
		if b.fallback {
			continue
		}
		gap := first && b.from != nil || !first && (to == nil || b.from == nil || !b.from.Equal(*to))
		if gap && (began == nil || to == nil || to.Before(*began)) {
			end := b.from
			if end == nil || began != nil && began.Before(*end) {
				end = began
			}
			if of.touches(between(to, end)) {
				return true
			}
		}
		first, to = false, b.to
	}
	return false
}

// firstCounted returns the first counted day; nil: there is none. Those in a partition without a start say nothing, as
// decisions with early times are there whenever they are stored.
func firstCounted(parts []bounds, counted []time.Time) *time.Time {
	for _, day := range counted {
		if !slices.ContainsFunc(parts, func(b bounds) bool { return b.from == nil && covered([]bounds{b}, day) }) {
			return &day
		}
	}
	return nil
}

// between is the time from the end of a partition to the start of the next.
func between(end, start *time.Time) (gap span) {
	if end != nil {
		gap.from = *end
	}
	if start != nil {
		gap.to = *start
	}
	return gap
}

// covered reports whether a partition has a time.
func covered(parts []bounds, at time.Time) bool {
	for _, b := range parts {
		if !b.fallback && (b.from == nil || !b.from.After(at)) && (b.to == nil || b.to.After(at)) {
			return true
		}
	}
	return false
}
