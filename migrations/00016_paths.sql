-- Services can invent paths without end, and counts are kept for ever. So a path needs a name to have lines of its own, names are few, and
-- what has none is counted as (other).

-- +goose Up
CREATE TABLE IF NOT EXISTS decision_counts_names (
    service text NOT NULL, -- '' where there is none, and so is path
    path    text NOT NULL,
    seen    date NOT NULL, -- the day, in UTC, on which it was counted last
    PRIMARY KEY (service, path)
);
COMMENT ON TABLE decision_counts_names IS 'paths that have lines of their own in decision_counts and decision_counts_days; all others are counted as (other)';

-- How many names there may be of one service, and in all. The owner can replace this function.
CREATE OR REPLACE FUNCTION decision_counts_most(OUT of_service int, OUT in_all int) LANGUAGE sql STABLE AS $$ SELECT 200, 2000 $$;

-- +goose StatementBegin
-- decision_counts_keep adds lines to the hours and to the days, and is the only place that does, so that neither is ever without the
-- other. It is for the owner of the tables. A name is kept until it was not counted for 7 days, so that what comes later takes none away.
CREATE OR REPLACE FUNCTION decision_counts_keep(lines decision_counts[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
BEGIN
    DELETE FROM decision_counts_names WHERE seen < today - 7;
    IF EXISTS (SELECT FROM decision_counts_names WHERE seen < today) THEN
        UPDATE decision_counts_names n SET seen = today FROM (SELECT DISTINCT coalesce(service, '') AS service, coalesce(path, '') AS path FROM unnest(lines)) l
         WHERE n.seen < today AND n.service = l.service AND n.path = l.path;
    END IF;
    -- Each service gets its first name before another gets its second; what has more decisions comes first.
    INSERT INTO decision_counts_names (service, path, seen)
    SELECT service, path, today
      FROM (SELECT *, row_number() OVER (ORDER BY place, n DESC, service, path) AS among_all
              FROM (SELECT l.*, coalesce(h.had, 0) + row_number() OVER (PARTITION BY l.service ORDER BY l.n DESC, l.path) AS place
                      FROM (SELECT coalesce(l.service, '') AS service, coalesce(l.path, '') AS path, sum(allowed + denied + undefined + error + other) AS n
                              FROM unnest(lines) l LEFT JOIN decision_counts_names named ON named.service = coalesce(l.service, '') AND named.path = coalesce(l.path, '')
                             WHERE named.seen IS NULL AND (l.path IS NOT NULL OR l.service IS NOT NULL) AND l.path IS DISTINCT FROM '(other)'
                               AND octet_length(coalesce(l.path, '')) <= 1000 AND octet_length(coalesce(l.service, '')) <= 1000
                             GROUP BY 1, 2) l
                      LEFT JOIN (SELECT service, count(*) AS had FROM decision_counts_names GROUP BY 1) h USING (service)) l) l,
           decision_counts_most() m
     WHERE place <= m.of_service AND among_all <= m.in_all - (SELECT count(*) FROM decision_counts_names)
        ON CONFLICT DO NOTHING;
    WITH counted AS MATERIALIZED (
        SELECT l.hour, CASE WHEN named.seen IS NOT NULL OR l.path IS NULL AND l.service IS NULL THEN l.path ELSE '(other)' END AS path,
               CASE WHEN h.service IS NOT NULL OR l.path IS NULL AND l.service IS NULL THEN l.service ELSE '(other)' END AS service,
               allowed, denied, undefined, error, other
          FROM unnest(lines) l
          LEFT JOIN decision_counts_names named ON named.service = coalesce(l.service, '') AND named.path = coalesce(l.path, '')
          LEFT JOIN (SELECT DISTINCT service FROM decision_counts_names) h ON h.service = coalesce(l.service, '')),
    hours AS (
        INSERT INTO decision_counts (hour, path, service, allowed, denied, undefined, error, other)
        SELECT * FROM counted WHERE path IS DISTINCT FROM '(other)'
         UNION ALL
        SELECT hour, path, service, sum(allowed), sum(denied), sum(undefined), sum(error), sum(other) FROM counted WHERE path = '(other)' GROUP BY 1, 2, 3)
    INSERT INTO decision_counts_days (day, path, service, allowed, denied, undefined, error, other)
    SELECT date_trunc('day', hour, 'UTC'), path, service, sum(allowed), sum(denied), sum(undefined), sum(error), sum(other) FROM counted GROUP BY 1, 2, 3;
END $$;

DO $$
BEGIN
    REVOKE ALL ON FUNCTION decision_counts_most(), decision_counts_keep(decision_counts[]) FROM PUBLIC;
    EXECUTE format('ALTER FUNCTION decision_counts_most() SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION decision_counts_keep(decision_counts[]) SET search_path = %I, pg_temp', current_schema());
    -- A plan for a few lines and names is slow for many.
    ALTER FUNCTION decision_counts_keep(decision_counts[]) SET enable_nestloop = off;
    ALTER FUNCTION decision_counts_keep(decision_counts[]) SET plan_cache_mode = force_custom_plan;
END $$;
-- +goose StatementEnd

-- Names of the days before: those seen on the most days come first.
INSERT INTO decision_counts_names (service, path, seen)
SELECT service, path, seen
  FROM (SELECT *, row_number() OVER (ORDER BY place, days DESC, n DESC, service, path) AS among_all
          FROM (SELECT *, row_number() OVER (PARTITION BY service ORDER BY days DESC, n DESC, path) AS place
                  FROM (SELECT coalesce(service, '') AS service, coalesce(path, '') AS path, (max(day) AT TIME ZONE 'UTC')::date AS seen, count(DISTINCT day) AS days,
                               sum(allowed + denied + undefined + error + other) AS n
                          FROM decision_counts_days
                         WHERE day BETWEEN now() - interval '8 days' AND now() AND (path IS NOT NULL OR service IS NOT NULL) AND path IS DISTINCT FROM '(other)'
                           AND octet_length(coalesce(path, '')) <= 1000 AND octet_length(coalesce(service, '')) <= 1000
                         GROUP BY 1, 2) d) d) d, decision_counts_most() m
 WHERE place <= m.of_service AND among_all <= m.in_all
    ON CONFLICT DO NOTHING;

-- +goose Down
-- What was counted as (other) stays so.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION decision_counts_keep(lines decision_counts[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO decision_counts (hour, path, service, allowed, denied, undefined, error, other)
    SELECT hour, path, service, allowed, denied, undefined, error, other FROM unnest(lines);
    INSERT INTO decision_counts_days (day, path, service, allowed, denied, undefined, error, other)
    SELECT date_trunc('day', hour, 'UTC'), path, service, sum(allowed), sum(denied), sum(undefined), sum(error), sum(other) FROM unnest(lines) GROUP BY 1, 2, 3;
END $$;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION decision_counts_keep(decision_counts[]) SET search_path = %I, pg_temp', current_schema());
END $$;
-- +goose StatementEnd
DROP FUNCTION IF EXISTS decision_counts_most();
DROP TABLE IF EXISTS decision_counts_names;
