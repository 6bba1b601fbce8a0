package schema

import (
	"context"
	"maps"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/migrations"
)

const (
	// unindexedSQL tells which tables lack index $1, the partitions or the one table, as what to do about it. An index that
	// an earlier run left unfinished is dropped, and the table itself has none until every partition has its own.
	unindexedSQL = `
SELECT CASE WHEN b.relname IS NULL THEN '' ELSE format('DROP INDEX CONCURRENTLY %I.%I', n.nspname, b.relname) END,
       format('CREATE INDEX CONCURRENTLY IF NOT EXISTS %I ON %I.%I ', w.name, n.nspname, c.relname),
       CASE WHEN p.relkind = 'p' THEN format('ALTER INDEX %I ATTACH PARTITION %I.%I', 'decision_logs_' || $1::text, n.nspname, w.name) ELSE '' END
  FROM pg_class p
  LEFT JOIN pg_inherits i ON i.inhparent = p.oid AND p.relkind = 'p'
  JOIN pg_class c ON c.oid = CASE p.relkind WHEN 'p' THEN i.inhrelid ELSE p.oid END AND c.relkind = 'r'
  JOIN pg_namespace n ON n.oid = c.relnamespace
  CROSS JOIN LATERAL (SELECT CASE p.relkind WHEN 'p' THEN left(c.relname, 50) || '_' || $1::text ELSE 'decision_logs_' || $1::text END AS name) w
  LEFT JOIN LATERAL (SELECT b.relname FROM pg_class b JOIN pg_index x ON x.indexrelid = b.oid
                      WHERE b.relnamespace = c.relnamespace AND b.relname = w.name AND NOT x.indisvalid) b ON true
 WHERE p.oid = 'decision_logs'::regclass AND p.relkind IN ('r', 'p')
   AND NOT EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid AND x.indisvalid
                      AND CASE p.relkind WHEN 'p' THEN EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = x.indexrelid AND h.inhparent = to_regclass('decision_logs_' || $1::text))
                                         ELSE x.indexrelid = to_regclass('decision_logs_' || $1::text) END)
 ORDER BY c.relname DESC`
	// fewSQL says whether there is so little that it is indexed while writers wait.
	fewSQL = `SELECT count(*) <= 10000 FROM (SELECT FROM decision_logs LIMIT 10001) AS few`
	// oldBrinSQL: the new one has what it had.
	oldBrinSQL = `DROP INDEX IF EXISTS decision_logs_ts_brin`
)

// index makes the indexes of searches, from where an earlier run was killed.
func (p *partitioner) index(ctx context.Context) error {
	if _, err := p.conn.Exec(ctx, OwnSchemaSQL); err != nil {
		return err
	}
	t, err := p.state(ctx, p.conn)
	if err != nil {
		return err
	}
	if t.kind != "r" && t.kind != "p" {
		p.log.Warn().Str("hint", "create the search indexes on the base table yourself; decision_logs is not a table").
			Msg("search index build skipped")
		return nil
	}
	var few bool
	if err := p.conn.QueryRow(ctx, fewSQL).Scan(&few); err != nil {
		return err
	}
	if few {
		return p.locked(ctx, "indexed", func(tx pgx.Tx) error {
			for _, x := range migrations.ReadIndexes {
				if _, err := tx.Exec(ctx, `CREATE INDEX IF NOT EXISTS decision_logs_`+x.Name+` ON decision_logs `+x.Of); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, oldBrinSQL)
			return err
		})
	}
	p.log.Info().Msg("search index build started")
	// As in [shortLocks]: an index that is made concurrently waits for as long as it takes. The other steps have their own limit.
	if _, err := p.conn.Exec(ctx, `SET lock_timeout = 0`); err != nil {
		return err
	}
	for _, x := range migrations.ReadIndexes {
		if t.kind == "p" {
			// From here on a new day has it, too.
			err := p.locked(ctx, "index "+x.Name, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `CREATE INDEX IF NOT EXISTS decision_logs_`+x.Name+` ON ONLY decision_logs `+x.Of)
				return err
			})
			if err != nil {
				return err
			}
		}
		if err := p.indexEach(ctx, x); err != nil {
			return err
		}
	}
	err = p.locked(ctx, "old index", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, oldBrinSQL)
		return err
	})
	if err == nil {
		_, err = IndexDays(ctx, p.conn, Summarized{})
	}
	return err
}

