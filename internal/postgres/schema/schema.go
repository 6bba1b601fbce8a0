package schema

import (
	"time"

	"docket/internal/postgres/db"
)

// Schema is the tables of Docket in a database: it migrates them, makes partitions, and examines them. It is safe for
// concurrent use.
type Schema struct {
	db             *db.DB
	makes, makeOne time.Duration // makeTimeout and makeStatementTimeout, but in tests
}

// New gives the schema of a database.
func New(db *db.DB) *Schema {
	return &Schema{db: db, makes: makeTimeout, makeOne: makeStatementTimeout}
}
