// Package failpoint makes a running program end, stop, wait or fail at a chosen point of a record's life. So tests can
// show the state that is left behind there.
//
// DOCKET_FAILPOINT=point@n=action arms points, several of them with commas between. n is the number of the visit to the
// point in this process, from 1. The number 3+ is the third visit and all after it. The
// action is kill (SIGKILL to itself), stop
// (SIGSTOP), sleep:5s, or error (the operation fails as on a broken connection or disk). The action is reported first, on
// one line of standard error: {"failpoint":"commit-sent","n":1,"action":"kill"}.
//
// The points are around the edges, in wrappers of the parts that internal/service/app joins: the assignment, the ports of
// the pipeline, the spool's file system, and the bytes on the way to Postgres and Kafka. The heart knows nothing of them.
// [Table] lists them. The numbers are those of the kill points in the catalogue of faults:
//
//	K   point                     where
//	 1  polled                    Assignment.Fetch, in the replayer Take, returned records
//	 2  parsed                    Store is called with a batch for the first time
//	 3  tx-begun                  BEGIN went out to Postgres, the rest of the same write did not
//	 4  rows-sent                 the INSERT went out
//	 5  commit-sent               COMMIT went out
//	 6  commit-acked, stored      the answer to COMMIT was read from the wire; Store returned
//	 7  first-pause               30 ms after the first write of a batch failed, nothing else was called
//	 8  second-pause              the same after the second
//	 9  classified                Probe is called for a batch for the first time
//	10  probe-open                the probe's INSERT was answered, before SET CONSTRAINTS goes out
//	11  half-stored               Store returned with fewer rows than a write of the same batch that failed
//	12  dlq-sent, parking-sent    a produce request for that topic went out
//	13  dlq-acked, parking-acked  its answer was read from the wire, without an error code
//	14  parking-partly-acked      half of what Publish was called with is acknowledged, the rest not sent
//	15  spool-tmp-created         Create of the data file's temporary name returned
//	16  spool-tmp-half-written    half of the bytes of Write are written
//	17  spool-tmp-synced          Sync of the data file returned
//	18  spool-renamed             Rename of the data file returned
//	19  spool-dir-synced          SyncDir after that returned
//	20  spool-meta-written        Sync of the meta returned, under its temporary name
//	    spool-meta-renamed        Rename of the meta returned; the protocol has both before the data's Rename
//	21  offset-commit-sent        an OffsetCommit request went out
//	22  offset-commit-acked       its answer was read from the wire, without an error code
//	23  revoking, losing          Assignment.Leaving ended while the program continues
//	24  draining                  Assignment.Leaving ended because the program stops
//	25  spool-file-published      Remove of a data file is called, after a recovery published from it
//	26  spool-file-unlinked       that Remove returned
//	27  replay-stored             in the replayer, Store returned
//	28  re-parked-sent, re-parked in the replayer, a produce request for the parking topic went out; was answered
//	29  parking-dlq-sent, parking-dlq-acked  the same for the parking dead-letter topic
//	 -  settled, holding          Commit, Hold of the assignment is called
//
// 30 and 31 of the catalogue belong to an outbox, which Docket does not have.
//
// Only a build with the tag failpoints has any of this: nothing else imports the package. It stays free of deciding
// anything about a record.
package failpoint
