// Package api is the operator's desk over HTTP: the verbs of the command line as JSON, for those who bring a token or a
// client certificate, with an OpenAPI document that is made from the types.
//
// It stays free of SQL, of Kafka's clients and of how the ledger is kept: it sees all of them through ports. Nothing is
// answered without a name and a role, and that name is the operator of whatever is asked for.
package api
