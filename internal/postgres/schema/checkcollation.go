package schema

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
)

const (
	// oldOrderSQL are the indexes of Docket's tables that have the order of another version of a collation than the server has now.
	// An index of a table of partitions counts once, and a hash index has no order.
	oldOrderSQL = `
SELECT coalesce(array_agg(DISTINCT coalesce(r.relname, i.relname)::text), '{}')
  FROM pg_class t
  JOIN pg_index x ON x.indrelid = t.oid
  JOIN pg_class i ON i.oid = x.indexrelid AND i.relkind = 'i'
  JOIN pg_am m ON m.oid = i.relam AND m.amname <> 'hash'
  LEFT JOIN pg_class r ON r.oid = pg_partition_root(i.oid)
 WHERE (t.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('decision_logs'))
        OR t.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('decision_logs'))
           AND t.relname ~ '^(decision_(logs|counts|states|flips)|dead_letter|desk_(sessions|views))')
   AND EXISTS (SELECT FROM pg_collation c WHERE c.oid = ANY (x.indcollation::oid[]) AND `

	// A server before 15 does not note the version of the database's own collation.
	oldOrderBefore15SQL = oldOrderSQL + `c.collversion <> pg_collation_actual_version(c.oid))`
	oldOrderSince15SQL  = oldOrderSQL + `CASE c.collprovider
       WHEN 'd' THEN (SELECT b.datcollversion <> pg_database_collation_actual_version(b.oid) FROM pg_database b WHERE b.datname = current_database())
       ELSE c.collversion <> pg_collation_actual_version(c.oid) END)`

	// notesOrder is the first server that does.
	notesOrder = 150000
	// mostNamed is how many indexes a check names.
	mostNamed = 20
)

// checkCollation looks for indexes that an update of the server's libraries may have broken. Where text sorts in another order than
// an index has, a search in it misses rows that are there. Then a decision is stored twice, or is not found by its id.
func checkCollation(ctx context.Context, conn *pgx.Conn) (Check, error) {
	const name = "collation"
	old, err := oldOrders(ctx, conn)
	if err != nil {
		return Check{}, err
	}
	if len(old) == 0 {
		return Check{Name: name, Detail: "all indexes have the order of text that the server has"}, nil
	}
	for i := range old {
		old[i] = db.Identifier(old[i])
	}
	detail := fmt.Sprintf("%d indexes have the order of another version of a collation: %s", len(old), strings.Join(old[:min(len(old), mostNamed)], ", "))
	if len(old) > mostNamed {
		detail += ", ..."
	}
	return Check{
		Name: name, Level: Warn, Detail: detail,
		Hint: "a decision can be stored twice or not be found by its id: REINDEX DATABASE CONCURRENTLY, then ALTER DATABASE ... REFRESH COLLATION VERSION (docs/upgrade.md)",
	}, nil
}

func oldOrders(ctx context.Context, conn *pgx.Conn) (indexes []string, err error) {
	var number int
	if err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&number); err != nil {
		return nil, err
	}
	if number < notesOrder {
		err = conn.QueryRow(ctx, oldOrderBefore15SQL).Scan(&indexes)
	} else {
		err = conn.QueryRow(ctx, oldOrderSince15SQL).Scan(&indexes)
	}
	return indexes, err
}
