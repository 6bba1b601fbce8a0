// Package nightly has the rules of an archive that runs by itself: from which age on, at which hours, and in which
// storage class. It has also the note that says how far it is.
//
// It knows no table, no storage and no clock.
package nightly
