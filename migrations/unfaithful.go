package migrations

// UnfaithfulColumns adds the columns of decisions that Postgres cannot hold unchanged. They have no default, so no
// row is changed, and it is fast at any size.
const UnfaithfulColumns = `
ALTER TABLE decision_logs ADD COLUMN IF NOT EXISTS raw_bytes bytea, ADD COLUMN IF NOT EXISTS unfaithful text[];
COMMENT ON COLUMN decision_logs.raw_bytes IS 'the exact bytes of a decision that jsonb cannot hold as it came; raw is its twin then';
COMMENT ON COLUMN decision_logs.unfaithful IS 'where raw differs from raw_bytes, as JSON pointers; NULL where it is what came'`

// NoUnfaithfulColumns drops them, with the original bytes of those decisions.
const NoUnfaithfulColumns = `ALTER TABLE decision_logs DROP COLUMN IF EXISTS raw_bytes, DROP COLUMN IF EXISTS unfaithful`
