package historydb

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"docket/internal/history/state"
	"docket/internal/postgres/db"
	"docket/internal/record/verdict"
)

var (
	_ state.Store     = (*Reader)(nil)
	_ state.Revisions = (*Reader)(nil)
)

const (
	// A database that is not migrated yet has no trimmed_before.
	statesMarkSQL = `SELECT stored_before, coalesce(since, stored_before), subject_by, full_at, states, (to_jsonb(m)->>'trimmed_before')::timestamptz FROM decision_states_mark m`
	statesSQL     = `SELECT ` + stateOfSQL + ` FROM decision_states s WHERE s.subject = $1`
	oneStateSQL   = `SELECT ` + stateOfSQL + ` FROM decision_states s WHERE s.subject = $1 AND s.path = $2`
	// oldestFlipSQL is the first flip that is left: the oldest ones are removed first.
	oldestFlipSQL = `SELECT flip_id, stored_at FROM decision_flips ORDER BY flip_id LIMIT 1`
	// flippedSQL says whether there ever was a flip, of none that is left. Not every role may read the sequence. The index of an
	// empty table is larger than its first page if rows were removed one by one.
	flippedSQL = `
SELECT coalesce(pg_relation_size(to_regclass('decision_flips_pkey')) > current_setting('block_size')::bigint, false)
    OR coalesce(CASE WHEN has_sequence_privilege(s, 'USAGE, SELECT') THEN pg_sequence_last_value(s) IS NOT NULL END, false)
  FROM (SELECT pg_get_serial_sequence('decision_flips', 'flip_id')::regclass AS s) AS s`
	flipsSQL = `SELECT d.flip_id, d.subject, d.path, d.was, d.verdict, d.was_revision, d.revision, d.ts, d.decision_id, d.was_ts, d.was_id, d.stored_at, d.late FROM decision_flips d WHERE d.flip_id > $1`
)

// States implements [state.Store].
func (r *Reader) States(ctx context.Context, subject string, paths []string, limit int) (all []state.State, mark state.Mark, err error) {
	err = r.statesLook(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if mark, err = statesMark(ctx, tx); err != nil {
			return err
		}
		args := []any{subject}
		sql := statesSQL
		if c := pathsSQL(paths, &args); c != "" {
			sql += " AND " + strings.ReplaceAll(c, "d.path", "s.path")
		}
		rows, err := tx.Query(ctx, sql+" ORDER BY s.path LIMIT "+db.Arg(&args, min(max(limit, 1), state.MostStates)), args...)
		if err == nil {
			all, err = pgx.CollectRows(rows, scanState)
		}
		return err
	})
	return all, mark, err
}

// Revisions implements [state.Revisions].
func (r *Reader) Revisions(ctx context.Context, paths []string, limit int) (all []state.Rate, mark state.Mark, err error) {
	err = r.statesLook(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if mark, err = statesMark(ctx, tx); err != nil {
			return err
		}
		var args []any
		sql := `SELECT d.path, d.revision, d.first_at, d.last_at, d.allowed, d.denied FROM decision_states_revisions d`
		if c := pathsSQL(paths, &args); c != "" {
			sql += " WHERE " + c
		}
		rows, err := tx.Query(ctx, sql+" ORDER BY d.last_at DESC, d.path, d.revision LIMIT "+db.Arg(&args, min(max(limit, 1), state.MostStates)), args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (one state.Rate, err error) {
			err = row.Scan(&one.Path, &one.Revision, &one.First, &one.Last, &one.Allowed, &one.Denied)
			one.First, one.Last = one.First.UTC(), one.Last.UTC()
			return one, err
		})
		return err
	})
	return all, mark, err
}

// State implements [reader.States].
func (r *Reader) State(ctx context.Context, by string, key state.Key) (*state.State, time.Time, error) {
	var found *state.State
	var mark state.Mark
	err := r.statesLook(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if mark, err = statesMark(ctx, tx); err != nil || mark.SubjectsBy != by {
			return err
		}
		rows, err := tx.Query(ctx, oneStateSQL, key.Subject, key.Path)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, scanState)
		if len(all) > 0 {
			found = &all[0]
		}
		return err
	})
	if errors.Is(err, state.ErrNone) {
		return nil, time.Time{}, nil
	}
	return found, mark.StoredBefore, err
}

