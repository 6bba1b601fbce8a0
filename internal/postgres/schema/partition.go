package schema

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"docket/migrations"
)

// partitioner makes decision_logs a table of partitions, or takes that back, on a connection of its own. It may be
// killed at any point and run again: the catalog says how far it came.
type partitioner struct {
	conn *pgx.Conn
	log  zerolog.Logger

	small int           // up to so many rows all is done in one transaction
	moves int           // so many of its rows may have to be moved
	tries int           // to get a lock
	pause time.Duration // between them
	step  func(done string) error
}

// The bounds of a small table: reading it once more takes the lock for well under the time that writers wait for one.
const (
	smallTable = 1_000_000
	fewMoves   = 20_000
	lockTries  = 300
	lockPause  = time.Second
)

// tableState is what is there to begin with.
type tableState struct {
	oid     uint32
	kind    string     // of pg_class.relkind
	ours    bool       // it has partitions, and we made them
	cut     *time.Time // the CHECK of a migration that was begun
	nearing bool       // that cut is too near to be kept
}

const (
	// OwnSchemaSQL makes the schema of the table all that names are looked for in.
	OwnSchemaSQL = `
SELECT set_config('search_path', quote_ident(n.nspname) || ', pg_temp', false), set_config('statement_timeout', '0', false),
       set_config('synchronous_commit', 'on', false), set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO, YMD', false)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = 'decision_logs'::regclass`

	// PatientSQL lifts the limits that a role or the database has for a session. A step, or a day of the archive, takes longer than
	// most of them, and a session waits meanwhile. Not each server has all of them.
	PatientSQL = `
SELECT set_config(name, '0', false) FROM pg_settings
 WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout')`

	// unhurriedSQL lifts the limits of what is done concurrently, if $1 is the server's own number of the session: a pooler gives
	// another, and its session may be others' next.
	unhurriedSQL = `
SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout', 'lock_timeout') AND pg_backend_pid() = $1::bigint`

	tableStateSQL = `
SELECT c.oid, c.relkind::text, EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = c.oid AND partdefid = to_regclass('decision_logs_default')),
       k.cut, coalesce(k.cut < now() + interval '1 hour', false)
  FROM pg_class c
  LEFT JOIN LATERAL (SELECT (regexp_match(pg_get_expr(conbin, conrelid), '''([^'']+)'''))[1]::timestamptz AS cut
                       FROM pg_constraint WHERE conrelid = c.oid AND conname = 'decision_logs_before_cut') k ON true
 WHERE c.oid = 'decision_logs'::regclass`

	// lockWaitSQL bounds the wait for a lock, as everybody who comes later queues up behind it. It is longer than
	// deadlock_timeout, at which autovacuum gives way.
	lockWaitSQL = `SET LOCAL lock_timeout = '2s'`
	lockSQL     = `LOCK TABLE decision_logs IN ACCESS EXCLUSIVE MODE`
)

// up makes the table one of partitions.
func (p *partitioner) up(ctx context.Context) error {
	if _, err := p.conn.Exec(ctx, OwnSchemaSQL); err != nil {
		return err
	}
	for {
		t, err := p.state(ctx, p.conn)
		switch {
		case err != nil:
			return err
		case t.kind == "p" && t.ours:
			return p.days(ctx)
		case t.kind != "r":
			p.log.Warn().Str("hint", "create the partitions yourself; decision_logs is not a plain table and stays as it is").
				Msg("table partitioning skipped")
			return nil
		case t.cut != nil && t.nearing:
			if err := p.abandon(ctx); err != nil {
				return err
			}
		default:
			if err := p.convert(ctx, t); err != nil {
				return err
			}
		}
	}
}

