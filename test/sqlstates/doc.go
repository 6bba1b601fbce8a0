// Package sqlstates proves on a real Postgres what becomes of every SQLSTATE: each is raised on one record among good
// neighbours and on all records, under the real pipeline, and each natural fault that is cheap to have beside it.
//
// It stays free of code that production uses: what is expected is derived from the verdicts and the contract, not asked
// of the code that is tested.
package sqlstates
