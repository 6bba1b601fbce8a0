-- Decisions in the shape of the sample: new identities, 8 x 25 paths of 25 services, hosts and users of
-- which few ask much and many ask little, labels of 8 applications in 6 regions.
CREATE TABLE IF NOT EXISTS bench_seed (n int PRIMARY KEY, path text, raw jsonb NOT NULL);

CREATE OR REPLACE FUNCTION bench_fill(since timestamptz, span interval, first bigint, most bigint) RETURNS bigint LANGUAGE sql AS $$
WITH seeds AS (SELECT count(*)::int AS many FROM bench_seed),
g AS (
    SELECT i, first + i AS at, floor(power(25, random()))::int - 1 AS k, floor(power(30000, random()))::int AS h,
           floor(power(5000, random()))::int AS u, 1024 + floor(random() * 64000)::int AS port, floor(random() * 48)::int AS l,
           1 + floor(random() * many)::int AS pick,
           date_trunc('milliseconds', since + span * (i::float8 / most) + random() * interval '1 second') AS ts
      FROM generate_series(0, most - 1) AS i, seeds),
made AS (
    SELECT g.*, gen_random_uuid()::text AS id, '10.' || (h >> 16) % 256 || '.' || (h >> 8) % 256 || '.' || h % 256 || ':' || port AS asker,
           split_part(s.path, '/', 1) || CASE k % 5 WHEN 0 THEN '' ELSE '-' || k % 5 END || substr(s.path, strpos(s.path, '/'))
               || CASE k / 5 WHEN 0 THEN '' ELSE '/t' || k / 5 END AS whole,
           s.raw, jsonb_build_object('app', 'app-' || l % 8, 'region', 'r-' || l / 8, 'id', md5((h % 500)::text), 'version', '1.22.0') AS tags
      FROM g JOIN bench_seed s ON s.n = g.pick),
put AS (
    INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service, labels, raw,
           source_topic, source_partition, source_offset, source_index, stored_at)
    SELECT id, ts, whole,
           CASE jsonb_typeof(raw->'result') WHEN 'boolean' THEN (raw->>'result')::boolean
                WHEN 'object' THEN CASE WHEN jsonb_typeof(raw #> '{result,allow}') = 'boolean' THEN (raw #>> '{result,allow}')::boolean END END,
           asker, at, tags->>'id', '1.22.0', split_part(whole, '/', 1), tags,
           raw || jsonb_build_object('decision_id', id, 'path', whole, 'requested_by', asker, 'labels', tags, 'req_id', at,
               'timestamp', to_char(ts AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
               'input', CASE WHEN jsonb_typeof(raw->'input') = 'object' THEN raw->'input' ELSE '{}' END || jsonb_build_object('user', 'user-' || u)),
           'decision-logs', (at % 8)::int, at / 8, 0, ts + interval '1 second'
      FROM made ORDER BY ts
    RETURNING 1)
SELECT count(*) FROM put
$$;

-- Those of a span of time once more, so much later: new identities and times, and what is inside stays as it is, its own id too. Made
-- several times as fast, and to a search it is all the same.
CREATE OR REPLACE FUNCTION bench_repeat(since timestamptz, span interval, later interval, further bigint) RETURNS void LANGUAGE sql AS $$
INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service, labels, raw,
       source_topic, source_partition, source_offset, source_index, stored_at)
SELECT gen_random_uuid()::text, ts + later, path, allowed, requested_by, req_id + further, opa_id, opa_version, service, labels, raw,
       source_topic, source_partition, source_offset + further / 8, source_index, stored_at + later
  FROM decision_logs WHERE ts >= since AND ts < since + span ORDER BY ts
$$;

-- The days from one on, made by hand: the program makes those to come.
CREATE OR REPLACE FUNCTION bench_days(first date, days int) RETURNS void LANGUAGE plpgsql SET TimeZone = 'UTC' AS $$
BEGIN
    DROP TABLE IF EXISTS decision_logs_before;
    FOR n IN 0 .. days - 1 LOOP
        EXECUTE format('CREATE TABLE IF NOT EXISTS decision_logs_p%s PARTITION OF decision_logs FOR VALUES FROM (%L) TO (%L)',
            to_char(first + n, 'YYYYMMDD'), (first + n)::timestamptz, (first + n + 1)::timestamptz);
    END LOOP;
END
$$;
