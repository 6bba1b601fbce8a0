package ledgerdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/console/views"
	"docket/internal/postgres/db"
)

// Views keeps the console's views in desk_views. It is safe for concurrent use.
type Views struct{ db *db.DB }

// NewViews makes a store of views.
func NewViews(d *db.DB) *Views { return &Views{d} }

const (
	listViewsSQL = `SELECT id, owner, name, query, made_by, made_at FROM desk_views WHERE owner IN ($1, '') ORDER BY owner = '', name COLLATE "C"`
	// saveViewSQL adds a view where there is room, and replaces one of the same name anyway.
	saveViewSQL = `INSERT INTO desk_views AS v (owner, name, query, made_by, made_at) SELECT $1::text, $2::text, $3::text, $4::text, $5::timestamptz
	 WHERE (SELECT count(*) FROM desk_views WHERE owner = $1) < $6 OR EXISTS (SELECT FROM desk_views WHERE owner = $1 AND name = $2)
	ON CONFLICT (owner, name) DO UPDATE SET query = excluded.query, made_by = excluded.made_by, made_at = excluded.made_at`
	removeViewSQL = `DELETE FROM desk_views WHERE id = $1 AND owner = $2`
)

// List implements [views.Store].
func (v *Views) List(ctx context.Context, owner string) ([]views.View, error) {
	if err := v.db.Usable(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, v.db.Timeout())
	defer cancel()
	var all []views.View
	err := v.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, listViewsSQL, owner)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (one views.View, err error) {
			err = r.Scan(&one.ID, &one.Owner, &one.Name, &one.Query, &one.MadeBy, &one.MadeAt)
			one.MadeAt = one.MadeAt.UTC()
			return one, err
		})
		return err
	})
	if err != nil {
		return nil, v.db.Clean("list views", err)
	}
	return all, nil
}

// Save implements [views.Store].
func (v *Views) Save(ctx context.Context, n views.View) error {
	return v.act(ctx, "save a view", views.ErrFull, saveViewSQL, n.Owner, n.Name, n.Query, n.MadeBy, n.MadeAt, views.Most)
}

// Remove implements [views.Store].
func (v *Views) Remove(ctx context.Context, id int64, owner string) error {
	return v.act(ctx, "remove a view", views.ErrNone, removeViewSQL, id, owner)
}

// act runs a statement. If it changed nothing, the error is none.
func (v *Views) act(ctx context.Context, name string, none error, sql string, args ...any) error {
	if err := v.db.Usable(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, v.db.Timeout())
	defer cancel()
	var changed int64
	err := v.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, args...)
		changed = tag.RowsAffected()
		return err
	})
	switch {
	case err != nil:
		return v.db.Clean(name, err)
	case changed == 0:
		return none
	}
	return nil
}
