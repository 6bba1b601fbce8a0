//go:build integration

package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/testkit/testenv"
)

func (c *campaign) serverFaults() map[string]inject {
	ended := func(signal string) inject {
		return func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
			return c.primary().Start, c.primary().End(ctx, signal)
		}
	}
	return map[string]inject{
		"Postgres restarted, fast":      ended(string(testenv.Fast)),
		"Postgres restarted, immediate": ended(string(testenv.Immediate)),
		"Postgres killed":               ended("SIGKILL"),
		"Postgres paused": func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
			return c.primary().Thaw, c.primary().Pause(ctx)
		},
	}
}

func (c *campaign) tableFaults() map[string]inject {
	// done runs statements, and others to undo them. These are written so that they can be run twice, and are undone only
	// once a standby has it; the fault itself waits for nobody.
	done := func(do, undo []string) inject {
		do = append([]string{"SET synchronous_commit = local"}, do...)
		return func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
			return func(ctx context.Context) error { return c.database.exec(ctx, undo...) }, c.database.exec(ctx, do...)
		}
	}
	return map[string]inject{
		"read-only": done(
			[]string{"ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"}, readWrite),
		"table renamed away":    done([]string{patience, "ALTER TABLE decision_logs RENAME TO decision_logs_away"}, renamedBack),
		"NOT NULL column added": done([]string{patience, "ALTER TABLE decision_logs ADD COLUMN chaos int NOT NULL DEFAULT 0", "ALTER TABLE decision_logs ALTER COLUMN chaos DROP DEFAULT"}, columnDropped),
		"grants taken away":     done([]string{"REVOKE INSERT ON decision_logs FROM " + role}, granted),
		"table locked":          c.locked,
		"sessions terminated": func(context.Context, Fault) (func(context.Context) error, error) {
			return meanwhile(700*time.Millisecond, func(ctx context.Context) {
				if err := c.database.exec(ctx, terminate); err != nil && ctx.Err() == nil {
					c.note("sessions not terminated: %v", err)
				}
			}), nil
		},
		"connections exhausted": c.exhausted,
	}
}

const (
	patience  = "SET lock_timeout = '4s'"
	terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '" + role + "'"
)

var (
	readWrite     = []string{"ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"}
	renamedBack   = []string{patience, "ALTER TABLE IF EXISTS decision_logs_away RENAME TO decision_logs"}
	columnDropped = []string{patience, "ALTER TABLE decision_logs DROP COLUMN IF EXISTS chaos"}
	granted       = []string{"GRANT SELECT, INSERT ON decision_logs TO " + role}
)

// locked holds the whole table in a transaction that does nothing.
func (c *campaign) locked(ctx context.Context, _ Fault) (func(context.Context) error, error) {
	ctx, cancel := context.WithTimeout(ctx, sqlLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.database.url())
	if err != nil {
		return nil, fmt.Errorf("connect to Postgres: %w", err)
	}
	if _, err := conn.Exec(ctx, "BEGIN; LOCK TABLE decision_logs IN ACCESS EXCLUSIVE MODE"); err != nil {
		c.database.hangUp(conn)
		return nil, fmt.Errorf("lock the table: %w", err)
	}
	return func(context.Context) error { c.database.hangUp(conn); return nil }, nil
}

// exhausted takes every connection that the role may have, and those that the programs had.
func (c *campaign) exhausted(context.Context, Fault) (func(context.Context) error, error) {
	var held []*pgx.Conn
	url := asHog(c.database.url())
	stop := meanwhile(500*time.Millisecond, func(ctx context.Context) {
		for {
			dialling, cancel := context.WithTimeout(ctx, 2*time.Second)
			conn, err := pgx.Connect(dialling, url)
			cancel()
			if err != nil {
				break
			}
			held = append(held, conn)
		}
		// Sessions of the programs make room, which the next round takes.
		_ = c.database.exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+role+"' AND application_name <> '"+hog+"'")
	})
	return func(ctx context.Context) error {
		_ = stop(ctx)
		c.note("%d connections were held", len(held))
		for _, conn := range held {
			c.database.hangUp(conn)
		}
		held = nil
		return nil
	}, nil
}

// wholeDatabase has the servers run, and the table as it was.
func (c *campaign) wholeDatabase(ctx context.Context) error {
	server := c.primary()
	if err := server.Thaw(ctx); err != nil {
		return err
	}
	running, err := server.Running(ctx)
	if err != nil {
		return err
	}
	if !running {
		if err := server.Start(ctx); err != nil {
			return err
		}
	}
	if err := c.wholeStandby(ctx); err != nil {
		return err
	}
	var errs []error
	for _, undo := range [][]string{readWrite, renamedBack, columnDropped, granted} {
		errs = append(errs, c.database.exec(ctx, undo...))
	}
	return errors.Join(errs...)
}
