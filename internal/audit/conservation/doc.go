// Package conservation makes decision logs of which it is known what has to become of each, and finds out from the
// outside what did become of them.
//
// A [Generator] makes Kafka records of every shape, good and bad; a [Produced] remembers where each of them was
// written; [Gather] reads the table, the topics and the spool; [Reconcile] has the checker match the two decision by
// decision, by the place where each was first read, so that a loss and a double cannot cancel out, and makes the account.
//
// It stays free of the pipeline, of its metrics and of testing: what it says does not rest on what Docket says of
// itself.
package conservation
