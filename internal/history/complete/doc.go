// Package complete says how complete an answer about stored decisions is: until when, and what still waits.
//
// It imports no client: Kafka and the ledger are ports. A [Watch] looks at Kafka beside the requests. A request takes
// the last [Status], so it never waits for Kafka.
//
// # Complete until
//
// Each look notes its time first, and then the end of every partition of every lane: a sample. The end is the high
// watermark, so it counts records of open transactions. Then the look reads the offsets that the consumers committed.
// A sample is covered if every partition is committed up to its end. An offset is committed only after its record
// has a home. So all that had reached Kafka before the time of a covered sample has a home. "Complete until" is the
// time of the newest covered sample, less a margin for the clocks of the brokers. Timestamps of records play no part,
// because a producer writes them.
//
// A record has reached Kafka once its partition's high watermark is above it. That is when a producer that waits for
// all replicas gets its answer. A record of a transaction has reached Kafka with the commit of the transaction.
//
// Homes are read in the order in which records move: source, parking topic, dead-letter topics, ledger, rows. A topic
// that is left for the next one has its committed offset read before its end. So a moving record is counted twice
// rather than never. The rows come last: see [Answers.Begin].
//
// These cases are decided as follows:
//
//   - A partition that is added: older samples need it to be committed up to the end at which it was first seen.
//
//   - A partition without a committed offset, also of a group that does not exist: it waits from its start. If its
//     topic holds no record of it, nothing waits. A batch that a consumer holds for longer than the retention of its
//     topic, before its first commit, is not seen.
//
//   - Retention and compaction: a deleted record that was not committed keeps its sample uncovered, as a consumer may
//     have read it. Deleted records are not part of what waits.
//
//   - A log that was cut or created again (an unclean election, a deleted topic): its end goes back, or is below what
//     was committed. The committed offset is not believed until it changes to one within the new log. A log that is
//     cut and grows beyond its old end between two looks is not seen.
//
//   - Offsets that an operator moves back: the samples wait until they are committed again. Offsets that he moves
//     forward hide the records between: nobody stores these. Offsets that are then moved back break the promise.
//
//   - A lane that the settings do not name is not watched. All programs need the same DOCKET_LANES.
//
//   - Parked records are counted from the topic. They stay counted until the replayer commits them.
//
//   - Dead letters are counted from the ledger until they are resolved, so also while a retry is on its way. One that
//     is closed while its retry is on its way is counted until the retry has ended. If the ledger lacks some of the
//     topic, the count is unknown. Kafka can have a retry that was given up or withdrawn, as its answer was lost. Such
//     a one is not seen once its letter is closed.
//
//   - A dead letter that is closed is not counted, as nothing is to be stored of it. If it is reopened and retried later,
//     answers from before the reopening did not count it.
//
//   - Spools are files of other hosts. Consumers and replayers note beside their offsets whether theirs may have records:
//     see package commitnote. If none has, none of what is committed is in a spool. Otherwise the count is unknown.
//     A record that a program spools for a partition that it loses before the commit is not seen. Another program
//     gives it a home as well. A file that somebody puts into a spool by hand is not seen either.
//
//   - A clock that jumps between two looks: older samples are dropped. If it is set back, "complete until" moves back by as
//     much, as the clock may have been ahead.
//
//   - A standby of Postgres may lack rows that have their home: then it is not known until when the answer is
//     complete. A primary that was replaced and still answers is not recognized.
//
//   - A day that is being archived is read as well. If its table may not be read, the answer names the day, and
//     "complete until" is not known.
//
//   - States and flips have what was stored before their mark. A record can be stored behind the mark long after it
//     reached Kafka, as a parked or a retried one. So "complete until" is not known of them: see [Begun.EndStates].
//
//   - Shards: each is watched by its own groups. A partition of no shard counts as waiting for each: see [Joined].
//
//   - Counts ([reader.Store.Stats]): a decision that is delivered again after its day was dropped is counted again.
//
//   - HOLDING: a group with waiting records has no members, or one of its partitions made no progress for 30 s. One look,
//     as of a command, cannot see the second. If a consumer that is there holds, a command says CATCHING_UP.
//
// The truth of an earlier status does not end. So if Kafka is away, "complete until" stays, and the rest is unknown.
package complete
