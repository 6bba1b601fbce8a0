package conservation

import "docket/internal/audit/verify"

// The checker's types for what was found.
type (
	// Place is the place where a decision was first read.
	Place = verify.Place
	// Row is a row of the table.
	Row = verify.Row
	// Forwarded is a record that was found in one of Docket's topics or in the spool.
	Forwarded = verify.Forwarded
	// Evidence is everything that was found.
	Evidence = verify.Evidence
	// Finding is one violation.
	Finding = verify.Finding
)
