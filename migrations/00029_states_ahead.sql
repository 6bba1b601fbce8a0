-- States of decisions that are dated far ahead are removed, as such decisions no longer move a state. The next decision begins them
-- again. Flips are found by time: their times rise nearly with their places, so a small BRIN index is enough.

-- +goose Up
WITH gone AS (DELETE FROM decision_states WHERE version_ts > now() + interval '1 hour' RETURNING 1)
UPDATE decision_states_mark SET states = greatest(states - (SELECT count(*) FROM gone), 0), trimmed_before = now() WHERE EXISTS (SELECT FROM gone);
CREATE INDEX IF NOT EXISTS decision_flips_ts ON decision_flips USING brin (ts) WITH (autosummarize = on, pages_per_range = 32);

-- +goose Down
DROP INDEX IF EXISTS decision_flips_ts;
