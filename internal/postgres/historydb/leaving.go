package historydb

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/reader"
	"docket/internal/postgres/db"
)

// An archive takes a day out of the table, and drops it once it is equal to its archive. Meanwhile rows that came late are nowhere
// else. So a question also asks the tables that were taken out.

// decisionsTable is the name of the table in statements. [in] replaces it.
const decisionsTable = "decision_logs"

// tableRows names the rows of the table as a place.
const tableRows = "the rows of " + decisionsTable

// in returns a statement about another table with the same columns. The name is quoted.
func in(name, sql string) string {
	return strings.ReplaceAll(sql, " "+decisionsTable+" ", " "+name+" ")
}

// source is a table that a question asks.
type source struct {
	name string // quoted
	day  span   // of a day that was taken out; zero: it is the table itself
	why  string // why it cannot be read; empty: it can
}

func (s source) leaving() bool { return s.name != decisionsTable }

// place names a day that was taken out.
func (s source) place() string {
	return "day " + s.day.from.Format(time.DateOnly) + ", which is being archived"
}

// layout is which tables have decisions at a moment.
type layout struct {
	parts  string // the partitions
	hidden bool   // a policy may keep rows of the table from this role
	days   []source
}

// layoutSQL names the partitions and the days that were taken out. A policy on rows of the table is none on those of such a day.
// A role sees all rows if one of its policies lets it see all, and if none restricts that.
// The range of names is what the expression begins with: without it each question reads all of pg_class.
const layoutSQL = `
SELECT coalesce((SELECT md5(string_agg(inhrelid::text, ' ' ORDER BY inhrelid)) FROM pg_inherits WHERE inhparent = t.oid), ''),
       row_security_active(t.oid) AND coalesce((
         SELECT bool_or(NOT p.polpermissive AND NOT w.whole) OR NOT bool_or(p.polpermissive AND w.whole)
           FROM pg_policy p CROSS JOIN LATERAL (SELECT coalesce(pg_get_expr(p.polqual, p.polrelid) = 'true', NOT p.polpermissive) AS whole) w
          WHERE p.polrelid = t.oid AND p.polcmd IN ('r', '*') AND (p.polroles = '{0}' OR EXISTS (SELECT FROM unnest(p.polroles) AS r WHERE pg_has_role(r, 'USAGE')))), true),
       coalesce(l.names, '{}'), coalesce(l.days, '{}'), coalesce(l.readable, '{}')
  FROM pg_class t CROSS JOIN LATERAL (
       SELECT array_agg(c.oid::regclass::text ORDER BY c.relname) AS names,
              array_agg(to_date(right(c.relname, 8), 'YYYYMMDD')::timestamp AT TIME ZONE 'UTC' ORDER BY c.relname) AS days,
              array_agg(coalesce(has_table_privilege(c.oid, 'SELECT'), false) AND NOT row_security_active(t.oid) ORDER BY c.relname) AS readable
         FROM pg_class c
        WHERE c.relname >= 'decision_logs_leaving_' AND c.relname < 'decision_logs_leavinga'
          AND c.relkind = 'r' AND c.relname ~ '^decision_logs_leaving_\d{8}$' AND NOT c.relispartition AND c.relnamespace = t.relnamespace) l
 WHERE t.oid = to_regclass('decision_logs')`

// layout reads which tables have decisions now.
func (r *Reader) layout(ctx context.Context) (l layout, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.patience(ctx))
	defer cancel()
	return layoutOf(r.db.Pool().Query(ctx, layoutSQL))
}

// layoutOf reads the answer to layoutSQL.
func layoutOf(rows pgx.Rows, err error) (l layout, _ error) {
	if err != nil {
		return l, err
	}
	defer rows.Close()
	for rows.Next() { // there is no row without the table
		var names []string
		var days []time.Time
		var readable []bool
		if err := rows.Scan(&l.parts, &l.hidden, &names, &days, &readable); err != nil {
			return l, err
		}
		for i, name := range names {
			from := days[i].UTC()
			s := source{name: name, day: span{from, from.AddDate(0, 0, 1)}}
			if !readable[i] {
				s.why = "this role may not read the table that the archive took out; docket archive --day " + from.Format(time.DateOnly) + " finishes it"
			}
			l.days = append(l.days, s)
		}
	}
	return l, rows.Err()
}

// mostLayouts limits how often a question is asked because the tables changed meanwhile.
const mostLayouts = 4

// errHidden says that an answer may lack rows which are there.
var errHidden = errors.New("row-level security binds this role, and may hide rows from it: ask with a role that it does not bind")

// errMoving says that rows may have moved from one table to another while these were read.
var errMoving = errors.New("days are being archived just now; ask again")

// whole asks the table, and then each day that was taken out and has times of a range. Rows move in that order. A statement also
// misses rows that change their table while it is planned. So all is asked again if the tables are others afterwards. missed is a
// [reader.PartialError] of what could not be read, or nil.
func (r *Reader) whole(ctx context.Context, of span, begin func(tables int), ask func(s source) error) (missed, err error) {
	if err := r.db.Usable(); err != nil {
		return nil, err
	}
	before, err := r.layout(ctx)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		days := before.of(of)
		begin(1 + len(days))
		var parts reader.Parts
		if err = ask(source{name: decisionsTable}); err == nil {
			for _, s := range days {
				parts.Miss(s.place(), asked(s, ask))
			}
			if before.hidden {
				parts.Miss(tableRows, errHidden)
			}
		}
		if ctx.Err() != nil {
			return nil, cmp.Or(err, ctx.Err())
		}
		after, lost := r.layout(ctx)
		switch {
		case err != nil && (lost != nil || before.same(after)):
			return nil, err
		case lost != nil:
			return nil, lost
		case before.same(after):
			return parts.Err(), nil
		case try == mostLayouts:
			parts.Miss("the days that are being archived", errMoving)
			return parts.Err(), err
		}
		before = after
	}
}

// asked asks a day that was taken out. Its error is safe to show.
func asked(s source, ask func(s source) error) error {
	if s.why != "" {
		return errors.New(s.why)
	}
	if err := ask(s); err != nil {
		return db.Clean("read the table that the archive took out", err)
	}
	return nil
}

// of returns the days that were taken out and have times of a range.
func (l layout) of(of span) (days []source) {
	for _, s := range l.days {
		if of.touches(s.day) {
			days = append(days, s)
		}
	}
	return days
}

func (l layout) same(o layout) bool {
	return l.parts == o.parts && l.hidden == o.hidden && slices.Equal(l.days, o.days)
}

// touches reports whether both have times in common. A zero time is open.
func (s span) touches(o span) bool {
	return (s.to.IsZero() || o.from.Before(s.to)) && (s.from.IsZero() || o.to.After(s.from))
}

// inTime sorts decisions of an id, the oldest first, and leaves out those that two tables have: the first counts.
func inTime(all []reader.Decision) []reader.Decision {
	slices.SortStableFunc(all, func(a, b reader.Decision) int { return reader.SpotOf(a).Compare(reader.SpotOf(b)) })
	return slices.CompactFunc(all, func(a, b reader.Decision) bool { return a.ID == b.ID && a.Time.Equal(b.Time) })
}
