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
// What is fetched and not committed is bounded by the sum of
//   - BufferBytes over the queues of all assigned partitions, an equal share for each (or BufferBatches batches of it,
//     whichever is reached first), and one set beyond that. A compressed set is opened only while the queues and what the
//     client holds leave room for it, or the client holds nothing: see room.go. A set that was refused is fetched again.
//   - MaxDecompressBytes for one compressed set, inflated and with its records and headers, which are counted before the
//     client makes them. Beyond it the partition stands still with a fault.
//   - In the client: MaxConcurrentFetches x FetchMaxBytes on the wire, or a set each, and for sets that are not compressed
//     at most 26 times that: a record of 7 bytes takes some 180.
//   - Batches in hand: while any partition holds none is larger than a share, nor keeps the sets that it came in. Only a
//     single record may be larger, and waits while BufferBytes are in hand.
//
// A partition that begins to hold drops its queue and is read again from there afterwards, see rewind.go. A partition that
// is paused loses what the client had fetched for it ahead and fetches it again later, at most one FetchMaxPartitionBytes
// for each pause. That is why a queue is resumed at half and a fetch is small against it.
package kafka
