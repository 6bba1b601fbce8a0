// Package migrations has the numbered steps that bring a database's schema up to date, in the format of goose. It
// also has the SQL of the step that takes more than one transaction. It does not run them.
package migrations

import "embed"

// FS has the migrations at its root.
//
//go:embed 0*.sql
var FS embed.FS

// Partitions is the version of the step that partitions the table by day.
const Partitions = 2

// Indexes is the version of the step that makes the indexes for searches, while the table is written to.
const Indexes = 5

// Hash is the version of the step that gives the table the column raw_sha256.
const Hash = 6

// Unfaithful is the version of the step that gives the table the columns raw_bytes and unfaithful.
const Unfaithful = 7

// Uploader is the version of the step that gives the table the column uploaded_by.
const Uploader = 10

// Edited is the version of the step that adds the column edited_audit_id, and the ledger's proof of edits.
const Edited = 12

// FunctionAgain is the version of the step that makes [Function] again, where there is one.
const FunctionAgain = 35

// The SQL of that step. All of it runs with the table's schema as search_path.
var (
	// Function makes the function decision_logs_make_partitions.
	//
	//go:embed partitions_function.sql
	Function string
	// Obstacles lists what would be lost of the table, $1 as oid: kind and name.
	//go:embed partitions_obstacles.sql
	Obstacles string
	// Swap makes the locked table a partition of a new one, or its part before the setting docket.cut.
	//go:embed partitions_swap.sql
	Swap string
	// Back makes one table of the locked one and its partitions.
	//go:embed partitions_back.sql
	Back string
)
