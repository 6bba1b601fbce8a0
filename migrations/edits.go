package migrations

import _ "embed"

// EditedColumn adds the column edited_audit_id. It has no default, so no row is changed, and it is fast at any size.
const EditedColumn = `
ALTER TABLE decision_logs ADD COLUMN IF NOT EXISTS edited_audit_id bigint;
COMMENT ON COLUMN decision_logs.edited_audit_id IS 'the line of dead_letter_audit of the edit that produced this row; NULL where it is what OPA sent'`

// NoEditedColumn drops the column.
const NoEditedColumn = `ALTER TABLE decision_logs DROP COLUMN IF EXISTS edited_audit_id`

// The ledger's part of that step. All of it runs with the table's schema as search_path.
var (
	// Edits makes the ledger's proof of edits.
	//go:embed edits.sql
	Edits string
	// NoEdits removes it.
	//go:embed edits_back.sql
	NoEdits string
)
