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
// What is fetched and not yet taken is bounded by the sum of
//   - BufferBytes over all assigned partitions, an equal share for each (or BufferBatches batches of it, whichever is
//     reached first), and for each partition what one poll brings on top, at most FetchMaxPartitionBytes on the wire
//     and what that inflates to. A queue keeps what it has when its share becomes smaller: n partitions that were added
//     at once hold up to twice BufferBytes with those before, one by one while nothing is taken up to 1+ln(n) times;
//   - in the client: MaxConcurrentFetches x FetchMaxBytes on the wire and what that inflates to; no compressed set of
//     records may inflate beyond MaxDecompressBytes, or its partition stands still with a fault.
//
// A partition that is paused loses what the client had fetched for it ahead and fetches it again later, at most one
// FetchMaxPartitionBytes for each pause. That is why a queue is resumed at half and a fetch is small against it.
package kafka
