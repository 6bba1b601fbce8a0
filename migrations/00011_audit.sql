-- Who changed the ledger, as the server knows it and as the program says it. No role of Docket can change what is counted: rates,
-- the counters of the ledger and what leaves it are changed by functions that work as their owner.

-- +goose Up
LOCK TABLE dead_letters IN SHARE ROW EXCLUSIVE MODE; -- before the audit, as whoever moves a letter has them in that order
ALTER TABLE dead_letter_audit ADD COLUMN IF NOT EXISTS login name, ADD COLUMN IF NOT EXISTS application text, ADD COLUMN IF NOT EXISTS client inet, ADD COLUMN IF NOT EXISTS was jsonb;
-- Triggers add the lines as their owner, and the defaults are evaluated in the session that caused them. Lines of before stay NULL.
ALTER TABLE dead_letter_audit ALTER COLUMN login SET DEFAULT session_user,
    ALTER COLUMN application SET DEFAULT nullif(current_setting('application_name'), ''), ALTER COLUMN client SET DEFAULT inet_client_addr();
COMMENT ON COLUMN dead_letter_audit.actor IS 'who did it, as the program says: a token of the API, --operator, a desk';
COMMENT ON COLUMN dead_letter_audit.login IS 'the login of the session (session_user); NULL in lines of an earlier release';
COMMENT ON COLUMN dead_letter_audit.application IS 'application_name of the session, which the program chooses';
COMMENT ON COLUMN dead_letter_audit.client IS 'the address that the session came from; NULL for a local socket';
COMMENT ON COLUMN dead_letter_audit.was IS 'of an act "changed": the columns that no move accounts for, with their values before';

-- How long what is RESOLVED stays at the least, whatever a desk is told. Its owner can replace this function.
CREATE OR REPLACE FUNCTION dead_letters_keep() RETURNS interval LANGUAGE sql STABLE AS $$ SELECT interval '7 days' $$;

-- +goose StatementBegin
-- dead_letters_changed accounts for what dead_letters_moved writes no line for. changed_at decides what may be removed, and
-- changed_act whether an archive has to have it before, so neither is for a program to choose.
CREATE OR REPLACE FUNCTION dead_letters_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    ids     text[];
    dated   text;
    named   text;
    shelved text;
