// Package tree is the command tree of docket: tree.go lists all commands in the order in which the help shows them.
//
// It stays free of Postgres and of Kafka. Main gets the terminal, the clock, the editor and the opened system from its caller. It
// has no global state: each call of [Main] makes the commands again.
package tree
