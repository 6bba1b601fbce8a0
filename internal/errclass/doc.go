// Package errclass holds whose fault an error is: the verdict for every
// SQLSTATE and for the failures that come without one.
//
// It names faults and stays free of Kafka, of the database driver, and of the
// carrying out of what it names. It asks errors for behaviour (SQLState,
// ConstraintName, Timeout) and types of the standard library; it never reads
// an error's text.
//
// Two verdicts outrank the search for the culprit, because being wrong there
// loses a record: what is not recognised blames the world, never the record;
// and a SQLSTATE of success that arrives as an error is a fault, never a pass.
package errclass