BEGIN
    SELECT array_agg(n.dead_letter_id) FILTER (WHERE
               (n.key, n.headers, n.origin_topic, n.origin_partition, n.origin_offset, n.origin_index, n.origin_timestamp, n.first_failed_at, n.seen_at, n.parent_id)
                   IS DISTINCT FROM (o.key, o.headers, o.origin_topic, o.origin_partition, o.origin_offset, o.origin_index, o.origin_timestamp, o.first_failed_at, o.seen_at, o.parent_id)
               OR (n.group_id, n.message, n.last_failed_at, n.found_topic, n.found_partition, n.found_offset, n.found_at)
                   IS DISTINCT FROM (o.group_id, o.message, o.last_failed_at, o.found_topic, o.found_partition, o.found_offset, o.found_at)
                   AND NOT (n.changed_act = 'died' AND n.changed_at <> o.changed_at AND n.attempts = o.attempts + 1)
               OR (n.changed_at, n.changed_by, n.why, n.owner, n.lease_until, n.job_id) IS DISTINCT FROM (o.changed_at, o.changed_by, o.why, o.owner, o.lease_until, o.job_id)
                   AND NOT (n.changed_at <> o.changed_at AND (n.state <> o.state OR n.attempts = o.attempts + 1 OR n.value IS DISTINCT FROM o.value))
                   -- A relay that published a retry gives it more time.
                   AND NOT ((n.changed_at, n.changed_by, n.why, n.owner, n.job_id) IS NOT DISTINCT FROM (o.changed_at, o.changed_by, o.why, o.owner, o.job_id)
                       AND n.state = 'PROCESSING' AND n.lease_until > o.lease_until AND n.lease_until < clock_timestamp() + interval '8 days')
               OR (n.path, n.decision_id, n.decision_ts, n.edited) IS DISTINCT FROM (o.path, o.decision_id, o.decision_ts, o.edited)
                   AND NOT (n.edited AND n.value IS DISTINCT FROM o.value AND n.changed_at <> o.changed_at)),
           min(n.dead_letter_id) FILTER (WHERE n.changed_at <> o.changed_at AND n.changed_at NOT BETWEEN now() - interval '1 minute' AND clock_timestamp() + interval '1 minute'),
           min(n.dead_letter_id) FILTER (WHERE n.changed_act <> o.changed_act AND n.state = o.state AND NOT (n.changed_act = 'died' AND n.attempts = o.attempts + 1)),
           min(n.dead_letter_id) FILTER (WHERE n.archived_in IS DISTINCT FROM o.archived_in)
      INTO ids, dated, named, shelved
      FROM was o JOIN is_now n USING (dead_letter_id);
    IF dated IS NOT NULL THEN
        RAISE EXCEPTION 'changed_at of a dead letter is the time of the change: %', dated USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    IF named IS NOT NULL THEN
        RAISE EXCEPTION 'changed_act of a dead letter is that of its last move: %', named USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    IF shelved IS NOT NULL AND NOT pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN
        RAISE EXCEPTION 'only the owner of the ledger says what is archived: %', shelved USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF ids IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO dead_letter_audit (dead_letter_id, act, from_state, to_state, actor, why, attempts, job_id, was)
        SELECT c.dead_letter_id, 'changed', c.state, c.state, CASE WHEN c.said THEN c.changed_by ELSE session_user || ' (SQL)' END,
               CASE WHEN c.said THEN c.why ELSE 'changed by hand' END, c.attempts, c.job_id,
               (SELECT jsonb_object_agg(b.key, b.value) FROM jsonb_each(c.before) b
                 WHERE b.value IS DISTINCT FROM c.after -> b.key AND NOT (c.moved AND b.key = ANY ('{changed_at,changed_by,why,owner,lease_until,job_id}')))
          FROM (SELECT n.*, n.changed_at <> o.changed_at AS said, n.changed_at <> o.changed_at AND n.state <> o.state AS moved,
                       (SELECT to_jsonb(r) FROM (SELECT o.key, o.headers, o.origin_topic, o.origin_partition, o.origin_offset, o.origin_index, o.origin_timestamp, o.first_failed_at,
                            o.seen_at, o.parent_id, o.group_id, o.message, o.last_failed_at, o.found_topic, o.found_partition, o.found_offset, o.found_at,
                            o.path, o.decision_id, o.decision_ts, o.edited, o.changed_at, o.changed_by, o.why, o.owner, o.lease_until, o.job_id) r) AS before,
                       (SELECT to_jsonb(r) FROM (SELECT n.key, n.headers, n.origin_topic, n.origin_partition, n.origin_offset, n.origin_index, n.origin_timestamp, n.first_failed_at,
                            n.seen_at, n.parent_id, n.group_id, n.message, n.last_failed_at, n.found_topic, n.found_partition, n.found_offset, n.found_at,
                            n.path, n.decision_id, n.decision_ts, n.edited, n.changed_at, n.changed_by, n.why, n.owner, n.lease_until, n.job_id) r) AS after
                  FROM was o JOIN is_now n USING (dead_letter_id) WHERE n.dead_letter_id = ANY (ids)) c;
    RETURN NULL;
END $$;

-- dead_letters_came is for what dead_letters_entered does not look at.
CREATE OR REPLACE FUNCTION dead_letters_came() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    dated    text;
    restored text;
BEGIN
    SELECT min(dead_letter_id) FILTER (WHERE changed_at NOT BETWEEN now() - interval '1 minute' AND clock_timestamp() + interval '1 minute'),
           min(dead_letter_id) FILTER (WHERE changed_act = 'restored' OR archived_in IS NOT NULL)
      INTO dated, restored FROM came;
    IF dated IS NOT NULL THEN
        RAISE EXCEPTION 'changed_at of a dead letter is the time of the change: %', dated USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    IF restored IS NOT NULL AND NOT pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN
        RAISE EXCEPTION 'only the owner of the ledger restores what was archived: %', restored USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;

