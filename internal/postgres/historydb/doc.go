// Package historydb reads stored decisions. [Reader] answers questions about the table decision_logs and counts its rows.
//
// [Archives] takes days out of the table and puts them back. [LetterArchives] does so with closed dead letters.
//
// The package implements the ports of packages reader and archive. It stays free of Kafka and of the writing of batches.
package historydb
