// Package postgres is the table decision_logs and the only user of the database driver: it stores rows, proves that
// the table takes good ones, brings the schema up to date and examines it. It stays free of Kafka, of retries and of
// what becomes of a row that the database refuses.
//
// # How a batch is stored
//
// One transaction with one statement, however many rows:
//
//	BEGIN; set_config(...); INSERT ... SELECT ... FROM unnest(...) ON CONFLICT DO NOTHING RETURNING ...
//	-- read the answer; where rows were not inserted, compare them with what is there
//	COMMIT
//
// Everything up to the answer travels in one go, and COMMIT is sent only after the answer was read. So nothing is
// ambiguous but a loss in the short time between sending COMMIT and its answer; any earlier loss, and any deadline that
// passes while the statement runs, leaves nothing behind. What is ambiguous is marked so and may simply be stored
// again: what is there already counts as [pipeline.Present].
//
// Statements are unnamed and leave no state on the connection, so a transaction pooler between us and the server is
// fine, whether or not it knows prepared statements, and a changed table never meets a cached plan. Migrations need a
// session of their own (an advisory lock): they want the server itself or a session pooler.
//
// Inside its transaction Docket turns synchronous_commit on where it is off, since a row that a crash can take back is
// no home.
//
// # Errors
//
// Every error that leaves this package is safe to log: it is text of our own, with SQLSTATE and the names of
// constraint, table and column, and never the server's words, a value or the connection string. The causes that a
// caller decides by (context, network, TLS) can be reached with errors.As; errclass reads them.
package postgres
