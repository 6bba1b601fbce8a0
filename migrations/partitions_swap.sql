-- The table becomes the first partition of a new one of its name. The transaction has it locked, and the search_path is
-- its schema alone. docket.cut is where it ends.
DO $swap$
DECLARE
    cut     timestamptz := current_setting('docket.cut');
    old     pg_class;
    fresh   oid;
    columns text;
    held    text;
    r       record;
BEGIN
    SELECT * INTO STRICT old FROM pg_class WHERE oid = 'decision_logs'::regclass;
    ALTER TABLE decision_logs RENAME TO decision_logs_before;
    EXECUTE format('CREATE TABLE decision_logs (LIKE decision_logs_before INCLUDING ALL) PARTITION BY RANGE (ts)%s',
        (SELECT ' TABLESPACE ' || quote_ident(spcname) FROM pg_tablespace WHERE oid = old.reltablespace));
    fresh := 'decision_logs'::regclass;
    ALTER TABLE decision_logs DROP CONSTRAINT IF EXISTS decision_logs_before_cut;
    EXECUTE format('COMMENT ON TABLE decision_logs IS %L', obj_description(old.oid, 'pg_class'));

    -- Who may do what, neither less nor more: default privileges are for tables that somebody made.
    IF pg_get_userbyid(old.relowner) <> current_user THEN
        EXECUTE format('ALTER TABLE decision_logs OWNER TO %I', pg_get_userbyid(old.relowner));
    END IF;
    FOR r IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a WHERE c.oid = fresh LOOP
        EXECUTE format('REVOKE ALL ON decision_logs FROM %s', r.who);
    END LOOP;
    FOR r IN SELECT a.privilege_type || coalesce(' (' || quote_ident(a.attname) || ')', '') AS what, a.is_grantable,
                    CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM (SELECT NULL AS attname, x.* FROM aclexplode(coalesce(old.relacl, acldefault('r', old.relowner))) AS x
                     UNION ALL
                     SELECT t.attname, x.* FROM pg_attribute t, aclexplode(t.attacl) AS x
                      WHERE t.attrelid = old.oid AND t.attnum > 0 AND NOT t.attisdropped) AS a LOOP
        EXECUTE format('GRANT %s ON decision_logs TO %s%s', r.what, r.who, CASE WHEN r.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
    END LOOP;
    -- A sequence would otherwise go with the oldest rows.
    FOR r IN SELECT s.oid::regclass AS name, t.attname FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
               JOIN pg_attribute t ON t.attrelid = d.refobjid AND t.attnum = d.refobjsubid
              WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = old.oid AND d.deptype = 'a' LOOP
        EXECUTE format('ALTER SEQUENCE %s OWNED BY decision_logs.%I', r.name, r.attname);
    END LOOP;

    EXECUTE format('CREATE TABLE decision_logs_default (LIKE decision_logs INCLUDING ALL)%s%s',
        ' WITH (' || array_to_string(old.reloptions, ', ') || ')',
        (SELECT ' TABLESPACE ' || quote_ident(spcname) FROM pg_tablespace WHERE oid = old.reltablespace));
    IF pg_get_userbyid(old.relowner) <> current_user THEN
        EXECUTE format('ALTER TABLE decision_logs_default OWNER TO %I', pg_get_userbyid(old.relowner));
    END IF;
    ALTER TABLE decision_logs ATTACH PARTITION decision_logs_default DEFAULT;
    FOR r IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM aclexplode(old.relacl) AS a WHERE a.privilege_type = 'SELECT' LOOP
        EXECUTE format('GRANT SELECT ON decision_logs_default TO %s', r.who); -- for a look at what has no day of its own
    END LOOP;

    -- Rows from the cut on, in the table still or put aside before, go where they belong.
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns
      FROM pg_attribute WHERE attrelid = fresh AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
    IF to_regclass('decision_logs_strays') IS NOT NULL THEN
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO held
          FROM pg_attribute a JOIN pg_attribute b ON b.attrelid = fresh AND b.attname = a.attname AND b.attgenerated = '' AND NOT b.attisdropped
         WHERE a.attrelid = 'decision_logs_strays'::regclass AND a.attnum > 0 AND NOT a.attisdropped;
        EXECUTE format('INSERT INTO decision_logs_default (%s) SELECT %1$s FROM decision_logs_strays', held);
        DROP TABLE decision_logs_strays;
    ELSE
        EXECUTE format('WITH moved AS (DELETE FROM decision_logs_before WHERE ts >= %L RETURNING %s)
            INSERT INTO decision_logs_default (%2$s) SELECT %2$s FROM moved', cut, columns);
    END IF;

    EXECUTE format('ALTER TABLE decision_logs ATTACH PARTITION decision_logs_before FOR VALUES FROM (MINVALUE) TO (%L)', cut);
    ALTER TABLE decision_logs_before DROP CONSTRAINT IF EXISTS decision_logs_before_cut;

    -- The names that the indexes had are those of the whole table.
    FOR r IN SELECT p.relname AS whole, c.relname AS part FROM pg_inherits JOIN pg_class p ON p.oid = inhparent
               JOIN pg_class c ON c.oid = inhrelid JOIN pg_index x ON x.indexrelid = c.oid WHERE x.indrelid = old.oid LOOP
        EXECUTE format('ALTER INDEX %I RENAME TO %I', r.part,
            left(regexp_replace(r.part, '^(decision_logs)?_?', 'decision_logs_before_'), 63));
        EXECUTE format('ALTER INDEX %I RENAME TO %I', r.whole, r.part);
    END LOOP;
END
$swap$;
