-- A dead letter that a person closed can be the only copy of a decision: it leaves the ledger only once an archive has it. All of
-- this can be run again where a break left it unfinished.

-- +goose NO TRANSACTION
-- +goose Up
-- +goose StatementBegin
ALTER TABLE dead_letters ADD COLUMN IF NOT EXISTS archived_in text;
COMMENT ON COLUMN dead_letters.archived_in IS 'the archive that holds this dead letter as it is; see docs/archive.md';
INSERT INTO dead_letter_moves SELECT NULL, 'RESOLVED', 'restored' WHERE NOT EXISTS (SELECT FROM dead_letter_moves WHERE act = 'restored');

CREATE OR REPLACE FUNCTION dead_letters_entered() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF EXISTS (SELECT FROM came WHERE (state <> 'PENDING' OR changed_act <> 'entered')
                                  AND (state <> 'RESOLVED' OR changed_act <> 'restored' OR archived_in IS NULL)) THEN
        RAISE EXCEPTION 'a dead letter enters the ledger as PENDING, or is restored from an archive' USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    INSERT INTO dead_letter_audit (at, dead_letter_id, act, to_state, actor, why, attempts, job_id)
        SELECT changed_at, dead_letter_id, changed_act, state, changed_by, why, attempts, job_id FROM came;
    INSERT INTO dead_letter_counts SELECT group_id, path, state, count(*) FROM came GROUP BY 1, 2, 3;
    INSERT INTO dead_letter_days SELECT (last_failed_at AT TIME ZONE 'UTC')::date, origin_topic, origin_partition, group_id, state, count(*) FROM came GROUP BY 1, 2, 3, 4, 5;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION dead_letters_moved() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    wrong text;
BEGIN
    -- Whoever changes a state by hand and says nothing of it is named by the role.
    SELECT format('%s from %s to %s by %s', o.dead_letter_id, o.state, n.state, n.changed_act) INTO wrong
      FROM was o JOIN is_now n USING (dead_letter_id)
     WHERE o.state <> n.state
       AND NOT EXISTS (SELECT FROM dead_letter_moves m WHERE m.from_state = o.state AND m.to_state = n.state AND m.act = n.changed_act)
     LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'a dead letter cannot move like that: %', wrong USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    IF (SELECT count(*) FROM was) <> (SELECT count(*) FROM was JOIN is_now USING (dead_letter_id)) THEN
        RAISE EXCEPTION 'a dead letter keeps its id' USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    IF EXISTS (SELECT FROM was o JOIN is_now n USING (dead_letter_id) WHERE n.archived_in IS DISTINCT FROM o.archived_in AND n.state <> 'RESOLVED') THEN
        RAISE EXCEPTION 'only what is RESOLVED is archived' USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    INSERT INTO dead_letter_audit (at, dead_letter_id, act, from_state, to_state, actor, why, attempts, job_id, original, diff)
        SELECT CASE WHEN n.changed_at = o.changed_at THEN clock_timestamp() ELSE n.changed_at END, n.dead_letter_id,
               CASE WHEN o.state <> n.state THEN n.changed_act WHEN n.attempts <> o.attempts THEN 'died'
                    WHEN n.value IS DISTINCT FROM o.value THEN 'edited' ELSE 'archived' END, o.state, n.state,
               CASE WHEN n.changed_at <> o.changed_at THEN n.changed_by
                    WHEN n.archived_in IS DISTINCT FROM o.archived_in THEN coalesce(nullif(current_setting('docket.actor', true), ''), session_user || ' (SQL)')
                    ELSE session_user || ' (SQL)' END,
               CASE WHEN n.changed_at <> o.changed_at THEN n.why
                    WHEN n.archived_in IS DISTINCT FROM o.archived_in THEN coalesce('in ' || n.archived_in, 'in no archive')
                    ELSE 'changed by hand' END,
               n.attempts, n.job_id, CASE WHEN n.value IS DISTINCT FROM o.value THEN o.value END,
               CASE WHEN n.value IS DISTINCT FROM o.value THEN nullif(current_setting('docket.diff', true), '') END
          FROM was o JOIN is_now n USING (dead_letter_id)
         WHERE o.state <> n.state OR n.attempts <> o.attempts OR n.value IS DISTINCT FROM o.value OR n.archived_in IS DISTINCT FROM o.archived_in;
    INSERT INTO dead_letter_counts
        SELECT group_id, path, state, sum(n) FROM (
            SELECT group_id, path, state, -1 AS n FROM was UNION ALL SELECT group_id, path, state, 1 FROM is_now) c
         GROUP BY 1, 2, 3 HAVING sum(n) <> 0;
    INSERT INTO dead_letter_days
        SELECT (last_failed_at AT TIME ZONE 'UTC')::date, origin_topic, origin_partition, group_id, state, sum(n) FROM (
            SELECT last_failed_at, origin_topic, origin_partition, group_id, state, -1 AS n FROM was UNION ALL
            SELECT last_failed_at, origin_topic, origin_partition, group_id, state, 1 FROM is_now) c
         GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION dead_letters_left() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    only_copy text;