// Flips implements [state.Store].
func (r *Reader) Flips(ctx context.Context, q state.FlipQuery) (all []state.Flip, mark state.Mark, err error) {
	err = r.statesLook(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if mark, err = statesMark(ctx, tx); err != nil {
			return err
		}
		if err := flipsKept(ctx, tx, &mark); err != nil {
			return err
		}
		args := []any{q.After}
		rows, err := tx.Query(ctx, flipsSQL+flipsWhere(q, &args)+" LIMIT "+db.Arg(&args, min(max(q.Limit, 1), state.MostFlips)), args...)
		if err == nil {
			all, err = pgx.CollectRows(rows, scanFlip)
		}
		return err
	})
	return all, mark, err
}

// flipsKept moves the beginning of the states to that of the flips, if earlier flips were removed (DOCKET_STATES_KEEP_FLIPS). Flips
// are numbered from 1 on, without many gaps. If all were removed, the beginning is as late as the states are.
func flipsKept(ctx context.Context, tx pgx.Tx, mark *state.Mark) error {
	var id int64
	var stored time.Time
	err := tx.QueryRow(ctx, oldestFlipSQL).Scan(&id, &stored)
	if errors.Is(err, pgx.ErrNoRows) {
		var flipped bool
		if err = tx.QueryRow(ctx, flippedSQL).Scan(&flipped); err == nil && flipped {
			mark.StoredSince = mark.StoredBefore
		}
		return err
	}
	if err == nil && id > 1 && stored.After(mark.StoredSince) {
		mark.StoredSince = stored.UTC()
	}
	return err
}

func flipsWhere(q state.FlipQuery, args *[]any) string {
	var sql strings.Builder
	if q.Before > 0 {
		sql.WriteString(" AND d.flip_id < " + db.Arg(args, q.Before))
	}
	if !q.Since.IsZero() {
		sql.WriteString(" AND d.ts >= " + db.Arg(args, q.Since) + "::timestamptz")
	}
	if q.Subject != "" {
		sql.WriteString(" AND d.subject = " + db.Arg(args, q.Subject) + "::text")
	}
	if c := pathsSQL(q.Paths, args); c != "" {
		sql.WriteString(" AND " + c)
	}
	sql.WriteString(" ORDER BY d.flip_id")
	if q.Backward {
		sql.WriteString(" DESC")
	}
	return sql.String()
}

func scanFlip(row pgx.CollectableRow) (f state.Flip, err error) {
	var was, is string
	err = row.Scan(&f.ID, &f.Subject, &f.Path, &was, &is, &f.WasRevision, &f.Revision, &f.Time, &f.Version.ID, &f.WasVersion.Time, &f.WasVersion.ID, &f.StoredAt, &f.Late)
	f.Was, f.Verdict = verdict.Verdict(was), verdict.Verdict(is)
	f.Time, f.WasVersion.Time, f.StoredAt = f.Time.UTC(), f.WasVersion.Time.UTC(), f.StoredAt.UTC()
	return f, err
}

func statesMark(ctx context.Context, tx pgx.Tx) (m state.Mark, err error) {
	var before, since pgtype.Timestamptz
	if err := tx.QueryRow(ctx, statesMarkSQL).Scan(&before, &since, &m.SubjectsBy, &m.FullAt, &m.States, &m.TrimmedBefore); err != nil {
		return m, err
	}
	if before.InfinityModifier != pgtype.Finite {
		return m, state.ErrNone
	}
	m.StoredBefore, m.StoredSince = before.Time.UTC(), since.Time.UTC()
	return m, nil
}

// statesLook reads the states. Where the tables are missing there are none.
func (r *Reader) statesLook(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	none := false
	err := r.look(ctx, r.patience(ctx), func(ctx context.Context, tx pgx.Tx) error {
		err := do(ctx, tx)
		none = errors.Is(err, state.ErrNone)
		return err
	})
	if s, ok := db.AsServerError(err); none || ok && s.SQLState() == pgerrcode.UndefinedTable {
		return state.ErrNone
	}
	if err != nil {
		return db.Clean("read states", err)
	}
	return nil
}
