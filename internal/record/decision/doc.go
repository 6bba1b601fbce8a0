// Package decision reads OPA decision logs from Kafka record values, strictly and in one pass over the bytes. It
// imports no Kafka, no SQL and no other JSON decoder. Postgres's jsonb accepts all that it accepts, with the same
// meaning.
//
// A record value is plain or gzip (recognised by its magic bytes; it may have several members). It has one of three
// forms:
//
//	{…}            one decision; white space, line breaks included, anywhere JSON allows it
//	[{…}, {…}]     an array; a syntax error refuses the record, any other fault only its element
//	{…}\n{…}\n     lines; each line counts alone, its own syntax error included
//
// A value whose first byte is '[' is an array, also a torn one. It is lines only if two facts rule an array out. Its
// first line cannot begin an array that continues on the next. And another line is a complete object, without the
// marks of an array around it: a comma, colon or open bracket before it, a comma or closing bracket behind it.
//
// Any other value is one decision if it is one whole JSON value. Otherwise it is lines if at least one line is a
// complete JSON object, in its first column, or indented and with a decision_id. Otherwise it is refused whole. A
// value that is JSON but not an object is a decision of the wrong type, also the text null, which is not Kafka's null.
// A byte-order mark is a syntax error of its value or line.
//
// If a decision has several faults, the first in this order is reported: syntax, duplicate_key, missing_field,
// wrong_type, out_of_range. So a missing timestamp is reported before a req_id of the wrong type.
//
// scanner.run passes once over the bytes and writes the places of keys and braces to a tape. It leaves uncommon
// input, such as escapes and long numbers, to slower methods and continues behind it. Then the fields are looked up
// on the tape. So are the jumps that give the text with the members of objects in jsonb's order ([Log.Pieces]). Both
// depend on the keys alone, and most decisions have the keys of an earlier one. So they are learned for each shape. A
// shape matches only if every key is the same, byte by byte. A decision of very many members is scanned a second time
// for its outer members only. Only these are then sorted, and if they alone are too many, none are.
//
// Two limits are left to the database, because only it knows them: an index entry that is too long, and jsonb's own
// sizes (a string or a container of 256 MiB). They are beyond any sensible limit on a record.
package decision
