// Package api is the operators' API over HTTP. It has the operations of the command line as JSON, for callers with a
// token or a client certificate. Its OpenAPI document is made from the types.
//
// It imports no SQL and no Kafka client, and sees the ledger through interfaces. Every request needs a name and a
// role, and that name is the operator of every change.
package api
