-- Two dead letters that were closed on that day. The triggers of the ledger set the time and the person, so they are off.
SET session_replication_role = replica;
INSERT INTO dead_letter_groups (fingerprint, kind, code, "table", "column", "constraint", message, first_seen)
VALUES ('f1', 'data', '23514', 'decision_logs', '', 'short', 'a check failed', '2026-07-31 10:00+00');
INSERT INTO dead_letters (dead_letter_id, state, group_id, path, decision_id, decision_ts, origin_topic, origin_partition, origin_offset, origin_index, origin_timestamp,
                          found_topic, found_partition, found_offset, found_at, key, value, headers, message, attempts, first_failed_at, last_failed_at, seen_at,
                          changed_at, changed_by, changed_act, why)
SELECT repeat(n::text, 32), 'RESOLVED', group_id, 'authz/allow', 'letter-' || n, '2026-07-31 09:00+00', 'opa-decisions', 1, n, 0, '2026-07-31 09:00+00',
       'opa-decisions-dead-letters', 0, n, '2026-07-31 10:00+00', '\x6b', convert_to('{"decision_id":"letter-' || n || '"}', 'UTF8'), '[]', 'a check failed', 1,
       '2026-07-31 10:00+00', '2026-07-31 10:00+00', '2026-07-31 10:00+00', '2026-08-01 11:00+00', 'mara', 'resolved', 'not needed'
  FROM dead_letter_groups, generate_series(1, 2) AS n;
