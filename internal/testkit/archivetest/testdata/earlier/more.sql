-- Columns that came later.
UPDATE decision_logs SET raw_sha256 = sha256(decision_id::bytea), raw_bytes = CASE WHEN source_offset = 103 THEN '\x7b7d'::bytea END,
       unfaithful = CASE WHEN source_offset = 103 THEN ARRAY['/input/"a, b"', '/x'] END;
