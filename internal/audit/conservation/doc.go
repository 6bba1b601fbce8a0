// Package conservation makes decision logs with known results, and checks the results from outside.
//
// Type [Generator] makes Kafka records of every shape, good and bad. Type [Produced] remembers where each was
// written. Function [Gather] reads the table, the topics and the spool. Function [Reconcile] matches produced and
// found decisions by the place where each was first read. So a loss and a double cannot cancel out.
//
// It imports no pipeline, no metrics and no testing, and does not rely on what Docket says about itself.
package conservation
