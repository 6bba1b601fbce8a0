package schema

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"docket/internal/postgres/db"
)

// Patient lets partitions take minutes to make, as on a busy machine.
func (s *Schema) Patient() *Schema {
	s.makes, s.makeOne = 10*time.Minute, time.Minute
	return s
}

// Partition makes the table one of partitions, as the migration does, or takes it back. Up to small rows one transaction
// does it. After each step done is called, and its error ends all there, as a kill would.
func Partition(ctx context.Context, d *db.DB, small int, back bool, done func(step string) error) error {
	conn, err := pgx.ConnectConfig(ctx, d.ConnConfig())
	if err != nil {
		return err
	}
	defer db.HangUp(ctx, conn.PgConn())
	p := &partitioner{conn: conn, log: *d.Logger(), small: small, moves: small, tries: 100, pause: 10 * time.Millisecond, step: done}
	if back {
		return p.down(ctx)
	}
	return p.up(ctx)
}

// MigrateTo brings the schema up to a version.
func (s *Schema) MigrateTo(ctx context.Context, version int64) error {
	return s.withGoose(ctx, func(p *goose.Provider) error {
		_, err := p.UpTo(ctx, version)
		return err
	})
}

// Lookout looks for sessions that block a migration, on one connection.
type Lookout struct{ lookout }

// NewLookout is that of a migration which waits with no session yet.
func NewLookout(d *db.DB) *Lookout { return &Lookout{lookout{of: &sessions{db: d}}} }

// Look looks once.
func (l *Lookout) Look(ctx context.Context) error {
	_, err := l.blockers(ctx)
	return err
}

// Close closes the connection.
func (l *Lookout) Close(ctx context.Context) { l.hangUp(ctx) }
