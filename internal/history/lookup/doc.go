// Package lookup looks for a decision by its id in every home. These are the rows, the ledger, unread, parked and
// dead-letter records in Kafka, the spools of this host, and the archives. `docket logs`, `docket why`, where-is and
// the desk's API use it, so they give the same answer.
//
// It only reads: it joins no group and commits nothing. An [Answer] names each place that was searched, and each that
// was not searched completely, with the reason. It has no payload.
package lookup
