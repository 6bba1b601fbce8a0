package schema

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
)

const (
	// blockersSQL are the sessions that those of $1 wait for. A transaction of less than a second is none that has to be ended.
	blockersSQL = `
SELECT DISTINCT b.pid, coalesce(a.application_name, ''), a.xact_start
  FROM unnest($1::int[]) AS w(pid) CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS b(pid) LEFT JOIN pg_stat_activity a ON a.pid = b.pid
 WHERE b.pid <> ALL ($1::int[]) AND coalesce(a.xact_start < clock_timestamp() - interval '1 second', true)
 ORDER BY a.xact_start LIMIT 5`

	blockersEvery = time.Second
	blockersAgain = time.Minute
	blockersLimit = 10 * time.Second // of one look
)

// sessions are those of a migration.
type sessions struct {
	db   *db.DB
	mu   sync.Mutex
	pids []int32
}

// patient has a session of the migration wait for as long as it takes, and notes it.
func (s *sessions) patient(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, PatientSQL); err != nil {
		return err
	}
	var pid int32
	if err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pids = append(s.pids, pid)
	return nil
}

// watch logs once a minute which sessions the migration waits for, until stop is called.
func (s *sessions) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		look := lookout{of: s}
		defer look.hangUp(ctx)
		ticks := time.NewTicker(blockersEvery)
		defer ticks.Stop()
		for told := (time.Time{}); ; {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			if time.Since(told) < blockersAgain {
				continue
			}
			if by, err := look.blockers(ctx); err == nil && len(by) > 0 { // a role that cannot look migrates all the same
				told = time.Now()
				s.db.Logger().Warn().Strs("by", by).Str("hint", "wait until these sessions end their transactions, or end them: SELECT pg_terminate_backend(...)").
					Msg("migration blocked")
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// lookout looks for sessions that block those of a migration. It has a connection of its own, as the others wait. It connects for its
// first look, and again after one that failed.
type lookout struct {
	of   *sessions
	conn *pgx.Conn
}

// blockers are the sessions that the migration waits for.
func (l *lookout) blockers(ctx context.Context) (by []string, err error) {
	l.of.mu.Lock()
	pids := append([]int32{}, l.of.pids...)
	l.of.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, blockersLimit)
	defer cancel()
	if l.conn == nil {
		if l.conn, err = pgx.ConnectConfig(ctx, l.of.db.ConnConfig()); err != nil {
			return nil, err
		}
	}
	rows, err := l.conn.Query(ctx, blockersSQL, pids)
	if err == nil {
		by, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			var pid int32
			var program string
			var begun *time.Time
			err := row.Scan(&pid, &program, &begun)
			return db.SessionName(pid, program, begun), err
		})
	}
	if err != nil {
		l.hangUp(ctx)
		return nil, err
	}
	return by, nil
}

// hangUp closes the connection, if there is one.
func (l *lookout) hangUp(ctx context.Context) {
	if l.conn != nil {
		db.HangUp(ctx, l.conn.PgConn())
		l.conn = nil
	}
}
