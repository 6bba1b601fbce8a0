// Package sharded asks several stores of decisions at once and answers like one.
//
// It imports no client. A shard that does not answer is named in a [reader.PartialError], which comes with the answer of
// the others.
package sharded
