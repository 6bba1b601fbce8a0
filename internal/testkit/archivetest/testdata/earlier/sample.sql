-- Twelve decisions of one day. These columns are in each release.
INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service, labels, bundles, raw,
                           source_topic, source_partition, source_offset, source_index, stored_at)
SELECT 'decision-' || n, '2026-08-01 00:00:00+00'::timestamptz + n * interval '100 minutes' + n * interval '1 microsecond',
       CASE WHEN n % 5 > 0 THEN 'authz/"allow"' || n % 2 END, CASE WHEN n % 4 > 0 THEN n % 2 = 0 END, '10.0.0.' || n % 3, 9007199254740993 + n, 'opa-1', '1.8.0',
       CASE WHEN n % 3 > 0 THEN 'shop' END, CASE n % 3 WHEN 0 THEN '{"id": "x", "app": "shop"}'::jsonb WHEN 1 THEN 'null'::jsonb END,
       CASE WHEN n % 2 = 0 THEN '{"main": {"revision": "r7"}}'::jsonb END,
       jsonb_build_object('decision_id', 'decision-' || n, 'path', 'authz/"allow"' || n % 2, 'input', jsonb_build_object('user', 'user-' || n % 4, 'text', E'\n\t"' || chr(8232) || chr(233)),
           'number', 12345678901234567890.50, 'timestamp', to_char('2026-08-01 00:00:00'::timestamp + n * interval '100 minutes', 'YYYY-MM-DD"T"HH24:MI:SS.US') || '789Z'),
       'opa-decisions', 0, 100 + n, 0, '2026-08-02 00:00:00.5+00'::timestamptz + n * interval '1 second'
  FROM generate_series(1, 12) AS n;
