package schema

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
)

// partitionsSQL counts the days from today that have a partition of their own, up to the first that has none. It says what
// else can be wrong with partitions. It reads no more than a few pages of the default partition.
const partitionsSQL = `
SELECT c.relkind = 'p', EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND conname = 'decision_logs_before_cut'),
       coalesce(t.partdefid, 0) <> 0, to_regprocedure('decision_logs_make_partitions(int)') IS NOT NULL,
       (SELECT count(*) FROM pg_inherits JOIN pg_class p ON p.oid = inhrelid WHERE inhparent = c.oid AND p.relpersistence <> 'p'),
       coalesce((SELECT min(n) FROM generate_series(0, 366) AS n
          WHERE NOT EXISTS (
              SELECT FROM pg_inherits JOIN pg_class p ON p.oid = inhrelid,
                     regexp_match(pg_get_expr(p.relpartbound, p.oid), '^FOR VALUES FROM \(([^,]*)\) TO \(([^,]*)\)$') AS bound
               WHERE inhparent = c.oid
                 AND (bound[1] = 'MINVALUE' OR trim(BOTH '''' FROM bound[1])::timestamptz <= (now() AT TIME ZONE 'UTC')::date + n)
                 AND (bound[2] = 'MAXVALUE' OR trim(BOTH '''' FROM bound[2])::timestamptz > (now() AT TIME ZONE 'UTC')::date + n))), 367),
       (SELECT count(*) FROM pg_class l WHERE l.relnamespace = c.relnamespace AND l.relkind = 'r' AND NOT l.relispartition AND l.relname ~ '^decision_logs_leaving_\d{8}$')
  FROM pg_class c LEFT JOIN pg_partitioned_table t ON t.partrelid = c.oid
 WHERE c.oid = to_regclass('decision_logs')`

// checkPartitions looks whether what is stored has a place of its own, by day, for some days to come.
func checkPartitions(ctx context.Context, conn *pgx.Conn) (Check, error) {
	const name = "partitions"
	var partitioned, begun, fallback, function bool
	var unlogged, ready, leaving int
	if _, err := conn.Exec(ctx, `BEGIN READ ONLY; SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO, YMD'`); err != nil {
		return Check{}, err
	}
	defer func() { _, _ = conn.Exec(ctx, db.RollbackSQL) }() // an error shows at the next statement
	err := conn.QueryRow(ctx, partitionsSQL).Scan(&partitioned, &begun, &fallback, &function, &unlogged, &ready, &leaving)
	switch {
	case err != nil:
		return Check{}, err
	case begun:
		return Check{Name: name, Level: Warn, Detail: "a migration to partitions is under way or was left off", Hint: "run `consumer migrate`; until it is done, decisions more than one day ahead are parked"}, nil
	case leaving > 0 && unlogged == 0:
		return Check{Name: name, Level: Warn, Detail: days(leaving, "is", "are") + " out of the table and not dropped: an archive is under way or was left off",
			Hint: "`docket restore` refuses them: `docket archive list` names them, `docket archive --day DAY` finishes one"}, nil
	case !partitioned:
		return Check{Name: name, Level: Warn, Detail: "the table has no partitions", Hint: "it gets slower as it grows, and retention needs DELETE: run `consumer migrate`, unless version 2 was noted as applied to keep the table as it is"}, nil
	case unlogged > 0:
		return Check{Name: name, Level: Fail, Detail: fmt.Sprintf("%d partitions are unlogged: a crash empties them", unlogged), Hint: "ALTER TABLE ... SET LOGGED for each"}, nil
	case !function:
		return Check{Name: name, Detail: days(min(ready, 366), "has", "have") + " a partition from today on, which Docket does not make"}, nil
	case !fallback:
		return Check{Name: name, Level: Warn, Detail: "there is no default partition", Hint: "a decision without a partition for its time holds everything: CREATE TABLE decision_logs_default PARTITION OF decision_logs DEFAULT"}, nil
	case ready < 2:
		return Check{Name: name, Level: Warn, Detail: "tomorrow has no partition", Hint: "see DOCKET_PARTITIONS_AHEAD and the consumer's log, or SELECT decision_logs_make_partitions(7)"}, nil
	}
	strays, err := countStrays(ctx, conn)
	switch {
	case err != nil:
		return Check{}, err
	case strays != "":
		return Check{Name: name, Level: Warn, Detail: "the default partition has " + strays,
			Hint: "check the clocks of the senders; rows move out when their day gets its partition"}, nil
	}
	return Check{Name: name, Detail: fmt.Sprintf("ready for %d days from today", ready)}, nil
}

// countStrays says how many rows the default partition has, in words, up to a thousand; empty where there are none.
// Asked through the whole table it would read all of that; a role that may not read the part is told its size.
func countStrays(ctx context.Context, conn *pgx.Conn) (string, error) {
	var table string
	var readable bool
	var size int64
	err := conn.QueryRow(ctx, `SELECT partdefid::regclass::text, has_table_privilege(partdefid, 'SELECT'), pg_relation_size(partdefid)
		FROM pg_partitioned_table WHERE partrelid = to_regclass('decision_logs')`).Scan(&table, &readable, &size)
	switch {
	case err != nil || size == 0:
		return "", err
	case !readable:
		return fmt.Sprintf("%d kB of rows, or had them,", size>>10), nil
	}
	const most = 1000
	var n int
	err = conn.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM `+table+` LIMIT $1) AS few`, most).Scan(&n) // regclass quotes its names
	switch {
	case err != nil || n == 0:
		return "", err
	case n == most:
		return fmt.Sprintf("%d rows or more", most), nil
	}
	return fmt.Sprintf("%d rows", n), nil
}

// days is a number of days with its verb.
func days(n int, one, several string) string {
	if n == 1 {
		return "1 day " + one
	}
	return fmt.Sprintf("%d days %s", n, several)
}
