package historydb

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive"
	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
)

// Archives is decision_logs as archives need it; it is an [archive.Table]. It needs the server itself or a session pooler,
// and a role that owns the table.
type Archives struct {
	db     *db.DB
	within time.Duration // how long writers may wait for a count
	hurry  bool          // do not wait for the mark of the counts; tests have it
	ahead  time.Duration // see [counting]
	sliced int64         // bytes of the table that are read at once

	beforeJoin func() // is called before a second session takes part in reading; tests have it
}

var _ archive.Table = (*Archives)(nil)

// NewArchives gives the days of the table to be archived or restored.
func NewArchives(db *db.DB) *Archives {
	return &Archives{db: db, within: leavingTime, sliced: sliceBytes}
}

// ArchiveError says that it was archiving or restoring that failed, which needs more rights than storing.
type ArchiveError struct{ Err error }

func (e *ArchiveError) Error() string { return e.Err.Error() }

func (e *ArchiveError) Unwrap() error { return e.Err }

// HintFor says what an operator can do about an error of this code, where that differs from [db.Hint].
func (*ArchiveError) HintFor(code string) string {
	switch code {
	case "42501":
		return archiveHint
	case "2BP01":
		return usedHint
	}
	return ""
}

// archiveHint is what helps where a day may not be taken out or put back.
const archiveHint = "only the owner of decision_logs can archive and restore days: use a member of docket_migrate, with role = docket_migrate (docs/grants.sql)"

// usedHint is what helps where the table of a day cannot be dropped.
const usedHint = "something of yours, such as a view, uses the table of the day: drop it, then run docket archive --day again; until then the day is read from its table"

func (a *Archives) failed(act string, err error) error {
	if err == nil {
		return nil
	}
	return &ArchiveError{a.db.Clean(act, err)}
}

// Name is the table's.
func (a *Archives) Name() string { return "decision_logs" }

const (
	// archiveTextSQL makes values look the same in every session, as their text is what is hashed.
	archiveTextSQL = `SELECT set_config('bytea_output', 'hex', false), set_config('extra_float_digits', '1', false), set_config('IntervalStyle', 'postgres', false),
       set_config('xmlbinary', 'base64', false), set_config('default_transaction_isolation', 'read committed', false)`

	archiveGoneSQL = `SELECT set_config(name, '1s', false) FROM pg_settings WHERE name = 'client_connection_check_interval'`

	archiveLockSQL = `SELECT pg_try_advisory_lock(hashtextextended('docket archive ' || $1::text::regclass::oid || ' ' || $2::text, 0))`

	// archiveBoundsSQL are the partitions with their sizes and bounds; an end that is open is NULL. In boundsSQL the sizes are 0.
	archiveBoundsSQL = `
SELECT c.oid, c.relkind::text, c.reltuples::int8, CASE WHEN c.relkind = 'r' THEN pg_total_relation_size(c.oid) ELSE 0 END,` + boundsOfSQL
	boundsSQL   = `SELECT c.oid, c.relkind::text, c.reltuples::int8, 0::int8,` + boundsOfSQL
	boundsOfSQL = `
       CASE WHEN bound[1] <> 'MINVALUE' THEN trim(BOTH '''' FROM bound[1])::timestamptz END,
       CASE WHEN bound[2] <> 'MAXVALUE' THEN trim(BOTH '''' FROM bound[2])::timestamptz END, bound IS NULL
  FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid,
       regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \(([^,]*)\) TO \(([^,]*)\)$') AS bound
 WHERE inhparent = 'decision_logs'::regclass ORDER BY 5 NULLS FIRST, 1`

	leftOffSQL = `
SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '^decision_logs_leaving_\d{8}$' AND NOT relispartition
   AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('decision_logs'))`

	// archiveLeavingSQL are the tables that were taken out and not dropped.
	archiveLeavingSQL = `
SELECT to_date(right(relname, 8), 'YYYYMMDD')::timestamp AT TIME ZONE 'UTC', reltuples::int8, pg_total_relation_size(oid) FROM pg_class
 WHERE relkind = 'r' AND relname ~ '^decision_logs_leaving_\d{8}$' AND NOT relispartition
   AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'decision_logs'::regclass) ORDER BY 1`
)

// bounds is a partition.
type bounds struct {
	oid      uint32
	kind     string
	rows     int64
	bytes    int64
	from, to *time.Time
	fallback bool
}

// day says whether it is exactly that of a day, and which.
func (b bounds) day() (archive.Day, bool) {
	if b.from == nil || b.to == nil || b.kind != "r" {
		return archive.Day{}, false
	}
	d := archive.DayOf(*b.from)
	return d, d.Equal(*b.from) && d.Next().Equal(*b.to)
}

func (b bounds) overlaps(d archive.Day) bool {
	return !b.fallback && (b.from == nil || b.from.Before(d.Next().Time)) && (b.to == nil || b.to.After(d.Time))
}