// state reads where things stand.
func (p *partitioner) state(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (tableState, error) {
	var t tableState
	err := q.QueryRow(ctx, tableStateSQL).Scan(&t.oid, &t.kind, &t.ours, &t.cut, &t.nearing)
	return t, err
}

// convert brings a plain table to its end as a partition.
func (p *partitioner) convert(ctx context.Context, t tableState) error {
	if err := obstacles(ctx, p.conn, t.oid); err != nil {
		if met := new(ObstacleError); errors.As(err, &met) && t.cut != nil { // nothing of an earlier run may outlast the refusal
			if left := p.abandon(ctx); left != nil {
				return errors.Join(err, left)
			}
			return obstacles(ctx, p.conn, t.oid) // with rows that stay aside
		}
		return err
	}
	if t.cut == nil {
		few, err := p.few(ctx)
		if err != nil {
			return err
		}
		if few {
			return p.swap(ctx, `(date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')::text`, true)
		}
		p.log.Info().Msg("table partitioning started")
		if err := p.addCut(ctx); err != nil {
			return err
		}
	}
	if err := p.moveStrays(ctx); err != nil {
		return err
	}
	if err := p.validate(ctx); err != nil {
		return err
	}
	return p.swap(ctx, `(SELECT (regexp_match(pg_get_expr(conbin, conrelid), '''([^'']+)'''))[1] FROM pg_constraint
		WHERE conrelid = 'decision_logs'::regclass AND conname = 'decision_logs_before_cut')`, false)
}

// few says whether the table is so small that one transaction does it.
func (p *partitioner) few(ctx context.Context) (bool, error) {
	var few bool
	err := p.conn.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM (SELECT FROM decision_logs LIMIT $1::int8 + 1) AS a) <= $1
		   AND (SELECT count(*) FROM (SELECT FROM decision_logs
		         WHERE ts >= date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' LIMIT $2::int8 + 1) AS b) <= $2`, p.small, p.moves).Scan(&few)
	return few, err
}

// addCut has the table refuse what will not belong into it. From here on such decisions are parked.
func (p *partitioner) addCut(ctx context.Context) error {
	return p.locked(ctx, "cut", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockSQL); err != nil {
			return err
		}
		// A constant, as the catalog has it: the rows must not depend on the moment of a look.
		_, err := tx.Exec(ctx, `DO $$ BEGIN EXECUTE format(
			'ALTER TABLE decision_logs ADD CONSTRAINT decision_logs_before_cut CHECK (ts < %L::timestamptz) NOT VALID',
			(date_trunc('day', now() AT TIME ZONE 'UTC') + interval '2 days') AT TIME ZONE 'UTC'); END $$`)
		return err
	})
}

