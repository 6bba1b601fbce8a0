-- Counters of dead letters lie close together again after a flood: each answer reads all of them.

-- +goose Up
-- +goose StatementBegin
-- dead_letters_compact puts the sums of counters in the place of their rows. It takes the rows that it sees; what is added meanwhile is left for
-- the next time. A row at the end of a table that is mostly empty keeps all pages before it on the disk. So the rows behind the middle are written
-- again, unless dead rows still take the place, or nothing counts these.
CREATE OR REPLACE FUNCTION dead_letters_compact() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    beyond tid;
BEGIN
    SELECT CASE WHEN pages > 16 + rows / 20 AND dead <= 1000 + rows / 5 AND current_setting('track_counts')::boolean THEN format('(%s,0)', pages / 2)::tid END INTO beyond
      FROM (SELECT pg_relation_size('dead_letter_counts') / current_setting('block_size')::bigint, pg_stat_get_dead_tuples('dead_letter_counts'::regclass), (SELECT count(*) FROM dead_letter_counts)) AS t (pages, dead, rows);
    WITH many AS (
        SELECT group_id, path, state FROM dead_letter_counts c GROUP BY 1, 2, 3 HAVING count(*) > 1 OR sum(n) = 0 OR coalesce(bool_or(c.ctid >= beyond), false)),
    gone AS (
        DELETE FROM dead_letter_counts c USING many m WHERE (c.group_id, c.path, c.state) = (m.group_id, m.path, m.state)
        RETURNING c.group_id, c.path, c.state, c.n)
    INSERT INTO dead_letter_counts SELECT group_id, path, state, sum(n) FROM gone GROUP BY 1, 2, 3 HAVING sum(n) <> 0;
    SELECT CASE WHEN pages > 16 + rows / 20 AND dead <= 1000 + rows / 5 AND current_setting('track_counts')::boolean THEN format('(%s,0)', pages / 2)::tid END INTO beyond
      FROM (SELECT pg_relation_size('dead_letter_days') / current_setting('block_size')::bigint, pg_stat_get_dead_tuples('dead_letter_days'::regclass), (SELECT count(*) FROM dead_letter_days)) AS t (pages, dead, rows);
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

DO $$ BEGIN EXECUTE format('ALTER FUNCTION dead_letters_compact() SET search_path = %I, pg_temp', current_schema()); END $$;
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
-- +goose StatementEnd
