-- The archives that hold dead letters. Their letters may have left the ledger, so answers name an archive that is missing. All of this
-- can be run again where a break left it unfinished.

-- +goose NO TRANSACTION
-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS dead_letter_archives (
    archive          text COLLATE "C" PRIMARY KEY,
    noted_at         timestamptz      NOT NULL DEFAULT clock_timestamp(),
    forgotten_at     timestamptz,
    forgotten_by     text,
    forgotten_reason text
);
COMMENT ON TABLE dead_letter_archives IS 'archives of dead letters that the ledger named: what they hold may be nowhere else';
COMMENT ON COLUMN dead_letter_archives.forgotten_at IS 'an operator gave the archive up on purpose: docket archive forget --dead-letters';

-- dead_letters_noted notes the archives that letters, or ranges of letters, are said to be in. One that was given up and has come back is
-- needed again.
CREATE OR REPLACE FUNCTION dead_letters_noted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO dead_letter_archives (archive)
        SELECT DISTINCT n.archived_in FROM is_now n WHERE n.archived_in <> ''
           AND NOT EXISTS (SELECT FROM dead_letter_archives a WHERE a.archive = n.archived_in AND a.forgotten_at IS NULL) ORDER BY 1
        ON CONFLICT (archive) DO UPDATE SET noted_at = clock_timestamp(), forgotten_at = NULL, forgotten_by = NULL, forgotten_reason = NULL;
    RETURN NULL;
END $$;

DO $$
DECLARE
    g record;
BEGIN
    REVOKE ALL ON FUNCTION dead_letters_noted() FROM PUBLIC;
    EXECUTE format('ALTER FUNCTION dead_letters_noted() SET search_path = %I, pg_temp', current_schema());
    FOR g IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'dead_letters'::regclass AND a.grantee <> c.relowner AND a.privilege_type = 'SELECT' LOOP
        EXECUTE format('GRANT SELECT ON dead_letter_archives TO %s', g.who);
    END LOOP;
END $$;
-- +goose StatementEnd

CREATE OR REPLACE TRIGGER noted_restored AFTER INSERT ON dead_letters REFERENCING NEW TABLE AS is_now FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_noted();
CREATE OR REPLACE TRIGGER noted AFTER UPDATE ON dead_letters REFERENCING NEW TABLE AS is_now FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_noted();
CREATE OR REPLACE TRIGGER noted AFTER UPDATE ON dead_letter_surplus REFERENCING NEW TABLE AS is_now FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_noted();

-- Those of before, now that no new one is missed. Of letters that left the ledger the audit says where they are.
INSERT INTO dead_letter_archives (archive)
    SELECT archived_in FROM dead_letters WHERE state = 'RESOLVED' AND archived_in <> ''
    UNION SELECT archived_in FROM dead_letter_surplus WHERE archived_in <> ''
    UNION SELECT substr(why, 4) FROM dead_letter_audit WHERE act = 'archived' AND starts_with(why, 'in dead_letters-')
    ON CONFLICT (archive) DO NOTHING;

-- +goose Down
DROP TRIGGER IF EXISTS noted ON dead_letter_surplus;
DROP TRIGGER IF EXISTS noted ON dead_letters;
DROP TRIGGER IF EXISTS noted_restored ON dead_letters;
DROP FUNCTION IF EXISTS dead_letters_noted();
DROP TABLE IF EXISTS dead_letter_archives;
