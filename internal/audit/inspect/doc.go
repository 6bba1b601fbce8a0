// Package inspect examines a live system from outside, with the settings of the consumer. Method [System.Verify] runs
// the checker on everything that was read since a time. Method [System.Find] says where one record is and what
// happens next.
//
// It only reads: it joins no group, commits nothing and stores no row. A dead letter that is tried is rolled back. It
// shows nothing, and its results have no payload.
package inspect
