// Package sqlstates proves on a real Postgres what becomes of every SQLSTATE. Each is raised on one record among good
// ones, and on all records, under the real pipeline. Natural faults that are cheap to cause are tested too.
//
// It has no production code. Expectations are derived from the table and the contract, not from the tested code.
package sqlstates
