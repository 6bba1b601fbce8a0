-- What the table $1 has that would be lost, or would mean something else, if it became a partition of another.
SELECT kind, name FROM (
    SELECT 'trigger' AS kind, tgname::text AS name FROM pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal
    UNION ALL SELECT 'rule', rulename FROM pg_rewrite WHERE ev_class = $1
    UNION ALL SELECT 'policy', polname FROM pg_policy WHERE polrelid = $1
    UNION ALL SELECT 'security', relname FROM pg_class WHERE oid = $1 AND (relrowsecurity OR relforcerowsecurity)
    UNION ALL SELECT 'foreign key', conname FROM pg_constraint WHERE contype = 'f' AND $1 IN (conrelid, confrelid) AND conparentid = 0
    UNION ALL SELECT 'publication', p.pubname FROM pg_publication p WHERE EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = p.oid AND prrelid = $1)
        OR NOT p.pubviaroot AND EXISTS (SELECT FROM pg_publication_tables t JOIN pg_class c ON c.relname = t.tablename
               JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = t.schemaname WHERE t.pubname = p.pubname AND c.oid = $1)
    UNION ALL SELECT DISTINCT 'view', v.relname FROM pg_depend d JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
        JOIN pg_class v ON v.oid = w.ev_class WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = $1 AND w.ev_class <> $1
    UNION ALL SELECT DISTINCT 'function', f.proname FROM pg_depend d JOIN pg_proc f ON d.classid = 'pg_proc'::regclass AND f.oid = d.objid
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = $1
           OR d.refclassid = 'pg_type'::regclass AND d.refobjid IN (SELECT unnest(ARRAY[t.oid, t.typarray]) FROM pg_type t WHERE t.typrelid = $1)
    UNION ALL SELECT DISTINCT 'row type', c.relname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE NOT a.attisdropped AND a.atttypid IN (SELECT unnest(ARRAY[t.oid, t.typarray]) FROM pg_type t WHERE t.typrelid = $1)
    UNION ALL SELECT 'unique index', c.relname FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
        WHERE x.indrelid = $1 AND x.indisunique AND NOT EXISTS (SELECT FROM pg_attribute a
            WHERE a.attrelid = $1 AND a.attname = 'ts' AND a.attnum = ANY ((x.indkey::int2[])[0:x.indnkeyatts - 1]))
    UNION ALL SELECT 'invalid index', c.relname FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid WHERE x.indrelid = $1 AND NOT x.indisvalid
    UNION ALL SELECT 'exclusion', conname FROM pg_constraint WHERE conrelid = $1 AND contype = 'x'
    UNION ALL SELECT 'check', conname FROM pg_constraint WHERE conrelid = $1 AND contype = 'c'
        AND (NOT convalidated OR connoinherit) AND conname <> 'decision_logs_before_cut'
    UNION ALL SELECT 'identity column', attname FROM pg_attribute WHERE attrelid = $1 AND attnum > 0 AND attidentity <> ''
    UNION ALL SELECT 'inheritance', inhrelid::regclass::text FROM pg_inherits
        WHERE (inhparent = $1 OR inhrelid = $1) AND NOT EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = $1)
    UNION ALL SELECT 'replica identity', relname FROM pg_class WHERE oid = $1 AND relreplident <> 'd'
    UNION ALL SELECT 'unlogged', relname FROM pg_class WHERE oid = $1 AND relkind = 'r' AND relpersistence <> 'p'
    UNION ALL SELECT 'type', attname FROM pg_attribute WHERE attrelid = $1 AND attname = 'ts'
        AND (atttypid <> 'timestamptz'::regtype OR NOT attnotnull)
    UNION ALL SELECT 'label', provider FROM pg_seclabel WHERE classoid = 'pg_class'::regclass AND objoid = $1
    UNION ALL SELECT 'taken', name FROM unnest(ARRAY['decision_logs_before', 'decision_logs_default']) AS name
        WHERE to_regclass(name) IS NOT NULL AND EXISTS (SELECT FROM pg_class WHERE oid = $1 AND relkind = 'r')
    UNION ALL SELECT 'put aside', relname FROM pg_class WHERE oid = to_regclass('decision_logs_strays')
        AND EXISTS (SELECT FROM pg_class WHERE oid = $1 AND relkind = 'r')
        AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = $1 AND conname = 'decision_logs_before_cut')
) AS found
ORDER BY kind, name
