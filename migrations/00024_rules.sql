-- Retries of rules say which rule, so that it finds their ends by an index, however many letters it moved.

-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE dead_letter_outbox ADD COLUMN IF NOT EXISTS rule_id bigint;
-- Those of a desk that was there before.
UPDATE dead_letter_outbox o SET rule_id = a.rule_id FROM dead_letter_rule_acts a WHERE a.outbox_id = o.outbox_id AND o.rule_id IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS dead_letter_outbox_rule;
CREATE INDEX CONCURRENTLY dead_letter_outbox_rule ON dead_letter_outbox (rule_id, ended_at, outbox_id) WHERE rule_id IS NOT NULL AND outcome IS DISTINCT FROM 'withdrawn';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS dead_letter_outbox_rule;
ALTER TABLE dead_letter_outbox DROP COLUMN IF EXISTS rule_id;
