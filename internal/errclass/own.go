package errclass

// Codes of failures that have no SQLSTATE. They appear in metrics and logs and never change. In headers a few of them
// (network, timeout, internal) stand for the others.
const (
	CodeNetwork           = "network"
	CodeTimeout           = "timeout"
	CodeDNS               = "dns"
	CodeTLS               = "tls"
	CodeDescriptors       = "no_descriptors"
	CodeConfig            = "config"
	CodeAmbiguousCommit   = "ambiguous_commit"
	CodeCanceled          = "canceled"
	CodePoolExhausted     = "pool_exhausted"
	CodePoolClosed        = "pool_closed"
	CodeConnBusy          = "conn_busy"
	CodeTxClosed          = "tx_closed"
	CodeCommitRollback    = "commit_rollback"
	CodeTooManyParameters = "too_many_parameters"
	CodeProtocol          = "protocol"
	CodeEncode            = "encode"
	CodeTooSlow           = "too_slow"
	CodeIDConflict        = "id_conflict"
	CodePanic             = "panic"
	CodeSwallowed         = "swallowed"
	CodeInternal          = "internal"

	CodeEmpty        = "empty"
	CodeSyntax       = "syntax"
	CodeDuplicateKey = "duplicate_key"
	CodeMissingField = "missing_field"
	CodeWrongType    = "wrong_type"
	CodeOutOfRange   = "out_of_range"
	CodeTooLarge     = "too_large"
)

// ownCodes has their classifications; the class follows from the rule.
var ownCodes = []Classification{
	{Code: CodeNetwork, Name: "network_failure", Rule: RetryPark,
		Why: "The connection was refused, reset or closed, or the server was not reachable."},
	{Code: CodeTimeout, Name: "deadline_exceeded", Rule: RetryPark,
		Why: "An attempt exceeded its time limit. The server may still work on it, so its statement_timeout must be shorter."},
	{Code: CodeDNS, Name: "host_not_found", Rule: Hold,
		Why: "The name service says that the host does not exist."},
	{Code: CodeTLS, Name: "tls_refused", Rule: Hold,
		Why: "One end rejects the other's certificate or does not support TLS: unknown authority, expired, wrong name or wrong port."},
	{Code: CodeDescriptors, Name: "too_many_open_files", Rule: RetryHold,
		Why: "This process or its host has no file descriptor left for a connection. The database may be well."},
	{Code: CodeConfig, Name: "configuration_refused", Rule: Hold,
		Why: "A setting cannot be used as it is, such as a malformed connection string."},
	{Code: CodeAmbiguousCommit, Name: "commit_outcome_unknown", Rule: RetryPark,
		Why: "The answer to COMMIT was lost, or it warned that no standby is known to have the rows. A retry is safe, because an existing row counts as stored."},
	{Code: CodeCanceled, Name: "canceled_by_us", Rule: Ignore,
		Why: "Docket is stopping or lost the partition."},
	{Code: CodePoolExhausted, Name: "no_free_connection", Rule: RetryPark,
		Why: "No connection of the pool became free in time. If this persists, the pool is smaller than the number of writers."},
	{Code: CodePoolClosed, Name: "pool_closed", Rule: Bug,
		Why: "The pool was used after it was closed."},
	{Code: CodeConnBusy, Name: "connection_busy", Rule: Bug,
		Why: "One connection was used for two things at once."},
	{Code: CodeTxClosed, Name: "transaction_closed", Rule: Bug,
		Why: "A transaction was used after its end."},
	{Code: CodeCommitRollback, Name: "commit_rolled_back", Rule: RetryHold,
		Why: "COMMIT was answered with a rollback, because an earlier error of the transaction was ignored. Nothing was stored. If a retry ends the same way, it is a bug in Docket."},
	{Code: CodeTooManyParameters, Name: "too_many_parameters", Rule: Bug,
		Why: "One statement has more than the 65535 parameters that the protocol allows; Docket must send smaller ones."},
	{Code: CodeProtocol, Name: "malformed_answer", Rule: RetryPark,
		Why: "The answer does not follow the protocol of Postgres, for example from a faulty proxy or a wrong port."},
	{Code: CodeEncode, Name: "value_not_encodable", Rule: Bisect,
		Why: "The driver refused a value of the record before the server saw it, so no waiting helps."},
	{Code: CodeTooSlow, Name: "record_too_slow", Rule: Bisect,
		Why: "The record alone runs into the statement's time limit, twice, while the database takes others."},
	{Code: CodeIDConflict, Name: "decision_id_conflict", Rule: Bisect,
		Why: "A decision with this id and time is stored already and says something else."},
	{Code: CodeSwallowed, Name: "row_swallowed", Rule: ProbeBisect,
		Why: "The table neither stored the row nor refused it, and has none of its identity: a trigger swallows or deletes it, or alters decision_id or ts."},
	{Code: CodePanic, Name: "panic", Rule: Bisect,
		Why: "Docket's own decoder panicked on this record."},
	{Code: CodeInternal, Name: "not_recognised", Rule: RetryPark,
		Why: "An error that no rule knows, so no record is blamed for it; on a dead letter it means XX000, which the record alone brought about twice."},

	{Code: CodeEmpty, Name: "empty_record", Rule: Bisect,
		Why: "The decoder found a null or blank value or an empty array."},
	{Code: CodeSyntax, Name: "invalid_json", Rule: Bisect,
		Why: "The decoder found no valid JSON: broken syntax, byte-order mark, trailing bytes, invalid UTF-8, broken gzip or nesting too deep."},
	{Code: CodeDuplicateKey, Name: "duplicate_key", Rule: Bisect,
		Why: "The decoder found the same key twice at the top of a decision."},
	{Code: CodeMissingField, Name: "missing_field", Rule: Bisect,
		Why: "The decoder found no decision_id or timestamp."},
	{Code: CodeWrongType, Name: "wrong_type", Rule: Bisect,
		Why: "The decoder found a field of another type than it must have, or no object at all."},
	{Code: CodeOutOfRange, Name: "out_of_range", Rule: Bisect,
		Why: "The decoder found a decision_id or timestamp that no Postgres column can hold: U+0000, a lone surrogate, more than 2,000 bytes, or a date beyond its type."},
	{Code: CodeTooLarge, Name: "record_too_large", Rule: Bisect,
		Why: "The record is larger than DOCKET_MAX_RECORD_BYTES after gunzip."},
}

