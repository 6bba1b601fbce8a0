package historydb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/reader"
	"docket/internal/postgres/db"
)

// prefixTime is how long a look-up by the first characters of an id may take.
const prefixTime = 4 * time.Second

const (
	// prefixRangeSQL asks the server whether every text that begins with $1 is from $2 on and before $3 in the order of the index. It tries
	// all printable ASCII in the next two places. Collations may read two characters as one letter (aa is the last letter in Danish). They
	// may sort digits behind letters (Czech) or read digits as one number. The comparison has the collation of the column.
	prefixRangeSQL = `WITH follow(c) AS (SELECT '' UNION ALL SELECT chr(n) FROM generate_series(33, 126) AS n)
SELECT bool_and(s >= $2::text AND s < $3::text)
  FROM (SELECT coalesce((SELECT d.decision_id FROM decision_logs d WHERE false), $1::text || a.c || b.c) AS s FROM follow a, follow b) AS x`
	// prefixSQL walks the primary key of each partition from $1 up to $2 and stops when it has $4 ids.
	prefixSQL = `SELECT DISTINCT ON (d.decision_id) d.decision_id, d.ts FROM decision_logs d
 WHERE d.decision_id >= $1::text AND d.decision_id < $2::text AND starts_with(d.decision_id COLLATE "C", $3::text)
 ORDER BY d.decision_id, d.ts LIMIT $4::int`
)

// Begins is that of [reader.Store]. The primary key has the collation of the database, in which ids that begin alike need not be
// neighbours: a range that has all of them is made here and proved by the server. Where there is none, or the time is over, the
// error is [reader.ErrWhole].
func (r *Reader) Begins(ctx context.Context, prefix string, limit int) (all []reader.Decision, err error) {
	deadline := time.Now().Add(min(r.patience(ctx), r.prefixTime))
	missed, err := r.whole(ctx, span{}, func(int) { all = nil }, func(s source) error {
		return r.look(ctx, max(time.Until(deadline), leastPrefix), func(ctx context.Context, tx pgx.Tx) error {
			found, err := r.beginning(ctx, tx, s, prefix, limit)
			all = append(all, found...)
			return err
		})
	})
	switch {
	case err == nil:
		slices.SortStableFunc(all, func(a, b reader.Decision) int { return cmp.Or(strings.Compare(a.ID, b.ID), a.Time.Compare(b.Time)) })
		all = slices.CompactFunc(all, func(a, b reader.Decision) bool { return a.ID == b.ID })
		return all[:min(limit, len(all))], reader.Told(ctx, missed)
	case errors.Is(err, errUnordered):
		return nil, fmt.Errorf("ids cannot be shortened in the order of this database: %w", reader.ErrWhole)
	case outOfTime(ctx, err):
		return nil, fmt.Errorf("no time was left to see whether it is the only one that begins so: %w", reader.ErrWhole)
	}
	return nil, db.Clean("look for a decision by the first characters of its id", err)
}

// leastPrefix is the time for a day that is being archived.
const leastPrefix = 200 * time.Millisecond

// beginning returns decisions of one table whose id begins with prefix.
func (r *Reader) beginning(ctx context.Context, tx pgx.Tx, s source, prefix string, limit int) ([]reader.Decision, error) {
	from, to, err := rangeOf(ctx, tx, prefix)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, in(s.name, prefixSQL), from, to, prefix, limit)
	if err != nil {
		return nil, err
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k key, err error) {
		err = row.Scan(&k.id, &k.ts)
		return k, err
	})
	if err != nil {
		return nil, err
	}
	return r.decisions(ctx, tx, s.name, keys, false)
}

var errUnordered = errors.New("no range of ids has all that begin alike")

// rangeOf is a range of ids in the order of the index that has all that begin with prefix, as narrow as can be.
func rangeOf(ctx context.Context, tx pgx.Tx, prefix string) (from, to string, err error) {
	for from = prefix; from != ""; from = from[:len(from)-1] {
		if to = following(from); to == "" {
			continue
		}
		var ordered bool
		if err := tx.QueryRow(ctx, prefixRangeSQL, prefix, from, to).Scan(&ordered); err != nil || ordered {
			return from, to, err
		}
	}
	return "", "", errUnordered
}

// following is a text that sorts behind all that begin with text in many collations: its last character is the next digit or letter,
// or the next in ASCII. Empty: there is none.
func following(text string) string {
	last := len(text) - 1
	switch c := text[last]; {
	case c == '9':
		return text[:last] + "a"
	case c < '~':
		return text[:last] + string(rune(c+1))
	}
	return ""
}
