package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/migrations"
)

// It polls once a second and does not wait inside the server. A session that waits for an advisory lock holds a snapshot.
// CREATE INDEX CONCURRENTLY of the session that has the lock would wait for that in turn.
const (
	migrateLockEvery = 1 // seconds
	migrateLockTries = 300
)

// Migration is one numbered step of the schema.
type Migration struct {
	Version int64
	Name    string
	Applied time.Time // zero where it was not yet applied
}

// MigrateError says which migration failed. Those before it stay.
type MigrateError struct {
	// Version is 0 where none was begun.
	Version int64
	Err     error // as safe to show as every error here
}

func (e *MigrateError) Error() string {
	if e.Version == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("migration %d: %v", e.Version, e.Err)
}

// Unwrap gives the cause.
func (e *MigrateError) Unwrap() error { return e.Err }

// HintFor says what an operator can do about an error of this code, where that differs from [db.Hint].
func (*MigrateError) HintFor(code string) string {
	if code == "42501" {
		return migrateHint
	}
	return ""
}

// migrateHint is what helps where the schema is what may not be changed.
const migrateHint = "the role may not change the schema: migrate with a role that owns the tables and may CREATE in the schema (with docs/grants.sql, a member of docket_migrate)"

// Migrate brings the schema up to date and says how many steps that took. Several may do it at once: one works, the
// others wait for it, for five minutes at most. It needs the server itself or a session pooler. It also sees to the rule of two
// editors, see [db.Config].OneEditor.
func (s *Schema) Migrate(ctx context.Context) (int, error) {
	var applied int
	err := s.withGoose(ctx, func(p *goose.Provider) error {
		var err error
		applied, err = s.upInShortLocks(ctx, p)
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			return &MigrateError{Version: partial.Failed.Source.Version, Err: s.db.Clean("apply it", partial.Err)}
		}
		if err != nil {
			return &MigrateError{Err: s.db.Clean("migrate", err)}
		}
		if err := s.setFourEyes(ctx); err != nil {
			return &MigrateError{Err: s.db.Clean("set the rule of two editors", err)}
		}
		return nil
	})
	return applied, err
}

// setFourEyes has the database ask for a second editor, or no longer, where it does not do so yet. Only the owner of the function can.
func (s *Schema) setFourEyes(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, s.db.ConnConfig())
	if err != nil {
		return err
	}
	defer db.HangUp(ctx, conn.PgConn())
	wanted := !s.db.OneEditor()
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock('dead_letter_proposals'::regclass::int, 0)`); err != nil { // of several programs one replaces it
			return err
		}
		var on bool
		if err := tx.QueryRow(ctx, `SELECT dead_letters_four_eyes()`).Scan(&on); err != nil || on == wanted {
			return err
		}
		if err := replaceFourEyes(ctx, tx, wanted); err != nil {
			return err
		}
		s.db.Logger().Warn().Bool("four_eyes", wanted).Str("hint", "DOCKET_DESK_FOUR_EYES decides; give all programs that migrate the same value").Msg("rule of two editors changed")
		return nil
	})
}

func replaceFourEyes(ctx context.Context, tx pgx.Tx, on bool) (err error) {
	if on {
		_, err = tx.Exec(ctx, `CREATE OR REPLACE FUNCTION dead_letters_four_eyes() RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT true $$`)
	} else {
		_, err = tx.Exec(ctx, `CREATE OR REPLACE FUNCTION dead_letters_four_eyes() RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT false $$`)
	}
	return err
}

// MigrationStatus lists all migrations in their order. Where there is none at all yet, it creates the table that keeps
// the books of them.
func (s *Schema) MigrationStatus(ctx context.Context) ([]Migration, error) {
	var all []Migration
	err := s.withGoose(ctx, func(p *goose.Provider) error {
		status, err := p.Status(ctx)
		if err != nil {
			return s.db.Clean("read the state of migrations", err)
		}
		for _, step := range status {
			m := Migration{Version: step.Source.Version, Name: step.Source.Path, Applied: step.AppliedAt}
			switch m.Version {
			case migrations.Partitions:
				m.Name = "00002_partitions"
			case migrations.Indexes:
				m.Name = "00005_indexes"
			case migrations.Hash:
				m.Name = "00006_raw_sha256"
			case migrations.Unfaithful:
				m.Name = "00007_unfaithful"
			case migrations.Uploader:
				m.Name = "00010_uploaded_by"
			case migrations.Edited:
				m.Name = "00012_edited_audit_id"
			case migrations.FunctionAgain:
				m.Name = "00035_partitions_function"
			}
			all = append(all, m)
		}
		return nil
	})
	return all, err
}

func (s *Schema) withGoose(ctx context.Context, do func(*goose.Provider) error) error {
	if err := s.db.Usable(); err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(migrateLockEvery, migrateLockTries))
	if err != nil {
		return fmt.Errorf("prepare the lock of migrations: %w", err)
	}
	of := &sessions{db: s.db}
	conns := stdlib.OpenDB(*s.db.ConnConfig(), stdlib.OptionAfterConnect(of.patient))
	defer func() { _ = conns.Close() }()
	p, err := goose.NewProvider(goose.DialectPostgres, conns, shortLocks{migrations.FS},
		goose.WithGoMigrations(s.stepped(of, migrations.Partitions, (*partitioner).up, (*partitioner).down),
			s.stepped(of, migrations.Indexes, (*partitioner).index, (*partitioner).unindex),
			s.stepped(of, migrations.Hash, (*partitioner).hash, (*partitioner).unhash),
			s.stepped(of, migrations.Unfaithful, (*partitioner).unfaithful, (*partitioner).allFaithful),
			s.stepped(of, migrations.Uploader, (*partitioner).uploader, (*partitioner).noUploader),
			s.stepped(of, migrations.Edited, (*partitioner).edited, (*partitioner).unedited),
			s.stepped(of, migrations.FunctionAgain, (*partitioner).functionAgain, (*partitioner).functionStays)),
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return errclass.As(fmt.Errorf("read the migrations: %w", err), errclass.CodeConfig)
	}
	defer of.watch(ctx)()
	return do(p)
}

// stepped is a migration that takes more than one transaction. It has a connection of its own.
func (s *Schema) stepped(of *sessions, version int64, up, down func(*partitioner, context.Context) error) *goose.Migration {
	with := func(do func(*partitioner, context.Context) error) *goose.GoFunc {
		return &goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error {
			conn, err := pgx.ConnectConfig(ctx, s.db.ConnConfig())
			if err != nil {
				return err
			}
			defer db.HangUp(ctx, conn.PgConn())
			if err := of.patient(ctx, conn); err != nil {
				return err
			}
			return do(&partitioner{conn: conn, log: *s.db.Logger(), small: smallTable, moves: fewMoves, tries: lockTries, pause: lockPause}, ctx)
		}}
	}
	return goose.NewGoMigration(version, with(up), with(down))
}
