-- The archives that a day needs which left the table. Answers name one that is missing, also if others of the day are there.

-- +goose Up
ALTER TABLE decision_counts_left ADD COLUMN IF NOT EXISTS archives text[], ADD COLUMN IF NOT EXISTS forgotten_archives text[];
COMMENT ON COLUMN decision_counts_left.archives IS 'archives that hold the decisions of the day, noted when it was dropped; NULL: an earlier release dropped it';
COMMENT ON COLUMN decision_counts_left.forgotten_archives IS 'those that were given up: docket archive forget';

-- +goose Down
ALTER TABLE decision_counts_left DROP COLUMN IF EXISTS archives, DROP COLUMN IF EXISTS forgotten_archives;
