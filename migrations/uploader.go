package migrations

// UploaderColumn adds the column uploaded_by. It has no default, so no row is changed, and it is fast at any size.
const UploaderColumn = `
ALTER TABLE decision_logs ADD COLUMN IF NOT EXISTS uploaded_by text;
COMMENT ON COLUMN decision_logs.uploaded_by IS 'the client of the collector that uploaded it, by token or certificate; NULL where no collector did, or none that proves its headers'`

// NoUploaderColumn drops the column.
const NoUploaderColumn = `ALTER TABLE decision_logs DROP COLUMN IF EXISTS uploaded_by`
