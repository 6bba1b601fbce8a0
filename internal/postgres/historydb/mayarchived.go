package historydb

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"docket/internal/postgres/db"
)

// mayArchivedTime is how long it may take to find out whether something was archived.
const mayArchivedTime = 500 * time.Millisecond

const (
	// traceRightsSQL tells whether the table has partitions, and whether the ledger is missing. It also tells whether this role may
	// read the counts of days, and the ledger with its audit.
	traceRightsSQL = `
SELECT coalesce((SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass('decision_logs')), false),
       coalesce(has_table_privilege(to_regclass('decision_counts_days')::oid, 'SELECT'), false),
       to_regclass('dead_letters') IS NULL,
       (SELECT bool_and(coalesce(has_table_privilege(oid, 'SELECT'), false)) FROM unnest(ARRAY[to_regclass('dead_letters')::oid, to_regclass('dead_letter_audit')::oid, to_regclass('dead_letter_surplus')::oid]) AS oid)`
	// countedDaysSQL steps from each counted day to the next one.
	countedDaysSQL = `
WITH RECURSIVE d(day) AS (
	SELECT min(day) FROM decision_counts_days
	UNION ALL
	SELECT (SELECT min(c.day) FROM decision_counts_days c WHERE c.day > d.day) FROM d WHERE d.day IS NOT NULL)
SELECT day FROM d WHERE day IS NOT NULL AND isfinite(day)`
	lettersArchivedSQL = `
SELECT EXISTS (SELECT FROM dead_letters WHERE state = 'RESOLVED' AND archived_in IS NOT NULL)
    OR EXISTS (SELECT FROM dead_letter_surplus WHERE state = 'archived')
    OR EXISTS (SELECT FROM dead_letter_audit WHERE act = 'archived')`
)

// MayBeArchived reports whether days or dead letters may have been archived, by the counts of days and by gaps between the
// partitions. If this role may not read these, or not in time, the answer is true.
func (r *Reader) MayBeArchived(ctx context.Context) (maybe bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(r.patience(ctx), mayArchivedTime))
	defer cancel()
	t, err := r.tracesOf(ctx, true)
	if errors.Is(err, errRights) {
		return true, nil
	}
	if err != nil {
		return true, db.Clean("look whether days were archived", err)
	}
	slices.SortStableFunc(t.parts, earlierBounds)
	return t.letters || t.parted && missing(t.parts, t.counted, span{}), nil
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
	t, err := r.tracesOf(ctx, false)
	if errors.Is(err, errRights) {
		return true, nil
	}
	if err != nil {
		return true, db.Clean("look whether days were archived", err)
	}
	for i := range l.days {
		t.parts = append(t.parts, bounds{from: &l.days[i].day.from, to: &l.days[i].day.to})
	}
	slices.SortStableFunc(t.parts, earlierBounds)
	return t.parted && missing(t.parts, t.counted, span{since, until}), nil
}

// traces are what days and letters leave behind that were archived.
type traces struct {
	traceRights
	parts   []bounds
	counted []time.Time
	letters bool // some were archived, or this role may not know
}

// traceRights is what this role may read of the traces.
type traceRights struct {
	parted   bool // the table has partitions by day; without them its days leave no traces
	counts   bool
	none     bool // the ledger is missing
	readable bool // the ledger
}

// mostRights limits how often the traces are read because the rights are others meanwhile.
const mostRights = 3

// errRights says that this role may read more or less than was asked for.
var errRights = errors.New("the rights of this role change just now; ask again")

// tracesOf reads the traces with one request, if the rights are what they were the last time.
func (r *Reader) tracesOf(ctx context.Context, letters bool) (t traces, err error) {
	for range mostRights {
		if t, err = r.tracesAtOnce(ctx, letters, r.traceRights.Load()); !errors.Is(err, errRights) {
			return t, err
		}
		rights := t.traceRights // t is written again
		r.traceRights.Store(&rights)
	}
	return t, err
}

// tracesAtOnce reads what a role of these rights may read; nil: they are not known. If it has others, the error is errRights, and
// the rights are in t. A statement that it may not send would fail, and the server's log would have each failure.
func (r *Reader) tracesAtOnce(ctx context.Context, letters bool, may *traceRights) (t traces, err error) {
	if may == nil {
		may = &traceRights{}
	}
	ledger := letters && !may.none && may.readable
	err = r.atOnce(ctx, r.patience(ctx), pgx.RepeatableRead, func(b *pgx.Batch) {
		b.Queue(traceRightsSQL)
		if may.parted && may.counts {
			b.Queue(countedDaysSQL)
		}
		if may.parted {
			b.Queue(boundsSQL)
		}
		if ledger {
			b.Queue(lettersArchivedSQL)
		}
	}, func(answers pgx.BatchResults) (err error) {
		if err := answers.QueryRow().Scan(&t.parted, &t.counts, &t.none, &t.readable); err != nil {
			return err
		}
		if t.traceRights != *may {
			return errRights
		}
		t.letters = letters && !t.none && !t.readable
		if t.parted && t.counts {
			if t.counted, err = countedDaysOf(answers.Query()); err != nil {
				return err
			}
		}
		if t.parted {
			rows, err := answers.Query()
			if err != nil {
				return err
			}
			if t.parts, err = boundsOf(rows); err != nil {
				return err
			}
		}
		if ledger {
			return answers.QueryRow().Scan(&t.letters)
		}
		return nil
	})
	return t, err
}

// countedDaysOf reads the days of countedDaysSQL.
func countedDaysOf(rows pgx.Rows, err error) (counted []time.Time, _ error) {
	if err != nil {
		return nil, err
	}
	var day pgtype.Timestamptz
	// Only days that ended long ago are archived. A decision of a clock that is ahead has its row, in no day's partition.
	most := time.Now().AddDate(0, 0, 1)
	_, err = pgx.ForEachRow(rows, []any{&day}, func() error {
		if !day.Time.After(most) {
			counted = append(counted, day.Time)
		}
		return nil
	})
	return counted, err
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
