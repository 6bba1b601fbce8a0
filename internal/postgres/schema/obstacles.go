package schema

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
	"docket/migrations"
)

// ObstacleError says that the table was left as it is. It has something that would be lost, or mean something else, if the
// table became one of partitions. Its text names what, and what to do.
type ObstacleError struct {
	// Obstacles are in words of our own, with the names that things have in the catalog.
	Obstacles []string
}

func (e *ObstacleError) Error() string {
	return "decision_logs cannot become a table of partitions while it has " + strings.Join(e.Obstacles, "; ")
}

// OwnWords marks the text as safe to show.
func (*ObstacleError) OwnWords() {}

// HintFor is the text itself: it says what to do.
func (e *ObstacleError) HintFor(string) string { return e.Error() }

// obstacleWords say what to do about each kind of obstacle. The kinds are those of the query.
var obstacleWords = map[string]string{
	"trigger":          "a trigger: drop it, migrate, and create it on decision_logs again",
	"rule":             "a rule: drop it, as COPY passes it by in any case",
	"policy":           "a policy: drop it, migrate, and create it on decision_logs again",
	"security":         "row-level security: disable it, migrate, and enable it on decision_logs again",
	"foreign key":      "a foreign key: drop it, migrate, and add it to decision_logs again",
	"publication":      "a publication: take the table out of it, migrate, and add it again with publish_via_partition_root",
	"view":             "a view that reads it: drop it, migrate, and create it again",
	"function":         "a function that is bound to it: drop it, migrate, and create it again",
	"row type":         "a relation with a column of its row type: drop that column",
	"unique index":     "a unique index without ts: drop it, as a table of partitions cannot have it",
	"invalid index":    "an invalid index: drop it or REINDEX it",
	"exclusion":        "an exclusion constraint: drop it, as a table of partitions cannot have it",
	"check":            "a CHECK that is NOT VALID or NO INHERIT: validate or drop it",
	"identity column":  "an identity column: ALTER COLUMN ... DROP IDENTITY",
	"inheritance":      "relatives by inheritance: ALTER TABLE ... NO INHERIT",
	"replica identity": "a replica identity of its own: ALTER TABLE decision_logs REPLICA IDENTITY DEFAULT",
	"unlogged":         "no log, so that a crash empties it: ALTER TABLE decision_logs SET LOGGED",
	"type":             "a column ts that is not timestamptz NOT NULL: change it back",
	"label":            "a security label: take it off, migrate, and put it on decision_logs again",
	"taken":            "a neighbour of a name that a partition needs: rename it",
	"put aside":        "rows that a migration put aside, or a table that is called so: insert them into decision_logs and drop it, or rename it",
}

// obstacles gives an [*ObstacleError] where the table has any, in the transaction of q or outside of one.
func obstacles(ctx context.Context, q interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, table uint32) error {
	rows, err := q.Query(ctx, migrations.Obstacles, table)
	if err != nil {
		return err
	}
	var met []string
	var kind, called string
	_, err = pgx.ForEachRow(rows, []any{&kind, &called}, func() error {
		words, what, _ := strings.Cut(obstacleWords[kind], ":")
		met = append(met, words+" ("+db.Identifier(called)+"):"+what)
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(met) > 0:
		return &ObstacleError{Obstacles: met}
	}
	return nil
}
