// Package term prints for people and for programs: lines, fields, tables, progress, JSON. It escapes each value that is printed, so
// that no text of a stranger controls a terminal; the exception is [Safe].
//
// It stays free of commands and of what they print.
package term
