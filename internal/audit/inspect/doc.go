// Package inspect looks at a live system from outside, with the settings of the consumer: [System.Verify] asks the
// checker about everything that was read since a time, [System.Find] tells where one record is and what happens next.
//
// It only reads: it joins no group, commits nothing and stores no row; a dead letter that is tried is taken back. It
// stays free of how the result is shown, and what it returns holds no payload.
package inspect
