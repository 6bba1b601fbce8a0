//go:build integration

package chaos

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// sqlLimit is how long one statement of the campaign may take.
const sqlLimit = 10 * time.Second

// database is Postgres for the campaign itself: as superuser, past every proxy, on a connection for each act. It leads to
// whoever is the primary.
type database struct {
	at atomic.Pointer[string]
}

func (d *database) lead(url string) { d.at.Store(&url) }

func (d *database) url() string { return *d.at.Load() }

func (d *database) with(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, sqlLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.url())
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	defer d.hangUp(conn)
	return do(ctx, conn)
}

// hangUp closes a connection, also to a server that does not answer.
func (d *database) hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

func (d *database) exec(ctx context.Context, statements ...string) error {
	return d.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		for _, sql := range statements {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
}

// rows counts the table.
func (d *database) rows(ctx context.Context) (n int, err error) {
	err = d.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(*) FROM decision_logs").Scan(&n)
	})
	return n, err
}