-- dead_letters_young keeps what was RESOLVED a short time ago, whoever deletes. A minute is for the clock of a former desk.
CREATE OR REPLACE FUNCTION dead_letters_young() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    young text;
BEGIN
    SELECT dead_letter_id INTO young FROM gone WHERE changed_at > now() - dead_letters_keep() + interval '1 minute' LIMIT 1;
    IF young IS NOT NULL THEN
        RAISE EXCEPTION 'dead letter % was resolved less than % ago', young, dead_letters_keep() USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_keep';
    END IF;
    RETURN NULL;
END $$;

-- Letters that stay although they are RESOLVED: a later step that still needs some replaces this function.
CREATE OR REPLACE FUNCTION dead_letters_awaited() RETURNS SETOF text LANGUAGE sql STABLE AS $$ SELECT NULL::text WHERE false $$;

-- dead_letters_remove is how a desk removes what was RESOLVED before a moment and long enough ago, at most so many; the triggers see to the
-- rest. The retries of what is removed go with it, but for those that ended dead: their records may stand in a dead-letter topic for
-- longer, under ids of their own, and have to be known when they are read again.
CREATE OR REPLACE FUNCTION dead_letters_remove(resolved_before timestamptz, most int, actor text, reason text) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    ids     text[];
    removed int;
BEGIN
    IF coalesce(actor, '') = '' THEN
        RAISE EXCEPTION 'whoever removes a dead letter has to be named' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT array_agg(dead_letter_id) INTO ids FROM (
        SELECT d.dead_letter_id FROM dead_letters d
         WHERE d.state = 'RESOLVED' AND (d.archived_in IS NOT NULL OR d.changed_act = 'stored' OR coalesce(octet_length(d.value), 0) = 0)
           AND d.changed_at < least(resolved_before, now() - dead_letters_keep())
           AND d.dead_letter_id <> ALL (ARRAY(SELECT dead_letters_awaited()))
         ORDER BY d.changed_at LIMIT most FOR UPDATE SKIP LOCKED) d;
    IF ids IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM set_config('docket.actor', actor, true), set_config('docket.why', reason, true);
    DELETE FROM dead_letter_outbox o USING (
        SELECT outbox_id FROM dead_letter_outbox WHERE dead_letter_id = ANY (ids) AND outcome IS DISTINCT FROM 'dead' ORDER BY outbox_id FOR UPDATE) n
     WHERE o.outbox_id = n.outbox_id;
    DELETE FROM dead_letters WHERE dead_letter_id = ANY (ids);
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;

-- dead_letters_compact puts the sums of counters in the place of their rows. It takes the rows that it sees; what is added meanwhile is left for
-- the next time.
CREATE OR REPLACE FUNCTION dead_letters_compact() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    WITH many AS (
        SELECT group_id, path, state FROM dead_letter_counts GROUP BY 1, 2, 3 HAVING count(*) > 1 OR sum(n) = 0),
    gone AS (
        DELETE FROM dead_letter_counts c USING many m WHERE (c.group_id, c.path, c.state) = (m.group_id, m.path, m.state)
        RETURNING c.group_id, c.path, c.state, c.n)
    INSERT INTO dead_letter_counts SELECT group_id, path, state, sum(n) FROM gone GROUP BY 1, 2, 3 HAVING sum(n) <> 0;
    WITH many AS (
        SELECT day, origin_topic, origin_partition, group_id, state FROM dead_letter_days GROUP BY 1, 2, 3, 4, 5 HAVING count(*) > 1 OR sum(n) = 0),
    gone AS (
        DELETE FROM dead_letter_days c USING many m
        WHERE (c.day, c.origin_topic, c.origin_partition, c.group_id, c.state) = (m.day, m.origin_topic, m.origin_partition, m.group_id, m.state)
        RETURNING c.*)
    INSERT INTO dead_letter_days SELECT day, origin_topic, origin_partition, group_id, state, sum(n) FROM gone GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0;
    WITH many AS (
        SELECT job_id, outcome FROM dead_letter_job_ends GROUP BY 1, 2 HAVING count(*) > 1 OR sum(n) = 0),
    gone AS (
        DELETE FROM dead_letter_job_ends e USING many m WHERE (e.job_id, e.outcome) = (m.job_id, m.outcome)
        RETURNING e.job_id, e.outcome, e.n)
    INSERT INTO dead_letter_job_ends SELECT job_id, outcome, sum(n) FROM gone GROUP BY 1, 2 HAVING sum(n) <> 0;
