// Package ledgermodel is the ledger of dead letters in memory, for tests that kill its workers. Each call is one step
// that nothing interrupts. A test of internal/postgres plays the same calls on the model and on the tables.
//
// It has the calls of the desk's workers, of people, and of a checker. It has no lists, no groups and no limits of
// bytes, and does not refuse invalid jobs.
package ledgermodel
