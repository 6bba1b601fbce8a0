package schema

import (
	"docket/internal/postgres/db"
)

// Schema is the tables of Docket in a database: it migrates them, makes partitions, and examines them. It is safe for
// concurrent use.
type Schema struct{ db *db.DB }

// New gives the schema of a database.
func New(db *db.DB) *Schema { return &Schema{db: db} }
