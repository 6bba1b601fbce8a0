// Package verify checks Docket's invariants from outside. It uses the evidence from every home ([Evidence]), the
// expected results ([Truth]) and, for a watched run, the events ([History]).
//
// Each invariant is one small function in one table. [Decide] calls them all. The result is held, broken with the
// first broken record and its history, or undecided with the reason.
//
// It imports no clients, no pipeline and no testing, and does not rely on what Docket says about itself.
package verify