// connect makes a connection on which the table's schema is all that names are looked for in.
func (a *Archives) connect(ctx context.Context) (*pgx.Conn, error) {
	if err := a.db.Usable(); err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, a.db.ConnConfig())
	if err != nil {
		return nil, err
	}
	if _, err = conn.Exec(ctx, schema.OwnSchemaSQL); err == nil {
		_, err = conn.Exec(ctx, schema.PatientSQL)
	}
	if err == nil {
		_, err = conn.Exec(ctx, archiveTextSQL)
	}
	if err == nil {
		_, err = conn.Exec(ctx, archiveGoneSQL)
	}
	if err != nil {
		db.HangUp(ctx, conn.PgConn())
		return nil, err
	}
	return conn, nil
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func partitionBounds(ctx context.Context, conn querier) ([]bounds, error) {
	rows, err := conn.Query(ctx, archiveBoundsSQL)
	if err != nil {
		return nil, err
	}
	return boundsOf(rows)
}

func boundsOf(rows pgx.Rows) ([]bounds, error) {
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (bounds, error) {
		var b bounds
		err := row.Scan(&b.oid, &b.kind, &b.rows, &b.bytes, &b.from, &b.to, &b.fallback)
		return b, err
	})
}

// Days are those that end before a time, by partition, with those that were taken out before and those of the default partition.
func (a *Archives) Days(ctx context.Context, before archive.Day) ([]archive.Held, error) {
	conn, err := a.connect(ctx)
	if err != nil {
		return nil, a.failed("list the days", err)
	}
	defer db.HangUp(ctx, conn.PgConn())
	days, err := heldDays(ctx, conn, before)
	return days, a.failed("list the days", err)
}

func heldDays(ctx context.Context, conn *pgx.Conn, before archive.Day) ([]archive.Held, error) {
	var days []archive.Held
	rows, err := conn.Query(ctx, archiveLeavingSQL)
	if err != nil {
		return nil, err
	}
	leaving, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (archive.Held, error) {
		h := archive.Held{Location: archive.Leaving}
		var at time.Time
		err := row.Scan(&at, &h.Rows, &h.Bytes)
		h.Day = archive.DayOf(at)
		return h, err
	})
	if err != nil {
		return nil, err
	}
	days = append(days, leaving...)
	parts, err := partitionBounds(ctx, conn)
	if err != nil {
		return nil, err
	}
	for _, b := range parts {
		switch day, exact := b.day(); {
		case exact:
			days = append(days, archive.Held{Day: day, Location: archive.Attached, Rows: b.rows, Bytes: b.bytes})
		case b.fallback:
			strays, err := strayDays(ctx, conn, before)
			if err != nil {
				return nil, err
			}
			days = append(days, strays...)
		default:
			shared, err := sharedDays(ctx, conn, b, before)
			if err != nil {
				return nil, err
			}
			days = append(days, shared...)
		}
	}
	kept := days[:0]
	for _, d := range days {
		if d.Day.Before(before.Time) {
			kept = append(kept, d)
		}
	}
	return kept, nil
}

// sharedDays has the last day before a time in a partition of several days that has rows before it.
func sharedDays(ctx context.Context, conn *pgx.Conn, b bounds, before archive.Day) ([]archive.Held, error) {
	if b.from != nil && !b.from.Before(before.Time) {
		return nil, nil
	}
	h := archive.Held{Day: archive.Day{Time: before.AddDate(0, 0, -1)}, Location: archive.Shared, Rows: b.rows, Bytes: b.bytes}
	if b.to != nil && b.to.Before(before.Time) {
		h.Day = archive.DayOf(b.to.Add(-time.Microsecond))
	}
	var table string
	var some bool
	if err := conn.QueryRow(ctx, `SELECT $1::oid::regclass::text`, b.oid).Scan(&table); err != nil {
		return nil, err
	}
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+` WHERE ts < $1 AND isfinite(ts))`, before.Time).Scan(&some) // regclass quotes its names
	if err != nil || !some {
		return nil, err
	}
	return []archive.Held{h}, nil
}

// strayDays are those that have rows in the default partition. Days before the year 1 stay there: Postgres does not read their names.
func strayDays(ctx context.Context, conn *pgx.Conn, before archive.Day) ([]archive.Held, error) {
	var table string
	err := conn.QueryRow(ctx, `SELECT partdefid::regclass::text FROM pg_partitioned_table WHERE partrelid = 'decision_logs'::regclass`).Scan(&table)
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, `SELECT (ts AT TIME ZONE 'UTC')::date::timestamp AT TIME ZONE 'UTC', count(*) FROM `+table+
		` WHERE ts >= '0001-01-01 00:00+00' AND ts < $1 GROUP BY 1 ORDER BY 1`, before.Time) // regclass quotes its names
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (archive.Held, error) {
		h := archive.Held{Location: archive.Strays}
		var at time.Time
		err := row.Scan(&at, &h.Rows)
		h.Day = archive.DayOf(at)
		return h, err
	})
}

