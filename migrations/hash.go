package migrations

// HashColumn adds the column raw_sha256. It has no default, so no row is changed, and it is fast at any size.
const HashColumn = `
ALTER TABLE decision_logs ADD COLUMN IF NOT EXISTS raw_sha256 bytea;
COMMENT ON COLUMN decision_logs.raw_sha256 IS 'SHA-256 of the exact bytes that the decision came in; NULL where an earlier release stored it'`

// NoHashColumn drops the column.
const NoHashColumn = `ALTER TABLE decision_logs DROP COLUMN IF EXISTS raw_sha256`