// moveStrays puts what the table would be refused for aside, in one transaction: it is always in one place.
func (p *partitioner) moveStrays(ctx context.Context) error {
	return p.locked(ctx, "strays", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DO $$
			DECLARE
				cut     text := (SELECT (regexp_match(pg_get_expr(conbin, conrelid), '''([^'']+)'''))[1] FROM pg_constraint
				                  WHERE conrelid = 'decision_logs'::regclass AND conname = 'decision_logs_before_cut');
				columns text := (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
				                  WHERE attrelid = 'decision_logs'::regclass AND attnum > 0 AND NOT attisdropped);
			BEGIN
				IF to_regclass('decision_logs_strays') IS NOT NULL THEN
					RETURN; -- they are there, and no more can have come
				END IF;
				CREATE TABLE decision_logs_strays (LIKE decision_logs);
				EXECUTE format('WITH moved AS (DELETE FROM decision_logs WHERE ts >= %L RETURNING %s)
					INSERT INTO decision_logs_strays (%2$s) SELECT %2$s FROM moved', cut, columns);
			END $$`)
		return err
	})
}

// validate reads the table once, while others read and write.
func (p *partitioner) validate(ctx context.Context) error {
	return p.locked(ctx, "validated", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `ALTER TABLE decision_logs VALIDATE CONSTRAINT decision_logs_before_cut`)
		return err
	})
}

// swap puts the new table into the old one's place. cut is SQL for where the old one ends.
func (p *partitioner) swap(ctx context.Context, cut string, small bool) error {
	var late *ObstacleError
	err := p.locked(ctx, "swapped", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockSQL); err != nil {
			return err
		}
		t, err := p.state(ctx, tx)
		if err != nil {
			return err
		}
		if err := obstacles(ctx, tx, t.oid); err != nil {
			return err
		}
		for _, sql := range []string{`SELECT set_config('docket.cut', ` + cut + `, true)`, migrations.Swap, functionSQL} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		if small {
			return p.make(ctx, tx)
		}
		return nil
	})
	if errors.As(err, &late) && !small {
		return errors.Join(err, p.abandon(ctx)) // a CHECK that refuses rows may not outlast this run
	}
	return err
}

// functionSQL makes the function, and hands it to the owner of the table, as whom it works. It looks itself at who may.
var functionSQL = migrations.Function + `;
GRANT EXECUTE ON FUNCTION decision_logs_make_partitions(int) TO PUBLIC;
DO $$ BEGIN
	EXECUTE format('ALTER FUNCTION decision_logs_make_partitions(int) OWNER TO %I',
		(SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'decision_logs'::regclass));
END $$`

// functionAgain makes the function as this release has it, where an earlier one made it. Its owner stays, and so do the rights to call it.
func (p *partitioner) functionAgain(ctx context.Context) error {
	if _, err := p.conn.Exec(ctx, OwnSchemaSQL); err != nil {
		return err
	}
	return p.locked(ctx, "function of the partitions", func(tx pgx.Tx) error {
		var there bool
		if err := tx.QueryRow(ctx, `SELECT to_regprocedure('decision_logs_make_partitions(int)') IS NOT NULL`).Scan(&there); err != nil || !there {
			return err
		}
		_, err := tx.Exec(ctx, migrations.Function)
		return err
	})
}

// functionStays is the way back: earlier releases work with this function as well.
func (p *partitioner) functionStays(context.Context) error { return nil }

// abandon takes back what was prepared. Rows that the table does not take again stay aside, as those of a trigger that swallows or
// deletes them. They are an obstacle then.
func (p *partitioner) abandon(ctx context.Context) error {
	return p.locked(ctx, "abandoned", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, lockSQL+`; ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_before_cut; DO $$
			DECLARE columns text;
			BEGIN
				IF to_regclass('decision_logs_strays') IS NULL THEN RETURN; END IF;
				SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO columns
				  FROM pg_attribute a JOIN pg_attribute b USING (attname)
				 WHERE a.attrelid = 'decision_logs_strays'::regclass AND a.attnum > 0 AND NOT a.attisdropped
				   AND b.attrelid = 'decision_logs'::regclass AND b.attgenerated = '' AND NOT b.attisdropped;
				EXECUTE format('INSERT INTO decision_logs (%s) SELECT %1$s FROM decision_logs_strays', columns);
				SET CONSTRAINTS ALL IMMEDIATE; -- deferred triggers can delete them, too
				IF EXISTS (SELECT FROM decision_logs_strays AS s
				            WHERE NOT EXISTS (SELECT FROM decision_logs AS d WHERE d.decision_id = s.decision_id AND d.ts = s.ts)) THEN
					RAISE 'rows are missing';
				END IF;
				DROP TABLE decision_logs_strays;
			EXCEPTION WHEN OTHERS THEN
				NULL; -- they stay aside
			END $$`)
		return err
	})
}

// firstDays is how many days ahead the migration itself makes; the worker makes those behind.
const firstDays = 7

// days makes the first partitions where they are not there yet.
func (p *partitioner) days(ctx context.Context) error {
	return p.locked(ctx, "days", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, functionSQL); err != nil {
			return err
		}
		return p.make(ctx, tx)
	})
}

func (p *partitioner) make(ctx context.Context, tx pgx.Tx) error {
	for {
		var made int
		if err := tx.QueryRow(ctx, makeSQL, firstDays).Scan(&made); err != nil || made == 0 {
			return err
		}
	}
}

// down makes one table of the partitions again. Writers wait for as long as it takes.
func (p *partitioner) down(ctx context.Context) error {
	if _, err := p.conn.Exec(ctx, OwnSchemaSQL); err != nil {
		return err
	}
	t, err := p.state(ctx, p.conn)
	switch {
	case err != nil:
		return err
	case t.kind == "r" && t.cut != nil:
		return p.abandon(ctx)
	case !t.ours:
		return nil
	}
	return p.locked(ctx, "back", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockSQL); err != nil {
			return err
		}
		if err := obstacles(ctx, tx, t.oid); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, migrations.Back)
		return err
	})
}

// InShortLocks runs do in a transaction on a connection, so many times until it gets its locks: it waits 2 s at most for each.
func InShortLocks(ctx context.Context, conn *pgx.Conn, log *zerolog.Logger, tries int, step string, do func(pgx.Tx) error) error {
	return (&partitioner{conn: conn, log: *log, tries: tries, pause: lockPause}).locked(ctx, step, do)
}

// locked runs do in a transaction that waits only shortly for each lock, again until it gets them.
func (p *partitioner) locked(ctx context.Context, name string, do func(pgx.Tx) error) error {
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, lockWaitSQL); err != nil {
				return err
			}
			return do(tx)
		})
		var refused *pgconn.PgError
		switch {
		case err == nil:
			p.log.Info().Str("step", name).Msg("migration step completed")
			if p.step == nil {
				return nil
			}
			return p.step(name)
		case !errors.As(err, &refused) || refused.Code != pgerrcode.LockNotAvailable && refused.Code != pgerrcode.DeadlockDetected || try >= p.tries:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(p.pause):
		}
	}
}
