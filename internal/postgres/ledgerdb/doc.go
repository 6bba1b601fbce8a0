// Package ledgerdb is the ledger of dead letters in Postgres: it implements the ports of package ledger. It stays free of
// Kafka and of decision_logs. Which state a letter gets is decided in package ledger; this package reads what the decision
// needs, locks it, and writes the decision.
//
// All locks are taken in one order: groups, letters, outbox, growth. New rows come last. Each statement that others may
// run at the same time names its rows in the order of their keys.
package ledgerdb
