// Package kafka holds the only Kafka clients of the project: the [Source] that hands out one [Assignment] for each
// partition that is ours, the [Publisher], and what `check` asks a cluster.
//
// It stays free of Postgres, of classes of errors and of what becomes of a record. Only a [home.Settled] can be
// committed, only by the assignment that it was settled in, and never after that assignment has ended.
//
// How a record travels: one goroutine polls and appends to the queue of the record's partition, while the group cannot
// change (BlockRebalanceOnPoll); one goroutine per partition takes from that queue. A queue that is full pauses its
// partition alone.
//
// # Memory
//
// What is fetched and not committed is bounded, whatever the codec, the records and the number of partitions:
//   - The room (room.go): what the client made of answers, the queues, and what records in hand keep in memory beside themselves
//     take twice BufferBytes together, or BufferBytes and MaxDecompressBytes. When they would take more, the room is crammed:
//     no compressed set is opened, records without compression are waited with, and the client is polled rarely. Then
//     partitions that hold drop their queues, which are read again later (rewind.go).
//   - The hand (hand.go): batches that were fetched take BufferBytes, and beyond that half of a share for each partition. Records are copied
//     out of sets that would stay in memory for their sake.
//   - The queue of a partition is full, and the partition paused, at an equal share of BufferBytes or at BufferBatches batches.
//   - On the wire the client has MaxConcurrentFetches x FetchMaxBytes, or a set each. No set may take more than MaxDecompressBytes
//     once it is open, or its partition stands still with a fault; plain.go looks at those without compression. One answer of FetchMaxBytes
//     without compression may take up to 36 times its bytes before the room sees it.
//
// A partition that is paused loses what the client had fetched for it ahead and fetches it again later, at most one
// FetchMaxPartitionBytes for each pause. That is why a queue is resumed at half and a fetch is small against it.
package kafka
