// Package verify decides from the outside whether Docket kept its invariants: from what was found in every home
// ([Evidence]), what was deserved ([Truth]) and, where a run was watched, what happened ([History]).
//
// Each invariant is one small function in one table; [Decide] asks them all and says held, broken with the first
// broken record and all that is known of it, or not decidable from what was given, and why.
//
// It stays free of clients, of the pipeline and of testing: what it says rests on nothing that Docket says of itself.
package verify
