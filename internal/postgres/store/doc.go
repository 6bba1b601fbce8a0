// Package store writes the table decision_logs: [Store] stores rows and proves that the table takes good ones. It stays free
// of Kafka, of retries and of what becomes of a row that the database refuses.
//
// # How a batch is stored
//
// One transaction with one COPY in binary form, however many rows:
//
//	BEGIN; set_config(...)
//	COPY decision_logs (...) FROM STDIN (FORMAT binary)
//	SELECT ...; COMMIT -- in one go: the look at the table fails where COPY could do harm, and COMMIT is skipped then
//
// COMMIT is sent only after the answer to COPY was read. So only a loss between COMMIT and its answer is ambiguous. An
// earlier loss, or a deadline that passes while the rows are sent, leaves nothing behind. An ambiguous error is marked so,
// and the batch may simply be stored again: rows that are there already count as [pipeline.Present].
//
// Rows are encoded into the message that is just being sent. A batch takes no memory of its own, and a COPY that is
// refused says at which row ([db.ServerError.Row]).
//
// COPY takes only what is new. Where a row is there already (23505) it is rolled back, and a new transaction looks first: it
// compares all rows with what is there, copies what it did not find, and has nothing to commit where it found everything.
// After any other refusal of COPY the batch goes the careful way:
// INSERT ... SELECT ... FROM unnest(...) ON CONFLICT DO NOTHING RETURNING, and a comparison of what was not inserted. From
// then on batches of that partition look at once, until one finds nothing.
//
// A row that is there is compared by the hash of its bytes first. Where the hash is equal, the payload is not sent. Where it
// differs or is missing, the payloads are compared as JSON.
//
// A trigger after the insert can delete a row that the server counts as stored. Where there is one, the look at the table fails,
// too. Then the batch is written again, and before COMMIT its rows are looked for, behind all deferred triggers.
//
// Some tables take no COPY, or binary rows could mean something else on them: row-level security, a view, a rule, other
// types of columns. Docket writes to such a table by the careful way alone, from the first time that it meets this.
//
// [Store.Foresee] and [Store.Refusals] store nothing. The one evaluates a CHECK over rows that are not in the table. The other
// has the table take or refuse each of some rows alone, undone at once. Before a row is blamed it is asked about a second
// time, on a connection beside the pool, see [db.DB.Beside]. Dialling one costs the server more than asking about a hundred
// rows, so it is kept for a few seconds.
//
// Inside its transaction Docket turns synchronous_commit on where it is off, since a crash must not take back a home.
package store
