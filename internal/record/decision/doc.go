// Package decision reads OPA decision logs out of Kafka record values, strictly and in one pass over the bytes.
// It stays free of Kafka, SQL and of any second opinion about JSON: what it accepts, Postgres's jsonb accepts and reads alike.
//
// A record value is plain or gzip (told by its magic bytes, members may follow one another) and takes one of three
// forms:
//
//	{…}            one decision; white space, line breaks included, may stand anywhere that JSON allows it
//	[{…}, {…}]     an array; a syntax error condemns the record, any other fault only its element
//	{…}\n{…}\n     lines; each line stands alone, its own syntax error included
//
// A value whose first byte is '[' is an array and nothing else. Any other value is one decision if it is one whole JSON
// value; failing that it is lines if at least one line is a complete JSON object by itself, in its first column or
// indented and with a decision_id; failing that it is refused whole. A value that is JSON but not an object (also the text null, which is
// not Kafka's null) is a decision of the wrong type. A byte-order mark is a syntax error of the value or the line it
// stands in.
//
// Where a decision has several faults the first of this order is told: syntax, duplicate_key, missing_field,
// wrong_type, out_of_range. So a missing timestamp is told before a req_id of the wrong type.
//
// How it is read: scanner.run goes once over the bytes and puts the places of keys and of objects' braces on a tape; all
// that is uncommon, escapes and long numbers among it, it leaves to slower methods and goes on behind. What is wanted of a
// decision is then looked up on the tape: the fields, and the jumps that make its text one with the members of objects as
// jsonb keeps them ([Log.Pieces]). Both hang on the keys alone, and most decisions have the keys of an earlier one, so
// they are learned per shape: a shape is known again only if every key is the same, byte by byte. A decision of very
// many members is scanned a second time, for the outer ones alone: only these are put in order, and where they alone are
// too many none are.
//
// Left to the database on purpose, because only it knows: an index entry that is too long, and jsonb's own sizes (a
// string or a container of 256 MiB), which lie beyond any sensible limit on a record.
package decision
