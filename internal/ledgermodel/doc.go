// Package ledgermodel is the ledger of dead letters in memory, as internal/postgres keeps it in tables: for tests that kill who
// works on it. Each call is one step that nothing interrupts. That it does what the tables do is for internal/postgres to show,
// which plays the same calls on both.
//
// It has what intake, relay, watcher, upkeep and schedule call, and what a checker reads. It has no edits, no jobs, no lists, no
// groups and no limits of bytes.
package ledgermodel
