-- The days that an archive took out of decision_logs. A decision of such a day that is stored later may be in the archive, and so be
-- counted already. Only who reads the archives can tell. So decision_counts_count leaves it out. The next archive of the day, or a
-- restore, counts it if no archive has it. Until then questions count it beside the counts.

-- +goose Up
CREATE TABLE IF NOT EXISTS decision_counts_left (
    day       timestamptz PRIMARY KEY, -- in UTC
    left_at   timestamptz NOT NULL,    -- what was stored before is counted as any other
    leaves_at timestamptz              -- a later archive took the day out then, and did not drop it yet
);
COMMENT ON TABLE decision_counts_left IS 'days that an archive took out of decision_logs: their later decisions are counted by the next archive or restore of the day';

-- +goose StatementBegin
-- decision_counts_count counts what was stored in one span from the mark on, and moves the mark behind it. It stops a slack before the moment from
-- which on more may be stored: it goes by the clock of the server and by the transactions that it saw open, and whoever calls it
-- says nothing of that. more: there is another span. Of several that call it one works, and the others count nothing. It leaves out decisions that came after their
-- day was archived: see decision_counts_left.
CREATE OR REPLACE FUNCTION decision_counts_count(span interval, slack interval, OUT counted bigint, OUT more boolean) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    mark  decision_counts_mark;
    busy  text[];
    bound timestamptz;
    since timestamptz;
    until timestamptz;
    back  interval := interval '1 day';
    lines decision_counts[];
    hours timestamptz[];
BEGIN
    counted := 0;
    more := false;
    IF span <= interval '0' OR slack < interval '0' OR slack < interval '2 minutes' AND NOT pg_has_role(session_user, current_user, 'MEMBER') THEN
        RAISE EXCEPTION 'a span is above 0, and the mark stays 2 minutes behind the clock' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- A reader that comes after the open transactions were listed has to see the counted rows.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'decisions are counted in READ COMMITTED' USING ERRCODE = 'invalid_transaction_state';
    END IF;
    IF NOT pg_try_advisory_xact_lock('decision_counts_mark'::regclass::int, 1) THEN
        RETURN;
    END IF;
    SELECT coalesce(array_agg(l.virtualtransaction), '{}') INTO busy FROM pg_locks l JOIN pg_stat_activity a USING (pid)
     WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND a.usesysid IS NOT NULL
       AND (a.datid IS NULL OR a.datid = 0 OR a.datid = (SELECT oid FROM pg_database WHERE datname = current_database()))
       AND l.pid <> pg_backend_pid();
    SELECT * INTO STRICT mark FROM decision_counts_mark;
    IF mark.looked_at IS NULL OR NOT mark.open && busy THEN
        mark.complete := greatest(mark.complete, CASE WHEN busy = '{}' THEN statement_timestamp() ELSE mark.looked_at END);
        mark.looked_at := statement_timestamp();
        mark.open := busy;
    END IF;
    bound := least(mark.complete, statement_timestamp()) - slack;
    since := mark.stored_before;
    IF since = '-infinity' AND bound > '-infinity' THEN
        LOOP
            since := bound - back;
            EXIT WHEN back > interval '36500 days' OR NOT EXISTS (SELECT FROM decision_logs WHERE stored_at < since);
            back := back * 4;
        END LOOP;
    END IF;
    until := least(since + span, bound);
    IF since < until THEN
        SELECT array_agg(f.line), array_agg(DISTINCT (f.line).hour), coalesce(sum((f.line).allowed + (f.line).denied + (f.line).undefined + (f.line).error + (f.line).other), 0)
          INTO lines, hours, counted
          FROM (SELECT ROW (hour, path, service, count(*) FILTER (WHERE v = 'allowed'), count(*) FILTER (WHERE v = 'denied'), count(*) FILTER (WHERE v = 'undefined'),
                       count(*) FILTER (WHERE v = 'error'), count(*) FILTER (WHERE v = 'other'))::decision_counts AS line
                  FROM (SELECT date_trunc('hour', d.ts, 'UTC') AS hour, d.path, d.service, CASE WHEN d.allowed THEN 'allowed' WHEN NOT d.allowed THEN 'denied'
	WHEN coalesce(d.raw->'error', 'null') <> 'null' THEN 'error' WHEN coalesce(d.raw->'result', 'null') = 'null' THEN 'undefined' ELSE 'other' END AS v
                          FROM decision_logs d WHERE d.stored_at >= since AND d.stored_at < until
                           AND NOT EXISTS (SELECT FROM decision_counts_left l WHERE l.day = date_trunc('day', d.ts, 'UTC') AND d.stored_at >= l.left_at)) AS d
                 GROUP BY hour, path, service) AS f;
        PERFORM decision_counts_keep(lines);
        -- The sum takes the place of lines that are many for their hour, or whose hour is over.
        WITH many AS (SELECT c.hour FROM decision_counts c WHERE c.hour = ANY (hours)
                       GROUP BY c.hour HAVING count(*) > count(DISTINCT (c.path, c.service)) * CASE WHEN c.hour < now() - interval '3 hours' THEN 1 ELSE 10 END),
             gone AS (DELETE FROM decision_counts c USING many m WHERE c.hour = m.hour RETURNING c.*)
        INSERT INTO decision_counts (hour, path, service, allowed, denied, undefined, error, other)
        SELECT hour, path, service, sum(allowed), sum(denied), sum(undefined), sum(error), sum(other) FROM gone GROUP BY 1, 2, 3;
        -- A day that is over keeps up to two lines on average: it is larger than an hour, and what comes late comes in drops.
        WITH many AS (SELECT c.day FROM decision_counts_days c WHERE c.day = ANY (ARRAY(SELECT DISTINCT date_trunc('day', h, 'UTC') FROM unnest(hours) AS h))
                       GROUP BY c.day HAVING count(*) > count(DISTINCT (c.path, c.service)) * CASE WHEN c.day < now() - interval '27 hours' THEN 2 ELSE 10 END),
             gone AS (DELETE FROM decision_counts_days c USING many m WHERE c.day = m.day RETURNING c.*)
        INSERT INTO decision_counts_days (day, path, service, allowed, denied, undefined, error, other)
        SELECT day, path, service, sum(allowed), sum(denied), sum(undefined), sum(error), sum(other) FROM gone GROUP BY 1, 2, 3;
        mark.stored_before := until;
        more := until < bound;
    END IF;
    UPDATE decision_counts_mark SET stored_before = mark.stored_before, complete = mark.complete, looked_at = mark.looked_at, open = mark.open;
