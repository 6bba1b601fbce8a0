package ledgerdb

import (
	"docket/internal/errclass"
	"docket/internal/postgres/db"
)

// Error says that it was the ledger which could not be read or written, and not decision_logs.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// HintFor says what an operator can do about an error of this code, where that differs from [db.Hint].
func (*Error) HintFor(code string) string { return hints[code] }

// GrantsHint is the hint for a role that lacks a right on the ledger's tables.
func GrantsHint() string { return hints["42501"] }

// hints are those that differ where it is the ledger that is asked.
var hints = map[string]string{
	"42501": "the role lacks a right on the ledger's tables: have their owner run docs/desk-grants.sql once, then GRANT docket_desk to this role (docket_desk_reader for reading only, docket_desk_admin to propose and approve edits, docket_desk_api for the login of the desk)",
	"42P01": noLedger, "42703": noLedger, "42704": noLedger, "42883": noLedger,

	errclass.CodeConfig: "check DOCKET_DATABASE_URL, and triggers of yours on dead_letters, dead_letter_audit and other tables of the ledger",
}

const noLedger = "the ledger's tables are missing: run `docket migrate` with a role that may change the schema, or check search_path"

// swallowed is the error of what the database neither did nor refused.
func swallowed(problem string) error {
	return errclass.As(&db.AnswerError{Problem: problem}, errclass.CodeConfig)
}
