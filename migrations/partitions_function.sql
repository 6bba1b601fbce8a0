-- What makes the partitions of the days to come. The search_path of the session, which is the table's schema, stays
-- with it. Whoever calls it need not own the table: a worker that may INSERT is enough, and cannot do more by it than
-- make days that are wanted anyway. Others may create functions and operators in that schema, and those that fit their
-- arguments better would be chosen; so it is looked into for the table alone, and left before anything else is called.
-- It has no backslash: the session of the caller says whether one in a string is an escape.
CREATE OR REPLACE FUNCTION decision_logs_make_partitions(ahead int) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET lock_timeout = '2s' SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $function$
DECLARE
    most    CONSTANT int := 32; -- days at a time: the default partition is locked until they are all there
    parent  oid := to_regclass(text 'decision_logs');
    caller  text;
    home    text; -- the schema
    strays  oid;
    pattern text := '';
    columns text;
    today   date;
    days    date[];
    day     date;
    moves   boolean;
    part    text;
    move    text;
BEGIN
    SET LOCAL search_path = pg_catalog, pg_temp;
    caller := CASE current_setting('role') WHEN 'none' THEN session_user::text ELSE current_setting('role') END;
    today := now()::date;
    -- One that is temporary is the caller's, and so is what happens to its rows.
    SELECT nullif(partdefid, 0), nspname INTO strays, home
      FROM pg_partitioned_table JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]
      JOIN pg_class c ON c.oid = partrelid JOIN pg_namespace n ON n.oid = relnamespace
     WHERE partrelid = parent AND partstrat = 'r' AND partnatts = 1 AND attname = 'ts' AND relpersistence <> 't';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF NOT has_table_privilege(caller, parent, 'INSERT') THEN
        RAISE insufficient_privilege USING MESSAGE = 'only who may INSERT into decision_logs makes its partitions';
    END IF;
    IF ahead IS NULL OR ahead NOT BETWEEN 0 AND 366 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'days ahead: 0 to 366';
    END IF;
    -- Of several that come at once, one works; the others have nothing to wait for.
    IF NOT pg_try_advisory_xact_lock('pg_class'::regclass::int, parent::int) THEN
        RETURN;
    END IF;

    SELECT array_agg(today + n ORDER BY n) INTO days FROM (
        SELECT n FROM generate_series(0, ahead) AS n
         WHERE to_regclass(format('%I.%I', home, 'decision_logs_p' || to_char(today + n, 'YYYYMMDD'))) IS NULL
           AND NOT EXISTS (
               SELECT FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid,
                      regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM [(](.*)[)] TO [(](.*)[)]$') AS bound
                WHERE inhparent = parent
                  AND (bound[1] = 'MINVALUE' OR trim(BOTH '''' FROM bound[1])::timestamptz < today + n + 1)
                  AND (bound[2] = 'MAXVALUE' OR trim(BOTH '''' FROM bound[2])::timestamptz > today + n))
         ORDER BY n LIMIT most) AS missing;
    IF days IS NULL THEN
        RETURN;
    END IF;
    -- A day that has rows to move may take long; the others do not wait for it, and today, which has most, comes last.
    FOREACH day IN ARRAY CASE WHEN strays IS NULL THEN '{}' ELSE days END LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE ts >= %L AND ts < %L)', strays::regclass, day::timestamptz, (day + 1)::timestamptz) INTO moves;
        IF moves AND cardinality(days) > 1 THEN
            days := array_remove(days, day);
        END IF;
    END LOOP;

    -- What cannot be taken from a partitioned table is taken from its default partition.
    SELECT coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') || coalesce(' TABLESPACE ' || quote_ident(s.spcname), '')
      INTO pattern FROM pg_class c LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE c.oid = strays;
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns
      FROM pg_attribute WHERE attrelid = parent AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
    FOREACH day IN ARRAY days LOOP
        part := 'decision_logs_p' || to_char(day, 'YYYYMMDD');
        EXECUTE format('CREATE TABLE %I.%I (LIKE %1$I.decision_logs INCLUDING ALL)%3$s', home, part, coalesce(pattern, ''));
    END LOOP;

    -- Writers pass by the lock on the table itself. That on the default partition keeps them out of it alone, and only
    -- while days are attached: in it nobody may put a row of a day that is just getting a place of its own.
    EXECUTE format('LOCK TABLE ONLY %I.decision_logs IN SHARE UPDATE EXCLUSIVE MODE', home);
    IF strays IS NOT NULL THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', strays::regclass);
    END IF;
    FOREACH day IN ARRAY days LOOP
        part := 'decision_logs_p' || to_char(day, 'YYYYMMDD');
        IF strays IS NOT NULL THEN
            move := format('WITH moved AS (DELETE FROM %s WHERE ts >= %L AND ts < %L RETURNING %s) INSERT INTO %I.%I (%4$s) SELECT %4$s FROM moved',
                strays::regclass, day::timestamptz, (day + 1)::timestamptz, columns, home, part);
            EXECUTE format('SET LOCAL search_path = %I, pg_temp', home); -- a CHECK may call what looks for names there
            EXECUTE move;
            SET LOCAL search_path = pg_catalog, pg_temp;
        END IF;
        EXECUTE format('ALTER TABLE ONLY %I.decision_logs ATTACH PARTITION %1$I.%I FOR VALUES FROM (%L) TO (%L)',
            home, part, day::timestamptz, (day + 1)::timestamptz);
        RETURN NEXT part;
    END LOOP;
END
$function$;

COMMENT ON FUNCTION decision_logs_make_partitions(int) IS
    'makes the partitions of decision_logs that are missing from today (UTC) to so many days ahead, and returns what it made; at most 32 at a time, and one of a day that has rows in the default partition: call it until it returns nothing';