END $$;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION decision_counts_count(interval, interval) SET search_path = %I, pg_temp', current_schema());
    ALTER FUNCTION decision_counts_count(interval, interval) SET jit = off;
    ALTER FUNCTION decision_counts_count(interval, interval) SET enable_seqscan = off;
    ALTER FUNCTION decision_counts_count(interval, interval) SET plan_cache_mode = force_custom_plan;
END $$;

-- Days that an earlier release archived: they were counted, and have neither a partition nor rows.
DO $$
DECLARE
    strays text;
    has    boolean := false;
    one    timestamptz;
BEGIN
    IF (SELECT relkind FROM pg_class WHERE oid = 'decision_logs'::regclass) <> 'p' THEN
        RETURN;
    END IF;
    SELECT partdefid::regclass INTO strays FROM pg_partitioned_table WHERE partrelid = 'decision_logs'::regclass AND partdefid <> 0;
    FOR one IN SELECT DISTINCT c.day FROM decision_counts_days c
                WHERE isfinite(c.day) AND c.day < date_trunc('day', now(), 'UTC') - interval '1 day'
                  AND NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhrelid,
                                         regexp_match(pg_get_expr(p.relpartbound, p.oid), '^FOR VALUES FROM \(([^,]*)\) TO \(([^,]*)\)$') AS b
                                   WHERE i.inhparent = 'decision_logs'::regclass
                                     AND CASE WHEN b[1] = 'MINVALUE' THEN true ELSE trim(BOTH '''' FROM b[1])::timestamptz <= c.day END
                                     AND CASE WHEN b[2] = 'MAXVALUE' THEN true ELSE trim(BOTH '''' FROM b[2])::timestamptz > c.day END) LOOP
        IF strays IS NOT NULL THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE ts >= %L AND ts < %L)', strays, one, one + interval '1 day') INTO has;
        END IF;
        IF NOT has THEN
            INSERT INTO decision_counts_left (day, left_at) VALUES (one, now()) ON CONFLICT DO NOTHING;
        END IF;
    END LOOP;
END $$;

