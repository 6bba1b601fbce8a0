package postgres

// The whole of the SQL that stores. Identifiers are constant and values are parameters, always. The table is not
// qualified: the connection's search_path says which one it is.

// insertSQL stores what is not there yet. The conflict target is named so that only the identity makes a row present:
// a violated unique index of somebody else's is an error, and a dropped identity is one too (42P10).
const insertSQL = `
INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service,
       labels, bundles, raw, source_topic, source_partition, source_offset, source_index)
SELECT i.decision_id, i.ts, i.path, i.allowed, i.requested_by, i.req_id, i.opa_id, i.opa_version, i.service,
       i.labels::jsonb, i.bundles::jsonb, i.raw::jsonb, i.source_topic, i.source_partition, i.source_offset, i.source_index
  FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::bool[], $5::text[], $6::int8[], $7::text[], $8::text[], $9::text[],
       $10::text[], $11::text[], $12::text[], $13::text[], $14::int4[], $15::int8[], $16::int4[])
       AS i(decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service,
       labels, bundles, raw, source_topic, source_partition, source_offset, source_index)
    ON CONFLICT (decision_id, ts) DO NOTHING
RETURNING decision_id, ts`

// compareSQL says of each row whether what is there is equal to it as JSON: key order, white space and 1 or 1.0 make
// no difference.
const compareSQL = `
SELECT i.n, d.raw IS NOT DISTINCT FROM i.raw::jsonb
  FROM unnest($1::text[], $2::timestamptz[], $3::text[]) WITH ORDINALITY AS i(decision_id, ts, raw, n)
  JOIN decision_logs d ON d.decision_id = i.decision_id AND d.ts = i.ts`

// beginSQL fixes the isolation, because the comparison must see what was committed after the insert began. It does not
// say READ WRITE: that would overrule an administrator's default_transaction_read_only.
const beginSQL = `BEGIN ISOLATION LEVEL READ COMMITTED`

// limitsSQL bounds the statements that follow, on the server and for this transaction only, so that nothing of ours
// lives on for long there after we gave up or died. It also makes the commit durable where the default is not.
const limitsSQL = `
SELECT set_config('statement_timeout', $1, true),
       set_config('lock_timeout', $2, true),
       set_config('idle_in_transaction_session_timeout', $3, true),
       set_config('synchronous_commit',
                  CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
                  true)`

const (
	commitSQL    = `COMMIT`
	rollbackSQL  = `ROLLBACK`
	immediateSQL = `SET CONSTRAINTS ALL IMMEDIATE`
	readOnlySQL  = `SELECT current_setting('transaction_read_only')`
)