const refusedByDecoder = "Dead-lettered without asking the database, when the batch it came in gets its homes."

// ownEffects has the effects of codes that already name their record, so that no search is needed.
var ownEffects = map[string]string{
	CodeEncode:       "The record whose value it is is dead-lettered; all others get their row.",
	CodeTooSlow:      "The record is dead-lettered; all others have their row.",
	CodeIDConflict:   "The later record is dead-lettered; the stored decision and all others keep their row.",
	CodeEmpty:        refusedByDecoder,
	CodeSyntax:       refusedByDecoder,
	CodeDuplicateKey: refusedByDecoder,
	CodeMissingField: refusedByDecoder,
	CodeWrongType:    refusedByDecoder,
	CodeOutOfRange:   refusedByDecoder,
	CodeTooLarge:     refusedByDecoder,
	CodePanic:        refusedByDecoder,
}

// As marks err with one of Docket's codes, for facts that only the place of the failure knows. The outermost mark
// wins over everything inside it. But CodeAmbiguousCommit and CodePoolExhausted say when and not why, so a SQLSTATE
// or a cancellation inside wins over them. The error's text and tree stay unchanged. Any other code is marked
// CodeInternal. As of nil is nil.
func As(err error, code string) error {
	if err == nil {
		return nil
	}
	if _, ours := byCode[code]; !ours || isSQLState(code) {
		code = CodeInternal
	}
	return &marked{code: code, err: err}
}

type marked struct {
	code string
	err  error
}

func (m *marked) Error() string { return m.err.Error() }
func (m *marked) Unwrap() error { return m.err }

// circumstance reports whether the mark says when it failed and not why.
func (m *marked) circumstance() bool {
	return m.code == CodeAmbiguousCommit || m.code == CodePoolExhausted
}
