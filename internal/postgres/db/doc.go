// Package db is the connection to Postgres that the packages beside it share: the pool, how to connect, TLS, commits that a
// standby confirms, and errors that are safe to show. It stays free of tables.
//
// # Connections
//
// Statements are unnamed and leave no state on the connection. So a transaction pooler between Docket and the server is
// fine, and a changed table never meets a cached plan.
//
// [DB.Beside] keeps a few connections outside the pool for a few seconds. A refused row is asked about a second time on one
// of them: dialling costs the server more than asking about a hundred rows.
//
// # Errors
//
// Every error that leaves the packages below internal/postgres is safe to log. It is text of our own, with SQLSTATE and the
// names of constraint, table and column. It never holds the server's words, a value or the connection string. A caller
// reaches the causes that it decides by (context, network, TLS) with errors.As; errclass reads them.
package db
