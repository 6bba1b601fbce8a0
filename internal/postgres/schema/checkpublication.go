package schema

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
)

// unidentifiedSQL are Docket's tables that Postgres refuses to update (55000): a publication has them with their updates or deletes,
// and they have neither a primary key nor another replica identity.
const unidentifiedSQL = `
SELECT coalesce(array_agg(DISTINCT c.relname::text), '{}')
  FROM pg_publication_tables p
  JOIN pg_publication b ON b.pubname = p.pubname AND (b.pubupdate OR b.pubdelete)
  JOIN pg_namespace n ON n.nspname = p.schemaname
  JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
 WHERE n.oid = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('decision_logs'))
   AND c.relname ~ '^(decision_(logs|counts|states|flips)|dead_letter|desk_(sessions|views))'
   AND (c.relreplident = 'n' OR c.relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid AND x.indisprimary))`

// checkPublications looks for tables that a publication keeps Docket from changing. It returns nil where there are none.
func checkPublications(ctx context.Context, conn *pgx.Conn) (*Check, error) {
	var tables []string
	if err := conn.QueryRow(ctx, unidentifiedSQL).Scan(&tables); err != nil || len(tables) == 0 {
		return nil, err
	}
	for i := range tables {
		tables[i] = db.Identifier(tables[i])
	}
	return &Check{
		Name: "publication", Level: Warn, Detail: "a publication has tables without a primary key, so Postgres refuses to change them: " + strings.Join(tables, ", "),
		Hint: "the desk does not count, follows no states and archives nothing: ALTER TABLE ... REPLICA IDENTITY FULL for each, or take them out of the publication",
	}, nil
}