BEGIN
    IF EXISTS (SELECT FROM gone WHERE state <> 'RESOLVED') THEN
        RAISE EXCEPTION 'only what is RESOLVED leaves the ledger' USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    SELECT dead_letter_id INTO only_copy FROM gone WHERE archived_in IS NULL AND changed_act <> 'stored' AND octet_length(value) > 0 LIMIT 1;
    IF only_copy IS NOT NULL THEN
        RAISE EXCEPTION 'dead letter % may be the only copy of a decision', only_copy USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_archived',
            HINT = 'archive it first: docket archive --dead-letters';
    END IF;
    INSERT INTO dead_letter_audit (dead_letter_id, act, from_state, actor, why, attempts, job_id)
        SELECT dead_letter_id, 'removed', state, coalesce(nullif(current_setting('docket.actor', true), ''), session_user || ' (SQL)'),
               coalesce(nullif(current_setting('docket.why', true), ''), 'removed by hand'), attempts, job_id FROM gone;
    INSERT INTO dead_letter_counts SELECT group_id, path, state, -count(*) FROM gone GROUP BY 1, 2, 3;
    INSERT INTO dead_letter_days SELECT (last_failed_at AT TIME ZONE 'UTC')::date, origin_topic, origin_partition, group_id, state, -count(*) FROM gone GROUP BY 1, 2, 3, 4, 5;
    RETURN NULL;
END $$;

DO $$
DECLARE
    f text;
BEGIN
    FOREACH f IN ARRAY ARRAY['entered', 'moved', 'left'] LOOP -- as they were made: a replaced function loses its settings
        EXECUTE format('ALTER FUNCTION dead_letters_%s() SET search_path = %I, pg_temp', f, current_schema());
        EXECUTE format('ALTER FUNCTION dead_letters_%s() SET enable_nestloop = off', f);
    END LOOP;
END $$;
-- +goose StatementEnd

DROP INDEX CONCURRENTLY IF EXISTS dead_letters_unarchived;
CREATE INDEX CONCURRENTLY dead_letters_unarchived ON dead_letters (changed_at)
    WHERE state = 'RESOLVED' AND archived_in IS NULL AND changed_act <> 'stored' AND octet_length(value) > 0;
DROP INDEX CONCURRENTLY IF EXISTS dead_letters_removable;
CREATE INDEX CONCURRENTLY dead_letters_removable ON dead_letters (changed_at)
    WHERE state = 'RESOLVED' AND (archived_in IS NOT NULL OR changed_act = 'stored' OR coalesce(octet_length(value), 0) = 0);
DROP INDEX CONCURRENTLY IF EXISTS dead_letters_resolved;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS dead_letters_resolved;
CREATE INDEX CONCURRENTLY dead_letters_resolved ON dead_letters (changed_at) WHERE state = 'RESOLVED';
DROP INDEX CONCURRENTLY IF EXISTS dead_letters_removable;
DROP INDEX CONCURRENTLY IF EXISTS dead_letters_unarchived;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION dead_letters_entered() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF EXISTS (SELECT FROM came WHERE state <> 'PENDING' OR changed_act <> 'entered') THEN
        RAISE EXCEPTION 'a dead letter enters the ledger as PENDING' USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    INSERT INTO dead_letter_audit (at, dead_letter_id, act, to_state, actor, why, attempts, job_id)
        SELECT changed_at, dead_letter_id, changed_act, state, changed_by, why, attempts, job_id FROM came;
    INSERT INTO dead_letter_counts SELECT group_id, path, state, count(*) FROM came GROUP BY 1, 2, 3;
    INSERT INTO dead_letter_days SELECT (last_failed_at AT TIME ZONE 'UTC')::date, origin_topic, origin_partition, group_id, state, count(*) FROM came GROUP BY 1, 2, 3, 4, 5;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION dead_letters_moved() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    wrong text;