END $$;
-- +goose StatementEnd

-- Behind "moved", so that the line of a move comes before what it does not account for.
CREATE OR REPLACE TRIGGER other AFTER UPDATE ON dead_letters REFERENCING OLD TABLE AS was NEW TABLE AS is_now FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_changed();
CREATE OR REPLACE TRIGGER came AFTER INSERT ON dead_letters REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_came();
CREATE OR REPLACE TRIGGER young AFTER DELETE ON dead_letters REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_young();

-- The mark of the rates also knows up to where all was stored, and what was open when that was asked last.
ALTER TABLE decision_counts_mark ADD COLUMN IF NOT EXISTS complete timestamptz NOT NULL DEFAULT '-infinity', ADD COLUMN IF NOT EXISTS looked_at timestamptz,
    ADD COLUMN IF NOT EXISTS open text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN decision_counts_mark.complete IS 'all that was stored before has been committed';

-- +goose StatementBegin
-- decision_counts_keep adds lines to the hours and to the days, and is the only place that does, so that neither is ever without the
-- other. It is for the owner of the tables.
CREATE OR REPLACE FUNCTION decision_counts_keep(lines decision_counts[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO decision_counts (hour, path, service, allowed, denied, undefined, error, other)
    SELECT hour, path, service, allowed, denied, undefined, error, other FROM unnest(lines);
    INSERT INTO decision_counts_days (day, path, service, allowed, denied, undefined, error, other)
    SELECT date_trunc('day', hour, 'UTC'), path, service, sum(allowed), sum(denied), sum(undefined), sum(error), sum(other) FROM unnest(lines) GROUP BY 1, 2, 3;
END $$;

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
    -- What is counted has to be seen by whoever looks after the open transactions were listed.
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

-- All of them are for those who are named, and see the tables of this schema alone.
DO $$
DECLARE
    f text;
BEGIN
    FOREACH f IN ARRAY ARRAY['dead_letters_keep()', 'dead_letters_awaited()', 'dead_letters_changed()', 'dead_letters_came()', 'dead_letters_young()', 'dead_letters_remove(timestamptz, int, text, text)',
        'dead_letters_compact()', 'decision_counts_keep(decision_counts[])', 'decision_counts_count(interval, interval)'] LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
    END LOOP;
    -- A plan that was made for a statement of one row is kept for the next, of a hundred thousand.
    ALTER FUNCTION dead_letters_changed() SET enable_nestloop = off;
    -- What a line of the audit keeps does not depend on the session that changed it.
    ALTER FUNCTION dead_letters_changed() SET TimeZone = 'UTC';
    ALTER FUNCTION dead_letters_changed() SET bytea_output = 'hex';
    ALTER FUNCTION decision_counts_count(interval, interval) SET jit = off;
    ALTER FUNCTION decision_counts_count(interval, interval) SET enable_seqscan = off;
    ALTER FUNCTION decision_counts_count(interval, interval) SET plan_cache_mode = force_custom_plan;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER other ON dead_letters;
DROP TRIGGER came ON dead_letters;
DROP TRIGGER young ON dead_letters;
DROP FUNCTION dead_letters_keep(), dead_letters_awaited(), dead_letters_changed(), dead_letters_came(), dead_letters_young(), dead_letters_remove(timestamptz, int, text, text), dead_letters_compact(),
    decision_counts_keep(decision_counts[]), decision_counts_count(interval, interval);
ALTER TABLE dead_letter_audit DROP COLUMN login, DROP COLUMN application, DROP COLUMN client, DROP COLUMN was;
ALTER TABLE decision_counts_mark DROP COLUMN complete, DROP COLUMN looked_at, DROP COLUMN open;
