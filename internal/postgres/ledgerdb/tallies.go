package ledgerdb

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

// mostPaths is how many paths a group names.
const mostPaths = 5

// Groups gives the group with the most open dead letters first.
func (l *Ledger) Groups(ctx context.Context, f ledger.Filter) (groups []ledger.Group, err error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	err = l.look(ctx, "group dead letters", func(ctx context.Context, tx pgx.Tx) error {
		found, err := l.tallies(ctx, tx, f)
		if err != nil {
			return err
		}
		groups, err = described(ctx, tx, found)
		return err
	})
	return groups, err
}

// tally is what a filter chose of one group.
type tally struct {
	counts         map[ledger.State]int64
	paths          []string
	oldest, newest time.Time
}

// seen widens the times.
func (t *tally) seen(oldest, newest *time.Time) {
	if oldest != nil && (t.oldest.IsZero() || oldest.Before(t.oldest)) {
		t.oldest = oldest.UTC()
	}
	if newest != nil && newest.After(t.newest) {
		t.newest = newest.UTC()
	}
}

// of gives the tally of a group.
func of(found map[int32]*tally, group int32) *tally {
	t := found[group]
	if t == nil {
		t = &tally{counts: map[ledger.State]int64{}}
		found[group] = t
	}
	return t
}

// tallies counts from the counters where they know enough, and adds what the ends of indexes tell.
func (l *Ledger) tallies(ctx context.Context, tx pgx.Tx, f ledger.Filter) (map[int32]*tally, error) {
	sql, args, err := l.countersSQL(ctx, tx, f)
	if err != nil {
		return nil, err
	}
	if sql == "" {
		return scanned(ctx, tx, f)
	}
	rows, err := tx.Query(ctx, `SELECT group_id, state::text, sum(n)::bigint FROM (`+sql+`) c GROUP BY group_id, state HAVING sum(n) > 0`, args...)
	if err != nil {
		return nil, err
	}
	found := map[int32]*tally{}
	var group int32
	var state string
	var n int64
	if _, err = pgx.ForEachRow(rows, []any{&group, &state, &n}, func() error {
		of(found, group).counts[ledger.State(state)] = n
		return nil
	}); err != nil || len(found) == 0 {
		return found, err
	}
	if err := paths(ctx, tx, everywhere(f), found); err != nil {
		return nil, err
	}
	return found, times(ctx, tx, f, found)
}

// paths adds the most frequent paths, by the counters. Dead letters that are no decision have none.
func paths(ctx context.Context, tx pgx.Tx, f ledger.Filter, found map[int32]*tally) error {
	var args []any
	rows, err := tx.Query(ctx, `SELECT group_id, path FROM (
			SELECT c.group_id, c.path, row_number() OVER (PARTITION BY c.group_id ORDER BY sum(c.n) DESC, c.path) AS r
			  FROM dead_letter_counts c WHERE c.path <> '' AND `+counterSQL(f, &args)+` GROUP BY 1, 2 HAVING sum(c.n) > 0) p
		WHERE r <= `+db.Arg(&args, mostPaths)+` ORDER BY r`, args...)
	if err != nil {
		return err
	}
	var group int32
	var path string
	_, err = pgx.ForEachRow(rows, []any{&group, &path}, func() error {
		if t := found[group]; t != nil {
			t.paths = append(t.paths, path)
		}
		return nil
	})
	return err
}

// times looks up the first and the last failure of each group and state by the ends of an index.
func times(ctx context.Context, tx pgx.Tx, f ledger.Filter, found map[int32]*tally) error {
	var ids []int32
	var states []string
	for id, t := range found {
		for state := range t.counts {
			ids, states = append(ids, id), append(states, string(state))
		}
	}
	var args []any
	each := `unnest(` + db.Arg(&args, ids) + `::int[], ` + db.Arg(&args, states) + `::text[]::dead_letter_state[]) c (group_id, state)`
	fits := `d.group_id = c.group_id AND d.state = c.state AND ` + innerSQL(f, &args)
	if f.Path != "" {
		fits += " AND d.path = " + db.Arg(&args, pathText(f.Path)) + "::text"
	}
	rows, err := tx.Query(ctx, `SELECT c.group_id, o.first_failed_at, n.last_failed_at FROM `+each+`
		LEFT JOIN LATERAL (SELECT d.first_failed_at FROM dead_letters d WHERE `+fits+` AND d.state <> 'RESOLVED' ORDER BY d.first_failed_at LIMIT 1) o ON true
		LEFT JOIN LATERAL (SELECT d.last_failed_at FROM dead_letters d WHERE `+fits+` ORDER BY d.last_failed_at DESC LIMIT 1) n ON true`, args...)
	if err != nil {
		return err
	}
	var group int32
	var oldest, newest *time.Time
	_, err = pgx.ForEachRow(rows, []any{&group, &oldest, &newest}, func() error {
		found[group].seen(oldest, newest)
		return nil
	})
	return err
}

