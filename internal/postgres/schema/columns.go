package schema

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"docket/migrations"
)

// hash adds the column raw_sha256.
func (p *partitioner) hash(ctx context.Context) error {
	return p.alter(ctx, []string{"raw_sha256 (bytea)"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.HashColumn)
		return err
	})
}

func (p *partitioner) unhash(ctx context.Context) error {
	return p.alter(ctx, []string{"raw_sha256"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.NoHashColumn)
		return err
	})
}

// unfaithful adds the columns raw_bytes and unfaithful.
func (p *partitioner) unfaithful(ctx context.Context) error {
	return p.alter(ctx, []string{"raw_bytes (bytea)", "unfaithful (text[])"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.UnfaithfulColumns)
		return err
	})
}

func (p *partitioner) allFaithful(ctx context.Context) error {
	return p.alter(ctx, []string{"raw_bytes", "unfaithful"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.NoUnfaithfulColumns)
		return err
	})
}

// uploader adds the column uploaded_by.
func (p *partitioner) uploader(ctx context.Context) error {
	return p.alter(ctx, []string{"uploaded_by (text)"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.UploaderColumn)
		return err
	})
}

func (p *partitioner) noUploader(ctx context.Context) error {
	return p.alter(ctx, []string{"uploaded_by"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.NoUploaderColumn)
		return err
	})
}

// edited adds the column edited_audit_id, and what of the ledger vouches for it.
func (p *partitioner) edited(ctx context.Context) error {
	err := p.alter(ctx, []string{"edited_audit_id (bigint)"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.EditedColumn)
		return err
	})
	if err != nil {
		return err
	}
	return p.locked(ctx, "edits of the ledger", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.Edits)
		return err
	})
}

func (p *partitioner) unedited(ctx context.Context) error {
	if _, err := p.conn.Exec(ctx, OwnSchemaSQL); err != nil {
		return err
	}
	if err := p.locked(ctx, "edits of the ledger", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.NoEdits)
		return err
	}); err != nil {
		return err
	}
	return p.alter(ctx, []string{"edited_audit_id"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, migrations.NoEditedColumn)
		return err
	})
}

// alter changes columns, while writers wait for two seconds at a time at most.
func (p *partitioner) alter(ctx context.Context, columns []string, do func(pgx.Tx) error) error {
	if _, err := p.conn.Exec(ctx, OwnSchemaSQL); err != nil {
		return err
	}
	t, err := p.state(ctx, p.conn)
	if err != nil {
		return err
	}
	if t.kind != "r" && t.kind != "p" {
		p.log.Warn().Str("hint", "change these columns of the base table and of what decision_logs is").Strs("columns", columns).
			Msg("columns skipped")
		return nil
	}
	return p.locked(ctx, strings.Join(columns, ", "), do)
}
