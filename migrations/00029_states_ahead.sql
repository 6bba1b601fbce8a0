-- States of decisions that are dated far ahead are removed, as such decisions no longer move a state. The next decision begins them
-- again. Flips are found by time: their times rise nearly with their places, so a small BRIN index is enough.

-- +goose Up
SELECT FROM decision_states_mark FOR UPDATE; -- first, as where the states change
WITH gone AS (DELETE FROM decision_states WHERE version_ts > now() + interval '1 hour' RETURNING 1)
UPDATE decision_states_mark SET states = greatest(states - (SELECT count(*) FROM gone), 0), trimmed_before = now() WHERE EXISTS (SELECT FROM gone);
-- A revision is judged again each time it has twice as many decisions, by those that came since.
ALTER TABLE decision_states_revisions ADD COLUMN IF NOT EXISTS judged_allowed bigint NOT NULL DEFAULT 0, ADD COLUMN IF NOT EXISTS judged_denied bigint NOT NULL DEFAULT 0;
-- Each that had 100 decisions counted as told, also where nobody was.
UPDATE decision_states_revisions SET told = false, judged_allowed = allowed, judged_denied = denied WHERE told AND judged_allowed + judged_denied = 0;
CREATE INDEX IF NOT EXISTS decision_flips_ts ON decision_flips USING brin (ts) WITH (autosummarize = on, pages_per_range = 32);

-- +goose Down
DROP INDEX IF EXISTS decision_flips_ts;
ALTER TABLE decision_states_revisions DROP COLUMN IF EXISTS judged_allowed, DROP COLUMN IF EXISTS judged_denied;
