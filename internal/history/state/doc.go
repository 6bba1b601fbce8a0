// Package state folds stored decisions into one answer for each subject and path, and into flips: changes of its
// verdict.
//
// Verdict, revision, hash, version and number of decisions do not depend on the order of the decisions. Since and the
// flips follow the order of storing, and say where a decision came late. The package knows no SQL and no clock.
package state
