-- Counters of dead letters lie close together again after a flood: each answer reads all of them.

-- +goose Up
-- +goose StatementBegin
-- counters_beyond returns the place behind which the rows of a table are better written again: the middle of a table that is mostly empty. A row
-- that stays at the end of a table keeps all before it on the disk. NULL: the table is close, or its dead rows still take the place.
CREATE OR REPLACE FUNCTION counters_beyond(counters regclass, rows bigint) RETURNS tid LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN pages > 16 + rows / 20 AND pg_stat_get_dead_tuples(counters) <= 1000 + rows / 5 THEN format('(%s,0)', pages / 2)::tid END
      FROM (SELECT pg_relation_size(counters) / current_setting('block_size')::bigint) AS t (pages)
$$;

-- dead_letters_compact puts the sums of counters in the place of their rows. It takes the rows that it sees; what is added meanwhile is left for
-- the next time.
CREATE OR REPLACE FUNCTION dead_letters_compact() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    beyond tid;
BEGIN
    beyond := counters_beyond('dead_letter_counts', (SELECT count(*) FROM dead_letter_counts));
    WITH many AS (
        SELECT group_id, path, state FROM dead_letter_counts c GROUP BY 1, 2, 3 HAVING count(*) > 1 OR sum(n) = 0 OR coalesce(bool_or(c.ctid >= beyond), false)),
    gone AS (
        DELETE FROM dead_letter_counts c USING many m WHERE (c.group_id, c.path, c.state) = (m.group_id, m.path, m.state)
        RETURNING c.group_id, c.path, c.state, c.n)
    INSERT INTO dead_letter_counts SELECT group_id, path, state, sum(n) FROM gone GROUP BY 1, 2, 3 HAVING sum(n) <> 0;
    beyond := counters_beyond('dead_letter_days', (SELECT count(*) FROM dead_letter_days));
    WITH many AS (
        SELECT day, origin_topic, origin_partition, group_id, state FROM dead_letter_days c GROUP BY 1, 2, 3, 4, 5
        HAVING count(*) > 1 OR sum(n) = 0 OR coalesce(bool_or(c.ctid >= beyond), false)),
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

DO $$
DECLARE
    f text;
BEGIN
    FOREACH f IN ARRAY ARRAY['counters_beyond(regclass, bigint)', 'dead_letters_compact()'] LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
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
DO $$ BEGIN EXECUTE format('ALTER FUNCTION dead_letters_compact() SET search_path = %I, pg_temp', current_schema()); END $$;
DROP FUNCTION counters_beyond(regclass, bigint);
-- +goose StatementEnd
