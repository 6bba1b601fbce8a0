// Package lookup looks for a decision by its id in every home: the rows, the ledger of dead letters, the records of Kafka that are not
// read, parked or dead-lettered, the spools of this host and the archives. `docket logs`, `docket why`, where-is and the desk's API ask
// it, so they give one answer.
//
// It only reads: it joins no group and commits nothing. An [Answer] names each place that was looked at, and each that was not looked at
// completely with the reason. It holds no payload.
package lookup
