package store

import (
	"docket/internal/postgres/db"
)

// The whole of the SQL that stores. Identifiers are constant and values are parameters, always; what foresees refusals
// is the one statement with a text that comes from the server, see [foresight]. The table is not qualified: the
// connection's search_path says which one it is.

// copySQL stores rows that are all new: one that is there is an error (23505), and so is anything else. It has the
// columns in the order of [window.row].
const copySQL = `COPY decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service, ` +
	`labels, bundles, raw, source_topic, source_partition, source_offset, source_index, raw_sha256, raw_bytes, unfaithful, uploaded_by) FROM STDIN (FORMAT binary)`

// tableSQL fails where COPY would do harm without a word. 22012: no unique index on exactly the identity keeps doubles
// out, as ON CONFLICT asks for one. 2201E: the binary form of a column may mean something else, times are rounded, or a rule
// would change inserts, and COPY ignores rules.
//
// It is asked in the transaction of the COPY and after it. From the start of COPY to the end of the transaction its lock
// keeps all of that from being changed. An index that is dropped concurrently turns invalid before. So the answer holds for
// every row, and no moment is left out.
const tableSQL = `
SELECT 1 / (SELECT count(*)
  FROM pg_index x
 WHERE x.indrelid = 'decision_logs'::regclass AND x.indisunique AND x.indisvalid AND x.indimmediate
   AND x.indpred IS NULL AND x.indexprs IS NULL AND x.indnkeyatts = 2
   AND (SELECT count(*) FROM pg_attribute WHERE attrelid = x.indrelid AND attname IN ('decision_id', 'ts')
           AND attnum IN (x.indkey[0], x.indkey[1])) = 2),
       ln((SELECT count(*) = 20
  FROM pg_attribute
 WHERE attrelid = 'decision_logs'::regclass AND CASE
  WHEN attname IN ('decision_id', 'path', 'requested_by', 'opa_id', 'opa_version', 'service', 'source_topic', 'uploaded_by')
  THEN atttypid IN ('text'::regtype, 'varchar'::regtype)
  WHEN attname IN ('labels', 'bundles', 'raw') THEN atttypid = 'jsonb'::regtype
  WHEN attname IN ('source_partition', 'source_index') THEN atttypid = 'int4'::regtype
  WHEN attname IN ('req_id', 'source_offset') THEN atttypid = 'int8'::regtype
  WHEN attname = 'ts' THEN atttypid = 'timestamptz'::regtype AND atttypmod IN (-1, 6)
  WHEN attname = 'allowed' THEN atttypid = 'bool'::regtype
  WHEN attname IN ('raw_sha256', 'raw_bytes') THEN atttypid = 'bytea'::regtype
  WHEN attname = 'unfaithful' THEN atttypid = 'text[]'::regtype
  END AND NOT EXISTS (SELECT FROM pg_rewrite WHERE ev_class = 'decision_logs'::regclass AND ev_type = '3'))::int)`

// removable says whether a row that Postgres counts as stored may not be there under its identity. A trigger AFTER INSERT can remove
// or alter it. One BEFORE INSERT can give it another identity, which COPY does not tell, or have a deferred trigger of another table
// remove it. Those of a partition count, too. In tgtype 4 is INSERT. Triggers behind a view are not known, so it counts as one. A role
// that cannot look is refused then (42501), as a row that nobody saw is not stored.
const removable = `((SELECT relkind = 'v' FROM pg_class WHERE oid = 'decision_logs'::regclass)
    OR EXISTS (SELECT FROM pg_trigger
                WHERE NOT tgisinternal AND tgenabled <> 'D' AND tgtype & 4 = 4
                  AND (tgrelid = 'decision_logs'::regclass OR pg_partition_root(tgrelid) = 'decision_logs'::regclass)))`

// removableSQL says whether rows have to be looked for before they are committed. unlookedSQL fails (2201F) where that is so.
// Both are asked in the transaction of the rows and after them: the locks on the table and on the partitions that took rows
// keep anybody from making, enabling or dropping a trigger there. So the answer holds for every row.
const (
	removableSQL = `SELECT ` + removable
	unlookedSQL  = `SELECT sqrt(-(` + removable + `)::int)`
)

