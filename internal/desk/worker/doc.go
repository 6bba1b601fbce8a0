// Package worker is what works on the ledger of dead letters: it enters what is read from the dead-letter topics, puts back what
// is to be retried, learns how that ended, carries out jobs and the schedule, and tells of what needs a person.
//
// It stays free of SQL, of Kafka's clients and of how anything is shown: it sees the ledger, the brokers and the table
// through ports.
package worker
