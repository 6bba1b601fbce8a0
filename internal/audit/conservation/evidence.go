package conservation

import "docket/internal/audit/verify"

// What is found outside, and where, is told in the words of the checker.
type (
	// Place is where a decision was first read.
	Place = verify.Place
	// Row is a row of the table.
	Row = verify.Row
	// Forwarded is a record that was found in a topic of ours or in the spool.
	Forwarded = verify.Forwarded
	// Evidence is what was found outside.
	Evidence = verify.Evidence
	// Finding is something that is not as it has to be.
	Finding = verify.Finding
)
