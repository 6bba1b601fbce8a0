// Package ledgermodel is the ledger of dead letters in memory, as internal/postgres keeps it in tables: for tests that kill who
// works on it. Each call is one step that nothing interrupts. That it does what the tables do is for internal/postgres to show,
// which plays the same calls on both.
//
// It has what the workers of the desk call, what people decide, and what a checker reads. It has no lists, no groups, no limits of
// bytes, and does not refuse a job that makes no sense.
package ledgermodel