-- States that were removed because they were not seen for long. Answers say it: a later state of the same key begins again.
ALTER TABLE decision_states_mark ADD COLUMN IF NOT EXISTS trimmed_before timestamptz; -- a state that was last seen before may have been removed; NULL: none was
UPDATE decision_states_mark SET trimmed_before = now() - interval '1 hour' WHERE isfinite(stored_before) AND stored_before > since + interval '1 hour';
CREATE OR REPLACE FUNCTION decision_states_trim(idle interval, keep interval, portion int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    gone bigint;
BEGIN
    IF idle < interval '1 hour' OR keep < interval '1 hour' OR portion NOT BETWEEN 1 AND 100000 THEN
        RAISE EXCEPTION 'states and flips are kept for an hour at least' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The mark is locked first, as where the states change.
    PERFORM FROM decision_states_mark FOR UPDATE;
    DELETE FROM decision_states WHERE (subject, path) IN (SELECT subject, path FROM decision_states WHERE last_seen < now() - idle LIMIT portion);
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
        UPDATE decision_states_mark SET states = greatest(states - gone, 0), trimmed_before = greatest(trimmed_before, now() - idle);
    END IF;
    DELETE FROM decision_flips WHERE flip_id IN (SELECT flip_id FROM decision_flips WHERE noted_at < now() - keep ORDER BY flip_id LIMIT portion);
    DELETE FROM decision_states_revisions WHERE last_at < now() - interval '30 days';
    DELETE FROM decision_states_paths WHERE told AND stored_at < now() - idle;
    RETURN gone;
END $$;

CREATE OR REPLACE FUNCTION decision_states_restart() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM decision_states_mark FOR UPDATE;
    TRUNCATE decision_states, decision_flips, decision_states_paths, decision_states_revisions;
    UPDATE decision_states_mark SET stored_before = '-infinity', states = 0, subject_by = '', since = NULL, full_at = NULL, trimmed_before = NULL;
END $$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION decision_states_trim(interval, interval, int) SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION decision_states_restart() SET search_path = %I, pg_temp', current_schema());
END $$;

-- A role that reads the mark of the counts may read it.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'decision_counts_mark'::regclass AND a.grantee <> c.relowner AND a.privilege_type = 'SELECT' LOOP
        EXECUTE format('GRANT SELECT ON decision_counts_left TO %s', g.who);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
-- decision_counts_count counts what was stored in one span from the mark on, and moves the mark behind it. It stops a slack before the moment from
-- which on more may be stored: it goes by the clock of the server and by the transactions that it saw open, and whoever calls it
-- says nothing of that. more: there is another span. Of several that call it one works, and the others count nothing.
CREATE OR REPLACE FUNCTION decision_counts_count(span interval, slack interval, OUT counted bigint, OUT more boolean) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    mark  decision_counts_mark;
    busy  text[];
    bound timestamptz;
    since timestamptz;
    until timestamptz;
    back  interval := interval '1 day';
    lines decision_counts[];
    hours timestamptz[];
BEGIN
    counted := 0;
    more := false;
    IF span <= interval '0' OR slack < interval '0' OR slack < interval '2 minutes' AND NOT pg_has_role(session_user, current_user, 'MEMBER') THEN
        RAISE EXCEPTION 'a span is above 0, and the mark stays 2 minutes behind the clock' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- A reader that comes after the open transactions were listed has to see the counted rows.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'decisions are counted in READ COMMITTED' USING ERRCODE = 'invalid_transaction_state';
    END IF;
    IF NOT pg_try_advisory_xact_lock('decision_counts_mark'::regclass::int, 1) THEN
        RETURN;
    END IF;
    SELECT coalesce(array_agg(l.virtualtransaction), '{}') INTO busy FROM pg_locks l JOIN pg_stat_activity a USING (pid)
     WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND a.usesysid IS NOT NULL
       AND (a.datid IS NULL OR a.datid = 0 OR a.datid = (SELECT oid FROM pg_database WHERE datname = current_database()))
       AND l.pid <> pg_backend_pid();
    SELECT * INTO STRICT mark FROM decision_counts_mark;
    IF mark.looked_at IS NULL OR NOT mark.open && busy THEN
        mark.complete := greatest(mark.complete, CASE WHEN busy = '{}' THEN statement_timestamp() ELSE mark.looked_at END);
        mark.looked_at := statement_timestamp();
        mark.open := busy;
    END IF;
    bound := least(mark.complete, statement_timestamp()) - slack;
    since := mark.stored_before;
    IF since = '-infinity' AND bound > '-infinity' THEN
        LOOP
            since := bound - back;
            EXIT WHEN back > interval '36500 days' OR NOT EXISTS (SELECT FROM decision_logs WHERE stored_at < since);
            back := back * 4;
        END LOOP;
    END IF;
    until := least(since + span, bound);
    IF since < until THEN
        SELECT array_agg(f.line), array_agg(DISTINCT (f.line).hour), coalesce(sum((f.line).allowed + (f.line).denied + (f.line).undefined + (f.line).error + (f.line).other), 0)
          INTO lines, hours, counted
          FROM (SELECT ROW (hour, path, service, count(*) FILTER (WHERE v = 'allowed'), count(*) FILTER (WHERE v = 'denied'), count(*) FILTER (WHERE v = 'undefined'),
                       count(*) FILTER (WHERE v = 'error'), count(*) FILTER (WHERE v = 'other'))::decision_counts AS line
                  FROM (SELECT date_trunc('hour', d.ts, 'UTC') AS hour, d.path, d.service, CASE WHEN d.allowed THEN 'allowed' WHEN NOT d.allowed THEN 'denied'
	WHEN coalesce(d.raw->'error', 'null') <> 'null' THEN 'error' WHEN coalesce(d.raw->'result', 'null') = 'null' THEN 'undefined' ELSE 'other' END AS v
                          FROM decision_logs d WHERE d.stored_at >= since AND d.stored_at < until) AS d
                 GROUP BY hour, path, service) AS f;
        PERFORM decision_counts_keep(lines);
        -- The sum takes the place of lines that are many for their hour, or whose hour is over.
        WITH many AS (SELECT c.hour FROM decision_counts c WHERE c.hour = ANY (hours)
                       GROUP BY c.hour HAVING count(*) > count(DISTINCT (c.path, c.service)) * CASE WHEN c.hour < now() - interval '3 hours' THEN 1 ELSE 10 END),
             gone AS (DELETE FROM decision_counts c USING many m WHERE c.hour = m.hour RETURNING c.*)
        INSERT INTO decision_counts (hour, path, service, allowed, denied, undefined, error, other)
        SELECT hour, path, service, sum(allowed), sum(denied), sum(undefined), sum(error), sum(other) FROM gone GROUP BY 1, 2, 3;
        -- A day that is over keeps up to two lines on average: it is larger than an hour, and what comes late comes in drops.
        WITH many AS (SELECT c.day FROM decision_counts_days c WHERE c.day = ANY (ARRAY(SELECT DISTINCT date_trunc('day', h, 'UTC') FROM unnest(hours) AS h))
                       GROUP BY c.day HAVING count(*) > count(DISTINCT (c.path, c.service)) * CASE WHEN c.day < now() - interval '27 hours' THEN 2 ELSE 10 END),
             gone AS (DELETE FROM decision_counts_days c USING many m WHERE c.day = m.day RETURNING c.*)
        INSERT INTO decision_counts_days (day, path, service, allowed, denied, undefined, error, other)
        SELECT day, path, service, sum(allowed), sum(denied), sum(undefined), sum(error), sum(other) FROM gone GROUP BY 1, 2, 3;
        mark.stored_before := until;
        more := until < bound;
    END IF;
    UPDATE decision_counts_mark SET stored_before = mark.stored_before, complete = mark.complete, looked_at = mark.looked_at, open = mark.open;
END $$;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION decision_counts_count(interval, interval) SET search_path = %I, pg_temp', current_schema());
    ALTER FUNCTION decision_counts_count(interval, interval) SET jit = off;
    ALTER FUNCTION decision_counts_count(interval, interval) SET enable_seqscan = off;
    ALTER FUNCTION decision_counts_count(interval, interval) SET plan_cache_mode = force_custom_plan;
END $$;

CREATE OR REPLACE FUNCTION decision_states_trim(idle interval, keep interval, portion int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    gone bigint;
BEGIN
    IF idle < interval '1 hour' OR keep < interval '1 hour' OR portion NOT BETWEEN 1 AND 100000 THEN
        RAISE EXCEPTION 'states and flips are kept for an hour at least' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The mark is locked first, as where the states change.
    PERFORM FROM decision_states_mark FOR UPDATE;
    DELETE FROM decision_states WHERE (subject, path) IN (SELECT subject, path FROM decision_states WHERE last_seen < now() - idle LIMIT portion);
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
        UPDATE decision_states_mark SET states = greatest(states - gone, 0);
    END IF;
    DELETE FROM decision_flips WHERE flip_id IN (SELECT flip_id FROM decision_flips WHERE noted_at < now() - keep ORDER BY flip_id LIMIT portion);
    DELETE FROM decision_states_revisions WHERE last_at < now() - interval '30 days';
    DELETE FROM decision_states_paths WHERE told AND stored_at < now() - idle;
    RETURN gone;
END $$;

CREATE OR REPLACE FUNCTION decision_states_restart() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM decision_states_mark FOR UPDATE;
    TRUNCATE decision_states, decision_flips, decision_states_paths, decision_states_revisions;
    UPDATE decision_states_mark SET stored_before = '-infinity', states = 0, subject_by = '', since = NULL, full_at = NULL;
END $$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION decision_states_trim(interval, interval, int) SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION decision_states_restart() SET search_path = %I, pg_temp', current_schema());
END $$;
-- +goose StatementEnd
DROP TABLE IF EXISTS decision_counts_left;
ALTER TABLE decision_states_mark DROP COLUMN IF EXISTS trimmed_before;