BEGIN
    -- Whoever changes a state by hand and says nothing of it is named by the role.
    SELECT format('%s from %s to %s by %s', o.dead_letter_id, o.state, n.state, n.changed_act) INTO wrong
      FROM was o JOIN is_now n USING (dead_letter_id)
     WHERE o.state <> n.state
       AND NOT EXISTS (SELECT FROM dead_letter_moves m WHERE m.from_state = o.state AND m.to_state = n.state AND m.act = n.changed_act)
     LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'a dead letter cannot move like that: %', wrong USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    IF (SELECT count(*) FROM was) <> (SELECT count(*) FROM was JOIN is_now USING (dead_letter_id)) THEN
        RAISE EXCEPTION 'a dead letter keeps its id' USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    INSERT INTO dead_letter_audit (at, dead_letter_id, act, from_state, to_state, actor, why, attempts, job_id, original, diff)
        SELECT n.changed_at, n.dead_letter_id,
               CASE WHEN o.state <> n.state THEN n.changed_act WHEN n.attempts <> o.attempts THEN 'died' ELSE 'edited' END, o.state, n.state,
               CASE WHEN n.changed_at = o.changed_at THEN session_user || ' (SQL)' ELSE n.changed_by END,
               CASE WHEN n.changed_at = o.changed_at THEN 'changed by hand' ELSE n.why END,
               n.attempts, n.job_id, CASE WHEN n.value IS DISTINCT FROM o.value THEN o.value END,
               CASE WHEN n.value IS DISTINCT FROM o.value THEN nullif(current_setting('docket.diff', true), '') END
          FROM was o JOIN is_now n USING (dead_letter_id)
         WHERE o.state <> n.state OR n.attempts <> o.attempts OR n.value IS DISTINCT FROM o.value;
    INSERT INTO dead_letter_counts
        SELECT group_id, path, state, sum(n) FROM (
            SELECT group_id, path, state, -1 AS n FROM was UNION ALL SELECT group_id, path, state, 1 FROM is_now) c
         GROUP BY 1, 2, 3 HAVING sum(n) <> 0;
    INSERT INTO dead_letter_days
        SELECT (last_failed_at AT TIME ZONE 'UTC')::date, origin_topic, origin_partition, group_id, state, sum(n) FROM (
            SELECT last_failed_at, origin_topic, origin_partition, group_id, state, -1 AS n FROM was UNION ALL
            SELECT last_failed_at, origin_topic, origin_partition, group_id, state, 1 FROM is_now) c
         GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION dead_letters_left() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF EXISTS (SELECT FROM gone WHERE state <> 'RESOLVED') THEN
        RAISE EXCEPTION 'only what is RESOLVED leaves the ledger' USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    INSERT INTO dead_letter_audit (dead_letter_id, act, from_state, actor, why, attempts, job_id)
        SELECT dead_letter_id, 'removed', state, coalesce(nullif(current_setting('docket.actor', true), ''), session_user || ' (SQL)'),
               coalesce(nullif(current_setting('docket.why', true), ''), 'removed by hand'), attempts, job_id FROM gone;
    INSERT INTO dead_letter_counts SELECT group_id, path, state, -count(*) FROM gone GROUP BY 1, 2, 3;
    INSERT INTO dead_letter_days SELECT (last_failed_at AT TIME ZONE 'UTC')::date, origin_topic, origin_partition, group_id, state, -count(*) FROM gone GROUP BY 1, 2, 3, 4, 5;
    RETURN NULL;
END $$;

DO $$
DECLARE
    f text;
BEGIN
    FOREACH f IN ARRAY ARRAY['entered', 'moved', 'left'] LOOP
        EXECUTE format('ALTER FUNCTION dead_letters_%s() SET search_path = %I, pg_temp', f, current_schema());
        EXECUTE format('ALTER FUNCTION dead_letters_%s() SET enable_nestloop = off', f);
    END LOOP;
END $$;
DELETE FROM dead_letter_moves WHERE act = 'restored';
ALTER TABLE dead_letters DROP COLUMN IF EXISTS archived_in;
-- +goose StatementEnd