const (
	// daysOverSQL are the days, c, of schema n, that were over an hour ago and that this role may index.
	daysOverSQL = `
  FROM pg_class p JOIN pg_inherits i ON i.inhparent = p.oid JOIN pg_class c ON c.oid = i.inhrelid AND c.relkind = 'r' JOIN pg_namespace n ON n.oid = c.relnamespace`
	areOverSQL = `
 WHERE p.oid = to_regclass('decision_logs') AND p.relkind = 'p' AND NOT pg_is_in_recovery() AND pg_has_role(c.relowner, 'USAGE')
   AND to_regclass('decision_logs_times_brin') IS NOT NULL
   AND (regexp_match(pg_get_expr(c.relpartbound, c.oid), '\) TO \(''([^'']+)''\)$'))[1]::timestamptz < now() - interval '1 hour'`
	// overSQL are the days that are over and lack indexes $1, whose columns $2 names, from the newest on. It gives the unfinished index
	// of an earlier run, which is dropped, and the statement that makes it. Where another makes an index there is none to make.
	overSQL = `
SELECT CASE WHEN b.oid IS NULL THEN '' ELSE format('DROP INDEX CONCURRENTLY IF EXISTS %I.%I', n.nspname, w.name) END,
       format('CREATE INDEX CONCURRENTLY IF NOT EXISTS %I ON %I.%I ', w.name, n.nspname, c.relname) || w.of` + daysOverSQL + `
  CROSS JOIN LATERAL (SELECT left(c.relname, 50) || '_' || k.name AS name, k.of FROM unnest($1::text[], $2::text[]) AS k(name, of)) AS w
  LEFT JOIN pg_class b ON b.relnamespace = c.relnamespace AND b.relname = w.name` + areOverSQL + `
   AND NOT EXISTS (SELECT FROM pg_index x WHERE x.indexrelid = b.oid AND x.indisvalid)
   AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index g WHERE g.datname = current_database())
 ORDER BY c.relname DESC, w.name DESC`
	// summariesSQL are our BRIN of days that are over, and how long the tables are.
	summariesSQL = `
SELECT b.oid, pg_relation_size(c.oid)` + daysOverSQL + `
  JOIN pg_index x ON x.indrelid = c.oid AND x.indisvalid JOIN pg_class b ON b.oid = x.indexrelid` + areOverSQL + `
   AND (b.relname = left(c.relname, 50) || '_stored_brin'
        OR EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = b.oid AND h.inhparent = to_regclass('decision_logs_times_brin')))
 ORDER BY c.relname DESC`
	summarizeSQL = `SELECT brin_summarize_new_values($1::oid::regclass)`
)

// daily is what works on days that are over: a connection or a pool.
type daily interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Summarized is how long the table of each BRIN was when it was summarized to its end.
type Summarized map[uint32]int64

// summarize has the end of each day that is over summarized. No vacuum does that, as the last pages are no whole range, and what is
// not summarized every search reads. Rows that come late are added to what summarizes their pages; where they need pages of their own, the
// table is longer than known.
func (known Summarized) summarize(ctx context.Context, on daily) error {
	rows, err := on.Query(ctx, summariesSQL)
	if err != nil {
		return err
	}
	type summary struct {
		index uint32
		long  int64
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s summary, err error) {
		err = row.Scan(&s.index, &s.long)
		return s, err
	})
	if err != nil {
		return err
	}
	there := make(map[uint32]bool, len(all))
	for _, s := range all {
		there[s.index] = true
		if long, ok := known[s.index]; ok && long == s.long {
			continue
		}
		if _, err := on.Exec(ctx, summarizeSQL, s.index); err != nil {
			return err
		}
		known[s.index] = s.long
	}
	maps.DeleteFunc(known, func(index uint32, _ int64) bool { return !there[index] })
	return nil
}

// Unhurried has a session take as long for [IndexDays] as that takes, whatever limits the role has. One of a pooler keeps them.
func Unhurried(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, unhurriedSQL, conn.PgConn().PID())
	return err
}

// IndexDays makes the indexes of days that are over, and summarizes what is not in known as it is, while others read and write. It says how many
// indexes it made, and leaves the session as it was: that may be a pooler's.
func IndexDays(ctx context.Context, on daily, known Summarized) (made int64, err error) {
	if err := known.summarize(ctx, on); err != nil {
		return 0, err
	}
	names, of := make([]string, len(migrations.DayIndexes)), make([]string, len(migrations.DayIndexes))
	for i, x := range migrations.DayIndexes {
		names[i], of[i] = x.Name, x.Of
	}
	rows, err := on.Query(ctx, overSQL, names, of)
	if err != nil {
		return 0, err
	}
	lacking, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l [2]string, err error) {
		err = row.Scan(&l[0], &l[1])
		return l, err
	})
	if err != nil {
		return 0, err
	}
	for _, l := range lacking {
		for _, sql := range l {
			if sql == "" {
				continue
			}
			if _, err := on.Exec(ctx, sql); err != nil {
				return made, err
			}
		}
		made++
	}
	return made, nil
}

// indexEach makes one index on the tables that lack it.
func (p *partitioner) indexEach(ctx context.Context, x migrations.ReadIndex) error {
	rows, err := p.conn.Query(ctx, unindexedSQL, x.Name)
	if err != nil {
		return err
	}
	lacking, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l [3]string, err error) {
		err = row.Scan(&l[0], &l[1], &l[2])
		return l, err
	})
	if err != nil {
		return err
	}
	for _, l := range lacking {
		if l[0] != "" {
			if _, err := p.conn.Exec(ctx, l[0]); err != nil {
				return err
			}
		}
		if _, err := p.conn.Exec(ctx, l[1]+x.Of); err != nil {
			return err
		}
		if l[2] == "" {
			continue
		}
		err := p.locked(ctx, "index", func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, l[2])
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unindex takes them away again.
func (p *partitioner) unindex(ctx context.Context) error {
	if _, err := p.conn.Exec(ctx, OwnSchemaSQL); err != nil {
		return err
	}
	return p.locked(ctx, "not indexed", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DO $$
			DECLARE x regclass;
			BEGIN
				FOR x IN SELECT b.oid FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_index k ON k.indrelid = c.oid JOIN pg_class b ON b.oid = k.indexrelid
				          WHERE i.inhparent = 'decision_logs'::regclass AND b.relname = ANY (SELECT left(c.relname, 50) || '_' || of FROM unnest('{path_ts,host_ts,host_path_ts,verdict_ts,stored_brin}'::text[]) AS of) LOOP
					EXECUTE format('DROP INDEX %s', x);
				END LOOP;
			END $$;
			DROP INDEX IF EXISTS decision_logs_times_brin;
			CREATE INDEX IF NOT EXISTS decision_logs_ts_brin ON decision_logs USING brin (ts)`)
		return err
	})
}
