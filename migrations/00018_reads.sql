-- Claims of work that several processes need once, such as reading an archived day. A desk or a command writes here where processes
-- share results of the archive (DOCKET_ARCHIVE_TO). A claim saves work and proves nothing, so no row has to survive a crash.

-- +goose Up
CREATE UNLOGGED TABLE IF NOT EXISTS decision_reads (
    key     text COLLATE "C" PRIMARY KEY,
    version bigint      NOT NULL, -- above all former ones of the key; the first is the time in microseconds
    high    boolean     NOT NULL, -- a person waits
    until   timestamptz NOT NULL  -- the claim is over then; rows stay, so that versions rise
) WITH (fillfactor = 50);
COMMENT ON TABLE decision_reads IS 'which process reads an archived day now; may be emptied at any time';

-- +goose StatementBegin
-- Whoever works with the ledger may claim.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'dead_letters'::regclass AND a.grantee <> c.relowner AND a.privilege_type = 'INSERT' LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON decision_reads TO %s', g.who);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS decision_reads;
