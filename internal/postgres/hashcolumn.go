package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"docket/migrations"
)

// hash adds the column raw_sha256, while writers wait for two seconds at a time at most.
func (p *partitioner) hash(ctx context.Context) error {
	return p.alter(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.HashColumn)
		return err
	})
}

func (p *partitioner) unhash(ctx context.Context) error {
	return p.alter(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.NoHashColumn)
		return err
	})
}

func (p *partitioner) alter(ctx context.Context, do func(pgx.Tx) error) error {
	if _, err := p.conn.Exec(ctx, ownSchemaSQL); err != nil {
		return err
	}
	t, err := p.state(ctx, p.conn)
	if err != nil {
		return err
	}
	if t.kind != "r" && t.kind != "p" {
		p.log.Warn().Str("hint", "add the column raw_sha256 (bytea) to the base table and to what decision_logs is").
			Msg("column raw_sha256 skipped")
		return nil
	}
	return p.locked(ctx, "raw_sha256", do)
}