// insertSQL is the careful way: it stores what is not there yet. The conflict target is named so that only the identity makes a row present:
// a violated unique index of somebody else's is an error, and a dropped identity is one too (42P10).
const insertSQL = `
INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service,
       labels, bundles, raw, source_topic, source_partition, source_offset, source_index, raw_sha256, raw_bytes, unfaithful, uploaded_by)
SELECT i.decision_id, i.ts, i.path, i.allowed, i.requested_by, i.req_id, i.opa_id, i.opa_version, i.service,
       i.labels::jsonb, i.bundles::jsonb, i.raw::jsonb, i.source_topic, i.source_partition, i.source_offset, i.source_index, i.raw_sha256, i.raw_bytes, i.unfaithful::text[], i.uploaded_by
  FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::bool[], $5::text[], $6::int8[], $7::text[], $8::text[], $9::text[],
       $10::text[], $11::text[], $12::text[], $13::text[], $14::int4[], $15::int8[], $16::int4[], $17::bytea[], $18::bytea[], $19::text[], $20::text[])
       AS i(decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service,
       labels, bundles, raw, source_topic, source_partition, source_offset, source_index, raw_sha256, raw_bytes, unfaithful, uploaded_by)
    ON CONFLICT (decision_id, ts) DO NOTHING
RETURNING decision_id, ts`

// knownSQL names the rows that are there, in one array: n where the bytes of the payload are those in hand, -n where only
// the payload itself can tell. It goes by the hash. So it holds also where a trigger masked the payload or somebody erased
// it, and costs a descent in the index but no payload. A row of an earlier release has no hash. The limit and the range are
// those of compareSQL.
const knownSQL = `
SELECT array_agg(CASE WHEN d.raw_sha256 = i.raw_sha256 THEN i.n ELSE -i.n END)
  FROM unnest($1::text[], $2::timestamptz[], $3::bytea[]) WITH ORDINALITY AS i(decision_id, ts, raw_sha256, n)
  CROSS JOIN LATERAL (SELECT raw_sha256 FROM decision_logs WHERE decision_id = i.decision_id AND ts = i.ts
                         AND ts BETWEEN $4::timestamptz AND $5::timestamptz LIMIT 1) d`

// compareSQL says of each row that is there whether it is equal as JSON: key order, white space and 1 or 1.0 make no
// difference. A row with a twin is equal to nothing, as two decisions can have one twin, and so is what jsonb cannot hold. The
// limit leaves the planner no way but the unique index: a join would sometimes read the whole table. The range of times says
// nothing new; it spares the planner the partitions that have none of them, of which there may be hundreds.
const compareSQL = `
SELECT i.n, i.raw IS NOT NULL AND d.unfaithful IS NULL AND d.raw IS NOT DISTINCT FROM i.raw::jsonb
  FROM unnest($1::text[], $2::timestamptz[], $3::text[]) WITH ORDINALITY AS i(decision_id, ts, raw, n)
  CROSS JOIN LATERAL (SELECT raw, unfaithful FROM decision_logs WHERE decision_id = i.decision_id AND ts = i.ts
                         AND ts BETWEEN $4::timestamptz AND $5::timestamptz LIMIT 1) d`

