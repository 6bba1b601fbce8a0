// Package pgmodel is a model of Postgres at the wire: a server in memory that speaks its protocol and does with the table
// decision_logs what a real one does, faults included, in virtual time as well as in the wall clock's. It knows the
// statements that Docket sends and no others; it stays free of SQL, of real sockets and of what a test expects.
//
// # What is modelled
//
// Sessions, the extended protocol in pipelines, COPY in binary form, transactions in READ COMMITTED, the identity (decision_id, ts) with waits
// for rows of transactions that are still open, deadlocks, equality as jsonb has it, statement_timeout, lock_timeout and
// idle_in_transaction_session_timeout, cancel requests, row-level security as far as COPY minds it, and what becomes of a transaction whose client or server goes
// away. The statements are listed in statements.go; one that is not listed is answered with 42601 and told to
// [Config.Unknown].
//
// A statement goes on when its client is gone, as on a real server: only its end, a cancel request or a limit ends it.
package pgmodel
