package historydb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/state"
)

const (
	denialsSQL     = `SELECT path, denied_ts, denied_id, stored_at FROM decision_states_paths WHERE NOT told ORDER BY stored_at, path LIMIT $1`
	toldDenialsSQL = `UPDATE decision_states_paths SET told = true WHERE path = ANY($1::text[])`
	revisionsSQL   = `
SELECT r.path, r.revision, r.first_at, r.last_at, r.allowed, r.denied, r.judged_allowed, r.judged_denied, b.revision, b.first_at, b.last_at, b.allowed, b.denied
  FROM decision_states_revisions r
  LEFT JOIN LATERAL (SELECT * FROM decision_states_revisions b WHERE b.path = r.path AND b.revision <> r.revision AND b.first_at < r.first_at AND b.allowed + b.denied >= $1
                      ORDER BY b.first_at DESC, b.revision LIMIT 1) AS b ON true
 WHERE NOT r.told AND r.allowed + r.denied >= greatest($1, r.judged_allowed + r.judged_denied) + r.judged_allowed + r.judged_denied ORDER BY r.first_at, r.path, r.revision LIMIT $2`
	judgedSQL = `
UPDATE decision_states_revisions r SET judged_allowed = k.allowed, judged_denied = k.denied, told = k.told
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::boolean[]) AS k(path, revision, allowed, denied, told)
 WHERE r.path = k.path AND r.revision = k.revision`
)

// Flips is [Reader.Flips].
func (s *States) Flips(ctx context.Context, q state.FlipQuery) ([]state.Flip, state.Mark, error) {
	return s.read.Flips(ctx, q)
}

// Denials returns first denials of paths that were not told, at most limit.
func (s *States) Denials(ctx context.Context, limit int) ([]state.Denial, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout())
	defer cancel()
	var all []state.Denial
	err := s.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, denialsSQL, limit)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d state.Denial, err error) {
			err = row.Scan(&d.Path, &d.Time, &d.ID, &d.StoredAt)
			return d, err
		})
		return err
	})
	return all, s.db.Noted("read first denials", err)
}

// ToldDenials notes that people were told of the first denials of these paths.
func (s *States) ToldDenials(ctx context.Context, paths []string) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout())
	defer cancel()
	err := s.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, toldDenialsSQL, paths)
		return err
	})
	return s.db.Noted("note first denials", err)
}

// Revisions returns revisions that nobody was told of, at most limit: those with as many decisions as least, and again each time
// they have twice as many. Each comes with the one before it on its path that has as many as least.
func (s *States) Revisions(ctx context.Context, least int64, limit int) ([]state.Comparison, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout())
	defer cancel()
	var all []state.Comparison
	err := s.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, revisionsSQL, least, limit)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scanComparison)
		return err
	})
	return all, s.db.Noted("compare revisions", err)
}

func scanComparison(row pgx.CollectableRow) (c state.Comparison, err error) {
	var revision *string
	var first, last *time.Time
	var allowed, denied *int64
	err = row.Scan(&c.Path, &c.Revision, &c.First, &c.Last, &c.Allowed, &c.Denied, &c.Judged.Allowed, &c.Judged.Denied, &revision, &first, &last, &allowed, &denied)
	c.Judged.PathRevision = c.PathRevision
	if err == nil && revision != nil {
		c.Before = &state.Rate{PathRevision: state.PathRevision{Path: c.Path, Revision: *revision}, First: *first, Last: *last, Allowed: *allowed, Denied: *denied}
	}
	return c, err
}

// JudgedRevisions notes judgements.
func (s *States) JudgedRevisions(ctx context.Context, all []state.Judgement) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout())
	defer cancel()
	paths, revisions, allowed, denied, told := make([]string, len(all)), make([]string, len(all)), make([]int64, len(all)), make([]int64, len(all)), make([]bool, len(all))
	for i, j := range all {
		paths[i], revisions[i], allowed[i], denied[i], told[i] = j.Path, j.Revision, j.Allowed, j.Denied, j.Told
	}
	err := s.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, judgedSQL, paths, revisions, allowed, denied, told)
		return err
	})
	return s.db.Noted("note revisions", err)
}
