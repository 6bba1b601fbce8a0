// Package pgmodel is a model of Postgres: a server in memory that speaks its protocol and treats the table
// decision_logs like a real one, with faults, in virtual or real time. It knows only the statements that Docket
// sends. It has no SQL and no real sockets.
//
// # Features
//
// It models sessions, the extended protocol in pipelines, binary COPY, and transactions in READ COMMITTED. The
// identity (decision_id, ts) is unique, and an insert waits for rows of open transactions. It has deadlocks, equality
// as jsonb, statement_timeout, lock_timeout and idle_in_transaction_session_timeout, and cancel requests. It has
// row-level security as far as COPY respects it, and ends transactions whose client or server is lost. The statements
// are in statements.go. Any other is answered with 42601 and passed to [Config.Unknown].
//
// As on a real server, a statement continues when its client is gone: only its end, a cancel request or a limit ends
// it.
package pgmodel
