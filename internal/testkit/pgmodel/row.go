package pgmodel

import (
	"database/sql"
	"time"
)

// Row is a row of decision_logs as it was sent: jsonb columns hold the text, not its normal form.
type Row struct {
	DecisionID  string
	Time        time.Time // ts: UTC, in whole microseconds
	Path        sql.Null[string]
	Allowed     sql.Null[bool]
	RequestedBy sql.Null[string]
	ReqID       sql.Null[int64]
	OPAID       sql.Null[string]
	OPAVersion  sql.Null[string]
	Service     sql.Null[string]
	Labels      []byte // nil is NULL
	Bundles     []byte // nil is NULL
	Raw         []byte // never nil once it is stored

	Topic     string // source_topic
	Partition int32  // source_partition
	Offset    int64  // source_offset
	Index     int32  // source_index
	Sum       []byte // raw_sha256; nil is NULL
	Bytes     []byte // raw_bytes; nil is NULL

	Unfaithful bool // unfaithful is not NULL

	UploadedBy sql.Null[string]

	StoredAt time.Time // stored_at: when the transaction began that stored it

	Commit  int64     // number of the transaction that stored it, in the order of commits, from 1; 0 while it is not committed
	At      time.Time // when it was committed, by this process's clock, which may be virtual
	Session uint32    // the backend that stored it

	ts      int64  // Time as it was sent
	missing string // a NOT NULL column that is NULL
}

// key is the identity of a row.
type key struct {
	id string
	ts int64 // Postgres's microseconds
}

func (r *Row) key() key { return key{r.DecisionID, toMicros(r.Time)} }

// epoch is where Postgres begins to count, in Unix microseconds.
const epoch = 946_684_800_000_000

func toMicros(t time.Time) int64   { return t.Unix()*1e6 + int64(t.Nanosecond())/1e3 - epoch }
func fromMicros(n int64) time.Time { return time.UnixMicro(n + epoch).UTC() }