// The statements that ask about single rows: a cursor over them, a block that takes them from it one by one, and its
// findings. All of it is gone with the transaction. The block undoes each row that the table takes, and catches the errors
// of a row, the classes 22 and 23; anything else ends it. The findings are a text, as that costs it least. It has a line of
// five fields for each row, see [asking.hear]. A trigger can make a name of a row, so no name keeps the end of a field or line.
const (
	offerSQL = `
DECLARE docket_rows NO SCROLL CURSOR FOR
SELECT i.* FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::bool[], $5::text[], $6::int8[], $7::text[], $8::text[], $9::text[],
       $10::text[], $11::text[], $12::text[], $13::text[], $14::int4[], $15::int8[], $16::int4[], $17::bytea[], $18::bytea[], $19::text[], $20::text[]) WITH ORDINALITY
       AS i(decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service,
       labels, bundles, raw, source_topic, source_partition, source_offset, source_index, raw_sha256, raw_bytes, unfaithful, uploaded_by, n)`

	askSQL = `
DO $docket$
DECLARE
  docket_rows refcursor := 'docket_rows';
  i record;
  refused text[] := '{}';
  code text; constr text; col text; rel text;
BEGIN
  FOR i IN EXECUTE 'FETCH ALL FROM docket_rows' LOOP
    BEGIN
      INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service,
             labels, bundles, raw, source_topic, source_partition, source_offset, source_index, raw_sha256, raw_bytes, unfaithful, uploaded_by)
      VALUES (i.decision_id, i.ts, i.path, i.allowed, i.requested_by, i.req_id, i.opa_id, i.opa_version, i.service,
             i.labels::jsonb, i.bundles::jsonb, i.raw::jsonb, i.source_topic, i.source_partition, i.source_offset, i.source_index, i.raw_sha256, i.raw_bytes, i.unfaithful::text[], i.uploaded_by);
      RAISE EXCEPTION USING ERRCODE = 'DK000';
    EXCEPTION
      WHEN SQLSTATE 'DK000' OR unique_violation THEN NULL;
      WHEN data_exception OR integrity_constraint_violation THEN
        GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, constr = CONSTRAINT_NAME, col = COLUMN_NAME, rel = TABLE_NAME;
        refused := array_append(refused, concat_ws(E'\x1f', i.n, code, translate(constr, E'\x1e\x1f', '??'),
          translate(col, E'\x1e\x1f', '??'), translate(rel, E'\x1e\x1f', '??')));
    END;
  END LOOP;
  CLOSE docket_rows;
  PERFORM set_config('docket.refused', array_to_string(refused, E'\x1e'), true);
END $docket$`

	refusedSQL = `SELECT current_setting('docket.refused')`
)

// checkSQL gives the expression of a CHECK of this name and the columns that it refers to, one in a row. It also finds one
// of a partition alone, with the condition under which a row goes there. The transaction can write nothing from then on, as
// the next statement evaluates an expression of others.
const checkSQL = `
SELECT pg_get_expr(c.conbin, c.conrelid),
       CASE WHEN c.conrelid = 'decision_logs'::regclass THEN '' ELSE pg_get_partition_constraintdef(c.conrelid) END,
       coalesce(a.attname::text, ''), set_config('transaction_read_only', 'on', true)
  FROM pg_constraint c
  CROSS JOIN LATERAL unnest(c.conkey) AS k(attnum)
  LEFT JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum
 WHERE c.contype = 'c' AND c.conname = $1::text
   AND (c.conrelid = 'decision_logs'::regclass
        OR c.conislocal AND c.conrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'decision_logs'::regclass))
 LIMIT 64`

// beginSQL fixes the isolation, because the comparison must see what was committed after the insert began. It does not
// say READ WRITE: that would overrule an administrator's default_transaction_read_only.
const beginSQL = `BEGIN ISOLATION LEVEL READ COMMITTED`

// limitsSQL bounds the statements that follow, on the server and for this transaction only. So no statement of Docket runs
// on for long after Docket gave up or died. The last three are for a client that vanishes in the middle of COPY: the server
// waits for its rows with no timeout but TCP's. It also makes the commit durable where the default is not, and has the server
// warn of one that is not confirmed.
const limitsSQL = `
SELECT ` + db.WarnedSQL + `,
       set_config('statement_timeout', $1, true),
       set_config('lock_timeout', $2, true),
       set_config('idle_in_transaction_session_timeout', $3, true),
       set_config('tcp_keepalives_idle', $4, true),
       set_config('tcp_keepalives_interval', $5, true),
       set_config('tcp_keepalives_count', '4', true),
       ` + db.OnDiskSQL

// seenSQL reads any row of a range of time that can be read, of which few partitions have some.
const seenSQL = `
SELECT d.raw::text, d.source_topic, d.source_partition, d.ts, d.uploaded_by FROM decision_logs AS d
 WHERE d.ts BETWEEN $1::timestamptz AND $2::timestamptz AND NOT (` + db.UnreadableSQL + `) LIMIT 1`

const (
	commitSQL    = `COMMIT`
	immediateSQL = `SET CONSTRAINTS ALL IMMEDIATE`
)
