// Package worker keeps the ledger of dead letters. It enters records of the dead-letter topics, puts retried ones
// back, and tracks how retries end. It carries out jobs and the schedule, and reports conditions that need a person.
//
// It imports no SQL and no Kafka client, and shows nothing. The ledger, the brokers and the table are interfaces.
package worker
