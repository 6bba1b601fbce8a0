package postgres

// LedgerError says that it was the ledger which could not be read or written, and not decision_logs.
type LedgerError struct{ Err error }

func (e *LedgerError) Error() string { return e.Err.Error() }

func (e *LedgerError) Unwrap() error { return e.Err }

// HintFor says what an operator can do about an error of this code, where that differs from [db.Hint].
func (*LedgerError) HintFor(code string) string { return ledgerHints[code] }

// GrantsHint is the hint for a role that lacks a right on the ledger's tables.
func GrantsHint() string { return ledgerHints["42501"] }

// ledgerHints are those that differ where it is the ledger that is asked.
var ledgerHints = map[string]string{
	"42501": "the role lacks a right on the ledger's tables: have their owner run docs/desk-grants.sql once, then GRANT docket_desk to this role (docket_desk_reader for reading only, docket_desk_admin to propose and approve edits, docket_desk_api for the login of the desk)",
	"42P01": noLedger, "42703": noLedger, "42704": noLedger, "42883": noLedger,
}

const noLedger = "the ledger's tables are missing: run `docket migrate` with a role that may change the schema, or check search_path"
