-- A day that left the table and that no archive has any more can be given up on purpose. Answers then say so, and are complete without it.

-- +goose Up
ALTER TABLE decision_counts_left ADD COLUMN IF NOT EXISTS forgotten_at timestamptz, ADD COLUMN IF NOT EXISTS forgotten_by text, ADD COLUMN IF NOT EXISTS forgotten_reason text;
COMMENT ON COLUMN decision_counts_left.forgotten_at IS 'an operator gave the day up on purpose: docket archive forget';

-- +goose Down
ALTER TABLE decision_counts_left DROP COLUMN IF EXISTS forgotten_at, DROP COLUMN IF EXISTS forgotten_by, DROP COLUMN IF EXISTS forgotten_reason;