// LeftOff says how many days an archive took out of the table and did not drop: it is under way, or was left off.
func (r *Reader) LeftOff(ctx context.Context) (days int64, err error) {
	if err := r.db.Usable(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.db.Timeout())
	defer cancel()
	err = r.db.Pool().QueryRow(ctx, leftOffSQL).Scan(&days)
	return days, r.db.Noted("look for days that an archive left off", err)
}

// dayWait is how long a day that another has is waited for; the server looks for a client that is gone more often.
const dayWait = 5 * time.Second

// Open takes a day for this process alone.
func (a *Archives) Open(ctx context.Context, day archive.Day) (archive.OpenDay, error) {
	conn, err := a.taken(ctx, a.Name(), day)
	if err != nil {
		return nil, err
	}
	return &archiveDay{of: a, conn: conn, day: day}, nil
}

// taken makes a connection that has a day of a table for itself.
func (a *Archives) taken(ctx context.Context, table string, day archive.Day) (*pgx.Conn, error) {
	conn, err := a.connect(ctx)
	if err != nil {
		return nil, a.failed("open the day", err)
	}
	// The session of a process that was killed outlasts it, until the server finds that nobody listens any more.
	for deadline := time.Now().Add(dayWait); ; {
		var ours bool
		err := conn.QueryRow(ctx, archiveLockSQL, table, day.String()).Scan(&ours)
		switch {
		case err != nil:
			db.HangUp(ctx, conn.PgConn())
			return nil, a.failed("take the day", err)
		case ours:
			return conn, nil
		case time.Now().After(deadline):
			db.HangUp(ctx, conn.PgConn())
			return nil, archive.ErrBusy
		}
		select {
		case <-ctx.Done():
		case <-time.After(dayWait / 20):
		}
	}
}

// archiveDay is a day that this process alone works at, for as long as its connection lasts.
type archiveDay struct {
	of   *Archives
	conn *pgx.Conn
	day  archive.Day

	table string // quoted; empty until Where found it
	oid   uint32
	fresh map[lateLine]int64 // late decisions that no earlier archive has
	seen  *seenRows          // by the last Read that came to its end; nil: there was none

	second *pgx.Conn   // helps to read and to load; nil: there is none yet
	alone  bool        // a second one could not be opened
	some   atomic.Bool // the table has some of the rows that are loaded
	mu     sync.Mutex
	past   time.Time // which the mark of the counts has passed; under mu
}

// Close lets the day go.
func (d *archiveDay) Close() {
	if d.second != nil {
		db.HangUp(context.Background(), d.second.PgConn())
	}
	db.HangUp(context.Background(), d.conn.PgConn())
}

func (d *archiveDay) leaving() string { return "decision_logs_leaving_" + d.day.Format("20060102") }

func (d *archiveDay) part() string { return "decision_logs_p" + d.day.Format("20060102") }

// Where says where the day's rows are.
func (d *archiveDay) Where(ctx context.Context) (archive.Location, error) {
	location, err := d.where(ctx)
	return location, d.of.failed("find the day", err)
}

func (d *archiveDay) where(ctx context.Context) (archive.Location, error) {
	var oid *uint32
	if err := d.conn.QueryRow(ctx, `SELECT to_regclass($1)::oid`, d.leaving()).Scan(&oid); err != nil {
		return "", err
	}
	if oid != nil {
		return archive.Leaving, d.named(ctx, *oid)
	}
	parts, err := partitionBounds(ctx, d.conn)
	if err != nil {
		return "", err
	}
	for _, b := range parts {
		if day, exact := b.day(); exact && day == d.day {
			return archive.Attached, d.named(ctx, b.oid)
		}
	}
	var found bool
	err = d.conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM decision_logs WHERE ts >= $1 AND ts < $2)`, d.day.Time, d.day.Next().Time).Scan(&found)
	if err != nil {
		return "", err
	}
	shared := len(parts) == 0
	for _, b := range parts {
		shared = shared || b.overlaps(d.day)
	}
	switch {
	case shared && found:
		return archive.Shared, nil
	case shared:
		return archive.Nowhere, nil
	case found:
		return archive.Strays, nil
	}
	return archive.Nowhere, nil
}

func (d *archiveDay) named(ctx context.Context, oid uint32) error {
	d.oid = oid
	return d.conn.QueryRow(ctx, `SELECT $1::oid::regclass::text`, oid).Scan(&d.table)
}

// Source says which database and which partition it is.
func (d *archiveDay) Source(ctx context.Context) (archive.Source, error) {
	return d.of.source(ctx, d.conn, d.oid)
}