// scanned counts what the counters do not tell apart.
func scanned(ctx context.Context, tx pgx.Tx, f ledger.Filter) (map[int32]*tally, error) {
	var args []any
	rows, err := tx.Query(ctx, `SELECT d.group_id, d.path, d.state::text, count(*), min(d.first_failed_at) FILTER (WHERE d.state <> 'RESOLVED'), max(d.last_failed_at)
		FROM dead_letters d WHERE `+wholeSQL(f, &args)+` GROUP BY d.group_id, d.path, d.state`, args...)
	if err != nil {
		return nil, err
	}
	found, by := map[int32]*tally{}, map[int32]map[string]int64{}
	var group int32
	var path, state string
	var n int64
	var oldest, newest *time.Time
	_, err = pgx.ForEachRow(rows, []any{&group, &path, &state, &n, &oldest, &newest}, func() error {
		t := of(found, group)
		t.counts[ledger.State(state)] += n
		t.seen(oldest, newest)
		if by[group] == nil {
			by[group] = map[string]int64{}
		}
		by[group][path] += n
		return nil
	})
	for group, t := range found {
		t.paths = mostFrequent(by[group])
	}
	return found, err
}

// described makes groups of tallies.
func described(ctx context.Context, tx pgx.Tx, found map[int32]*tally) ([]ledger.Group, error) {
	ids := make([]int32, 0, len(found))
	for id := range found {
		ids = append(ids, id)
	}
	snoozed, err := snoozedByGroup(ctx, tx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `SELECT group_id, fingerprint, kind, code, "table", "column", "constraint", message, first_seen, coalesce(assigned_to, '')
		FROM dead_letter_groups LEFT JOIN dead_letter_group_cases USING (group_id) WHERE group_id = ANY($1::int[])`, ids)
	if err != nil {
		return nil, err
	}
	groups, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (g ledger.Group, err error) {
		var id int32
		err = r.Scan(&id, &g.Fingerprint, &g.Kind, &g.Code, &g.Table, &g.Column, &g.Constraint, &g.Message, &g.FirstSeen, &g.Assigned)
		if t := found[id]; err == nil {
			g.Counts, g.Paths, g.Oldest, g.Newest = t.counts, t.paths, t.oldest, t.newest
			s := snoozed[id]
			g.Snoozed, g.SnoozedUntil = min(s.letters, g.Open()), s.until
		}
		g.FirstSeen = g.FirstSeen.UTC()
		return g, err
	})
	slices.SortFunc(groups, func(a, b ledger.Group) int { return a.Place().Compare(b.Place()) })
	return groups, err
}

// mostFrequent names the most frequent paths.
func mostFrequent(paths map[string]int64) []string {
	var names []string
	for path := range paths {
		if path != "" {
			names = append(names, path)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(paths[b], paths[a]), strings.Compare(a, b)) })
	return names[:min(len(names), mostPaths)]
}

// Counts says how many dead letters a filter chooses, by state; a state without any is not there.
func (l *Ledger) Counts(ctx context.Context, f ledger.Filter) (counts map[ledger.State]int64, err error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	err = l.look(ctx, "count dead letters", func(ctx context.Context, tx pgx.Tx) error {
		counts, err = l.countsIn(ctx, tx, f)
		return err
	})
	return counts, err
}

func (l *Ledger) countsIn(ctx context.Context, tx pgx.Tx, f ledger.Filter) (map[ledger.State]int64, error) {
	sql, args, err := l.countersSQL(ctx, tx, f)
	if err != nil {
		return nil, err
	}
	if sql == "" {
		sql = `SELECT d.state, 1 AS n FROM dead_letters d WHERE ` + wholeSQL(f, &args)
	}
	rows, err := tx.Query(ctx, `SELECT state::text, sum(n)::bigint FROM (`+sql+`) c GROUP BY state HAVING sum(n) > 0`, args...)
	if err != nil {
		return nil, err
	}
	counts := map[ledger.State]int64{}
	var state string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		counts[ledger.State(state)] = n
		return nil
	})
	return counts, err
}
