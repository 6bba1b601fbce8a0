package store

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/record/decision"
)

// Sought is a decision to look up. Raw are its exact bytes and compared with what is stored; nil compares nothing.
type Sought struct {
	ID   string
	Time time.Time
	Raw  []byte
	// Came says that a row of these very bytes is equal also where a trigger masked its payload, or somebody erased it, as for
	// [Store.Store].
	Came bool
}

// Found is a row that has the identity of a decision that was sought.
type Found struct {
	N         int // which of them, from 0
	ID        string
	Time      time.Time // ts, in UTC
	Topic     string
	Partition int32
	Offset    int64
	Index     int
	StoredAt  time.Time
	Equal     bool // its payload is that of the decision, as JSON or see [Sought.Came]; true where none was given
}

// lookupSQL goes by the primary key: the settings before it leave the planner no other way.
const (
	lookupSQL = `
SELECT i.n - 1, d.decision_id, d.ts, d.source_topic, d.source_partition, d.source_offset, d.source_index, d.stored_at,
       coalesce(i.raw IS NULL AND i.came IS NULL OR d.raw_sha256 = i.sum
                OR CASE WHEN d.unfaithful IS NULL THEN d.raw = i.raw::jsonb ELSE d.raw_bytes = coalesce(i.came, convert_to(i.raw, 'UTF8')) END, false)
  FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::bytea[], $5::bytea[]) WITH ORDINALITY AS i(decision_id, ts, raw, sum, came, n)
  JOIN decision_logs d ON d.decision_id = i.decision_id AND d.ts = i.ts
 ORDER BY i.n`
	byIDSQL = `
SELECT 0::bigint, decision_id, ts, source_topic, source_partition, source_offset, source_index, stored_at, true
  FROM decision_logs WHERE decision_id = $1 ORDER BY ts LIMIT 100`
	byIndexSQL = `
SELECT set_config('statement_timeout', $1, true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true)`
)

// Lookup finds the rows of these decisions by their identity, through the primary key, in a transaction that can
// write nothing. Payloads are compared by the server; one that it cannot read as JSON is equal to none.
func (st *Store) Lookup(ctx context.Context, sought []Sought) ([]Found, error) {
	if len(sought) == 0 {
		return nil, nil
	}
	ids, times, raws := make([]string, len(sought)), make([]time.Time, len(sought)), make([]*string, len(sought))
	sums, came := make([][]byte, len(sought)), make([][]byte, len(sought))
	for i, s := range sought {
		ids[i], times[i] = s.ID, s.Time.UTC().Truncate(time.Microsecond)
		if s.Raw != nil && !decision.Holds(s.Raw) { // no text of jsonb: nothing but the same bytes is equal
			came[i] = s.Raw
		} else if s.Raw != nil {
			text := string(s.Raw)
			raws[i] = &text
		}
		if s.Came {
			sum := sha256.Sum256(s.Raw)
			sums[i] = sum[:]
		}
	}
	found, err := st.look(ctx, lookupSQL, ids, times, raws, sums, came)
	if err == nil || errclass.Classify(err).Class != errclass.Data {
		return found, err
	}
	return st.lookupApart(ctx, sought)
}

// lookupApart halves what the server could not read whole.
func (st *Store) lookupApart(ctx context.Context, sought []Sought) ([]Found, error) {
	if len(sought) == 1 {
		found, err := st.Lookup(ctx, []Sought{{ID: sought[0].ID, Time: sought[0].Time}})
		for i := range found {
			found[i].Equal = false
		}
		return found, err
	}
	half := len(sought) / 2
	found, err := st.Lookup(ctx, sought[:half])
	if err != nil {
		return nil, err
	}
	rest, err := st.Lookup(ctx, sought[half:])
	for i := range rest {
		rest[i].N += half
	}
	return append(found, rest...), err
}

// LookupID finds the rows of a decision_id, at most 100, through the primary key.
func (st *Store) LookupID(ctx context.Context, id string) ([]Found, error) {
	return st.look(ctx, byIDSQL, id)
}

func (st *Store) look(ctx context.Context, sql string, args ...any) ([]Found, error) {
	ctx, cancel := context.WithTimeout(ctx, st.Timeout())
	defer cancel()
	var found []Found
	err := pgx.BeginTxFunc(ctx, st.Pool(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, byIndexSQL, string(db.Milliseconds(st.Timeout()*4/5))); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (Found, error) {
			var f Found
			err := r.Scan(&f.N, &f.ID, &f.Time, &f.Topic, &f.Partition, &f.Offset, &f.Index, &f.StoredAt, &f.Equal)
			f.Time = f.Time.UTC()
			return f, err
		})
		return err
	})
	if err != nil {
		return nil, db.Clean("look up decisions", err)
	}
	return found, nil
}

// Try stores one decision alone by the statements of [Store.Store], has deferred constraints checked, and takes it back. It
// says what would have become of it; the error tells whose fault it is through [errclass.Classify].
func (st *Store) Try(ctx context.Context, row pipeline.Row) (pipeline.Outcome, error) {
	outcomes, err := st.write(ctx, []pipeline.Row{row}, true, (*transaction).takeBack)
	if err != nil {
		return 0, st.Noted("try to store a decision", err)
	}
	return outcomes[0], nil
}
