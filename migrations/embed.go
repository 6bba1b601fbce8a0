// Package migrations holds the numbered steps that bring a database's schema up to date, in the format of goose, and the
// SQL of the step that takes more than one transaction. It stays free of the logic that runs them.
package migrations

import "embed"

// FS has the migrations at its root.
//
//go:embed 0*.sql
var FS embed.FS

// Partitions is the version of the step that makes the table one of partitions by day.
const Partitions = 2

// Indexes is the version of the step that makes what searches go by, while the table is written to.
const Indexes = 5

// Hash is the version of the step that gives the table the column raw_sha256.
const Hash = 6

// Unfaithful is the version of the step that gives the table the columns raw_bytes and unfaithful.
const Unfaithful = 7

// Uploader is the version of the step that gives the table the column uploaded_by.
const Uploader = 10

// Edited is the version of the step that gives the table the column edited_audit_id, and the ledger what vouches for it.
const Edited = 12

// The SQL of that step. All of it runs with the table's schema as search_path.
var (
	// Function makes the function decision_logs_make_partitions.
	//
	//go:embed partitions_function.sql
	Function string
	// Obstacles asks what the table, $1 as oid, has that would be lost on the way: kind and name.
	//
	//go:embed partitions_obstacles.sql
	Obstacles string
	// Swap makes the locked table, or what of it is before the setting docket.cut, a partition of a new one.
	//
	//go:embed partitions_swap.sql
	Swap string
	// Back makes one table of the locked one and its partitions.
	//
	//go:embed partitions_back.sql
	Back string
)
