package ledgerdb

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/desk/console/session"
	"docket/internal/postgres/db"
)

// Sessions keeps the console's sessions in desk_sessions. It is safe for concurrent use.
type Sessions struct{ db *db.DB }

// NewSessions makes a store of sessions.
func NewSessions(d *db.DB) *Sessions { return &Sessions{d} }

const (
	overSessionsSQL  = `WITH over AS (DELETE FROM desk_sessions WHERE ends_at <= $6::timestamptz OR used_at <= $6::timestamptz - $9::interval) `
	createSessionSQL = overSessionsSQL + `INSERT INTO desk_sessions (id, name, role, made_by, credential, created_at, used_at, ends_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	createOpenIDSQL  = overSessionsSQL + `INSERT INTO desk_sessions (id, name, role, made_by, credential, created_at, used_at, ends_at, subject, provider_session, login)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $10, nullif($11, ''), $12)`
	findSessionSQL = `SELECT name, role, made_by, credential, created_at, used_at, ends_at FROM desk_sessions
	WHERE id = $1 AND ends_at > $2::timestamptz AND used_at > $2::timestamptz - $3::interval`
	touchSessionSQL = `UPDATE desk_sessions SET used_at = $2::timestamptz
	WHERE id = $1 AND ends_at > $2::timestamptz AND used_at > $2::timestamptz - $3::interval AND used_at < $2::timestamptz`
	endSessionSQL  = `DELETE FROM desk_sessions WHERE id = $1`
	endSessionsSQL = `DELETE FROM desk_sessions WHERE name = $1`
	// A logout of the provider is a row that nobody's cookie leads to. created_at is when the provider issued it. There may be many
	// logouts before the next login, so each removes what is over, too.
	logoutSQL = `WITH over AS (DELETE FROM desk_sessions WHERE ends_at <= $3::timestamptz OR used_at <= $3::timestamptz - $7::interval) INSERT INTO desk_sessions (id, name, role, made_by, credential, created_at, used_at, ends_at, subject, provider_session)
	VALUES ($1, '', '', 'logout', '', $2, $3, $4, nullif($5, ''), nullif($6, ''))`
	endedSQL = `SELECT EXISTS (SELECT FROM desk_sessions WHERE made_by = 'logout' AND ends_at > $4::timestamptz AND (
	provider_session = $2 AND $2 <> '' AND coalesce(subject, $1) = $1 OR provider_session IS NULL AND subject = $1 AND created_at >= $3::timestamptz))`
	endFromSQL = `DELETE FROM desk_sessions WHERE made_by <> 'logout' AND CASE WHEN $2 <> ''
	THEN provider_session = $2 OR provider_session IS NULL AND $1 <> '' AND subject = $1 ELSE subject = $1 END`
	loginIndex = "desk_sessions_login"
)

// Create implements [session.Store].
func (s *Sessions) Create(ctx context.Context, n session.Session) error {
	if err := s.db.Usable(); err != nil {
		return err
	}
	sql, values := createSessionSQL, []any{n.ID[:], n.Name, n.Role, string(n.By), n.Credential, n.CreatedAt, n.UsedAt, n.EndsAt, session.Idle}
	if n.By == session.OpenID { // the others do without the columns of a later migration
		sql, values = createOpenIDSQL, append(values, n.Origin.Subject, n.Origin.Session, n.Origin.Login)
	}
	used := false
	_, err := s.act(ctx, "create a session", func(ctx context.Context, tx pgx.Tx) (pgconn.CommandTag, error) {
		tag, err := tx.Exec(ctx, sql, values...)
		var refused *pgconn.PgError
		used = errors.As(err, &refused) && refused.Code == pgerrcode.UniqueViolation && refused.ConstraintName == loginIndex
		return tag, err
	})
	if used {
		return session.ErrUsed
	}
	return err
}

// Find implements [session.Store].
func (s *Sessions) Find(ctx context.Context, id session.ID, now time.Time) (session.Session, error) {
	if err := s.db.Usable(); err != nil {
		return session.Session{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout())
	defer cancel()
	found := session.Session{ID: id}
	err := s.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, findSessionSQL, id[:], now, session.Idle).
			Scan(&found.Name, &found.Role, &found.By, &found.Credential, &found.CreatedAt, &found.UsedAt, &found.EndsAt)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return session.Session{}, session.ErrNone
	case err != nil:
		return session.Session{}, s.db.Clean("find a session", err)
	}
	found.CreatedAt, found.UsedAt, found.EndsAt = found.CreatedAt.UTC(), found.UsedAt.UTC(), found.EndsAt.UTC()
	return found, nil
}

// Touch implements [session.Store].
func (s *Sessions) Touch(ctx context.Context, id session.ID, now time.Time) error {
	_, err := s.act(ctx, "note the use of a session", func(ctx context.Context, tx pgx.Tx) (pgconn.CommandTag, error) {
		return tx.Exec(ctx, touchSessionSQL, id[:], now, session.Idle)
	})
	return err
}

// End implements [session.Store].
func (s *Sessions) End(ctx context.Context, id session.ID) error {
	_, err := s.act(ctx, "end a session", func(ctx context.Context, tx pgx.Tx) (pgconn.CommandTag, error) {
		return tx.Exec(ctx, endSessionSQL, id[:])
	})
	return err
}

// EndAll implements [session.Store].
func (s *Sessions) EndAll(ctx context.Context, name string) (int64, error) {
	return s.act(ctx, "end sessions", func(ctx context.Context, tx pgx.Tx) (pgconn.CommandTag, error) {
		return tx.Exec(ctx, endSessionsSQL, name)
	})
}

// EndFrom implements [session.Store].
func (s *Sessions) EndFrom(ctx context.Context, o session.Origin, issued, now time.Time) (int64, error) {
	if o.Subject == "" && o.Session == "" {
		return 0, nil
	}
	id := session.NewSecret().ID()
	// In a transaction of its own: a session that the second statement does not see yet is of a login that sees this row.
	if _, err := s.act(ctx, "remember a logout of the provider", func(ctx context.Context, tx pgx.Tx) (pgconn.CommandTag, error) {
		return tx.Exec(ctx, logoutSQL, id[:], issued, now, now.Add(session.Remembered), o.Subject, o.Session, session.Idle)
	}); err != nil {
		return 0, err
	}
	return s.act(ctx, "end sessions of the provider", func(ctx context.Context, tx pgx.Tx) (pgconn.CommandTag, error) {
		return tx.Exec(ctx, endFromSQL, o.Subject, o.Session)
	})
}

// Ended implements [session.Store].
func (s *Sessions) Ended(ctx context.Context, o session.Origin, issued, now time.Time) (over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout())
	defer cancel()
	err = s.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, endedSQL, o.Subject, o.Session, issued, now).Scan(&over)
	})
	if err != nil {
		return false, s.db.Clean("look for a logout of the provider", err)
	}
	return over, nil
}

// act runs one statement.
func (s *Sessions) act(ctx context.Context, name string, run func(context.Context, pgx.Tx) (pgconn.CommandTag, error)) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout())
	defer cancel()
	err = s.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		tag, err := run(ctx, tx)
		n = tag.RowsAffected()
		return err
	})
	if err != nil {
		return 0, s.db.Clean(name, err)
	}
	return n, nil
}
