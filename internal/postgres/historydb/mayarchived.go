package historydb

import (
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
		if maybe, err = daysMayBeArchived(ctx, tx); maybe || err != nil {
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

func daysMayBeArchived(ctx context.Context, tx pgx.Tx) (bool, error) {
	var parted, counts bool
	if err := tx.QueryRow(ctx, byDaySQL).Scan(&parted, &counts); err != nil || !parted {
		return false, err
	}
	parts, err := partitionBounds(ctx, tx)
	if err != nil {
		return false, err
	}
	if !counts {
		return missing(parts, nil), nil
	}
	rows, err := tx.Query(ctx, countedDaysSQL)
	if err != nil {
		return false, err
	}
	var day pgtype.Timestamptz
	var counted []time.Time
	_, err = pgx.ForEachRow(rows, []any{&day}, func() error {
		counted = append(counted, day.Time)
		return nil
	})
	return missing(parts, counted), err
}

// missing reports whether a day may have been archived or removed. A counted day without a partition was. Where no day before
// a gap is counted, the counts began later, or were emptied. Then they do not tell whether the gap had days. Behind a counted
// day a gap had none, as an archive counts a day before it drops it. Partitions and days are in their order.
func missing(parts []bounds, counted []time.Time) bool {
	if slices.ContainsFunc(counted, func(day time.Time) bool { return !covered(parts, day) }) {
		return true
	}
	var to *time.Time
	first, counts := true, false
	for _, b := range parts {
		if b.fallback {
			continue
		}
		if gap := first && b.from != nil || !first && (to == nil || b.from == nil || !b.from.Equal(*to)); gap && !counts {
			return true
		}
		// Decisions with early times are in the first partition whenever they are stored.
		counts = counts || b.from != nil && slices.ContainsFunc(counted, func(day time.Time) bool { return covered([]bounds{b}, day) })
		first, to = false, b.to
	}
	return false
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
