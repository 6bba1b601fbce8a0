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
SELECT r.path, r.revision, r.first_at, r.last_at, r.allowed, r.denied, b.revision, b.first_at, b.last_at, b.allowed, b.denied
  FROM decision_states_revisions r
  LEFT JOIN LATERAL (SELECT * FROM decision_states_revisions b WHERE b.path = r.path AND b.revision <> r.revision AND b.first_at < r.first_at AND b.allowed + b.denied >= $1
                      ORDER BY b.first_at DESC, b.revision LIMIT 1) AS b ON true
 WHERE NOT r.told AND r.allowed + r.denied >= $1 ORDER BY r.first_at, r.path, r.revision LIMIT $2`
	toldRevisionsSQL = `UPDATE decision_states_revisions r SET told = true FROM unnest($1::text[], $2::text[]) AS k(path, revision) WHERE r.path = k.path AND r.revision = k.revision`
)

// Flips is [Reader.Flips].
func (s *States) Flips(ctx context.Context, q state.FlipQuery) ([]state.Flip, state.Mark, error) {
	return s.read.Flips(ctx, q)
}

// Denials returns first denials of paths that were not told, at most limit.
func (s *States) Denials(ctx context.Context, limit int) ([]state.Denial, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout())
	defer cancel()
	rows, err := s.db.Pool().Query(ctx, denialsSQL, limit)
	if err != nil {
		return nil, s.db.Noted("read first denials", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d state.Denial, err error) {
		err = row.Scan(&d.Path, &d.Time, &d.ID, &d.StoredAt)
		return d, err
	})
	return all, s.db.Noted("read first denials", err)
}

// ToldDenials notes that people were told of the first denials of these paths.
func (s *States) ToldDenials(ctx context.Context, paths []string) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout())
	defer cancel()
	_, err := s.db.Pool().Exec(ctx, toldDenialsSQL, paths)
	return s.db.Noted("note first denials", err)
}

// Revisions returns revisions that were not told, and have as many decisions as least, at most limit. Each comes with the one before
// it on its path that has as many.
func (s *States) Revisions(ctx context.Context, least int64, limit int) ([]state.Comparison, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout())
	defer cancel()
	rows, err := s.db.Pool().Query(ctx, revisionsSQL, least, limit)
	if err != nil {
		return nil, s.db.Noted("compare revisions", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c state.Comparison, err error) {
		var revision *string
		var first, last *time.Time
		var allowed, denied *int64
		err = row.Scan(&c.Path, &c.Revision, &c.First, &c.Last, &c.Allowed, &c.Denied, &revision, &first, &last, &allowed, &denied)
		if err == nil && revision != nil {
			c.Before = &state.Rate{PathRevision: state.PathRevision{Path: c.Path, Revision: *revision}, First: *first, Last: *last, Allowed: *allowed, Denied: *denied}
		}
		return c, err
	})
	return all, s.db.Noted("compare revisions", err)
}

// ToldRevisions notes that people were told of these revisions, or need not be.
func (s *States) ToldRevisions(ctx context.Context, of []state.PathRevision) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout())
	defer cancel()
	paths, revisions := make([]string, len(of)), make([]string, len(of))
	for i, one := range of {
		paths[i], revisions[i] = one.Path, one.Revision
	}
	_, err := s.db.Pool().Exec(ctx, toldRevisionsSQL, paths, revisions)
	return s.db.Noted("note revisions", err)
}
