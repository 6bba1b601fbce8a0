-- What a dead letter that refused decisions of one upload share says of each. An index of hashes takes ids of any length.

-- +goose Up
CREATE TABLE IF NOT EXISTS dead_letter_decisions (
    dead_letter_id text PRIMARY KEY REFERENCES dead_letters ON DELETE CASCADE,
    refused        int NOT NULL,
    places         int[] NOT NULL,
    decision_ids   text[] NOT NULL,
    decision_ts    timestamptz[] NOT NULL,
    hashes         bigint[] NOT NULL
);
COMMENT ON TABLE dead_letter_decisions IS 'what dead letters that hold several refused decisions of one upload say of each whose id can be read';
COMMENT ON COLUMN dead_letter_decisions.refused IS 'how many decisions it holds';
COMMENT ON COLUMN dead_letter_decisions.places IS 'where in the upload, from 0; the arrays go together';
COMMENT ON COLUMN dead_letter_decisions.hashes IS 'hashtextextended(decision_id, 0), which the index is of';
CREATE INDEX IF NOT EXISTS dead_letter_decisions_hashes ON dead_letter_decisions USING gin (hashes);

-- Whoever may enter dead letters may say this of them, and whoever may read them may read it.
-- +goose StatementBegin
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT a.privilege_type AS act, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM pg_class c, aclexplode(c.relacl) a
              WHERE c.oid = 'dead_letters'::regclass AND a.grantee <> c.relowner AND a.privilege_type IN ('SELECT', 'INSERT') LOOP
        EXECUTE format('GRANT %s ON dead_letter_decisions TO %s', g.act, g.who);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS dead_letter_decisions;
