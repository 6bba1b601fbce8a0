// Package kafka has the only Kafka clients of the project: the [Source] that hands out one [Assignment] for each
// assigned partition, the [Publisher], and the requests of `check`.
//
// The package imports no Postgres, and knows no error classes and no homes besides [home.Settled]. Only a
// [home.Settled] can be committed, only by the assignment that it was settled in, and never after that assignment has
// ended.
//
// One goroutine polls and appends records to the queue of their partition, while the group cannot change
// (BlockRebalanceOnPoll). One goroutine for each partition takes from that queue. A full queue pauses only its
// partition.
//
// # Memory
//
// Fetched and uncommitted records take bounded memory, whatever the codec, the records and the number of partitions:
//   - The room (room.go) counts the memory of opened answers, the queues, and sets that records in hand keep alive. Its limit
//     is twice BufferBytes, or BufferBytes plus MaxDecompressBytes. At the limit the room is full: no compressed set is opened,
//     uncompressed records have to wait, and the client is polled rarely. Then partitions that hold drop their queues, which
//     are read again later (rewind.go).
//   - The hand (hand.go) counts fetched batches. They take BufferBytes, and beyond that half of a share for each
//     partition, and one record of any size. Such records wait for each other in the order in which they came. Records are
//     copied out of a set if they alone would keep it in memory.
//   - The queue of a partition is full, and the partition paused, at an equal share of BufferBytes or at BufferBatches batches.
//   - On the wire the client has MaxConcurrentFetches x FetchMaxBytes, or one set for each fetch. A set that takes more than
//     MaxDecompressBytes when opened stops its partition with a fault. File plain.go checks uncompressed sets. One
//     uncompressed answer of FetchMaxBytes may take up to 36 times its bytes before the room counts it.
//
// A paused partition loses the records that the client fetched ahead, at most one FetchMaxPartitionBytes for each
// pause, and fetches them again later. So a queue is resumed at half, and a fetch is small against it.
package kafka
