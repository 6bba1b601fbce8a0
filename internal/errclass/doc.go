// Package errclass decides whose fault an error is. It classifies every SQLSTATE and failures without one.
//
// It imports no Kafka client and no database driver, and does not carry out its rules. It asks errors for behaviour
// (SQLState, ConstraintName, Timeout) and for types of the standard library. It never reads an error's text.
//
// Two rules come first, because a mistake there loses a record. An unknown failure never blames the record. A
// SQLSTATE of success that arrives as an error is a fault.
package errclass
