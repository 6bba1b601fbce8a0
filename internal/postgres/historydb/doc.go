// Package historydb reads the stored decisions. [Reader] answers questions about the table decision_logs and counts it.
// [Archives] takes days out of the table and puts them back, and [LetterArchives] does so with closed dead letters. It
// implements the ports of packages reader and archive, and stays free of Kafka and of the writing of batches.
package historydb
