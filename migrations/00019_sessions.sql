-- Sessions of the desk's web console. A row is written when a person logs in, and by nothing else.

-- +goose Up
CREATE TABLE IF NOT EXISTS desk_sessions (
    id         bytea PRIMARY KEY,    -- SHA-256 of the 256 random bits in the cookie
    name       text        NOT NULL, -- of the person, as in the audit
    role       text        NOT NULL, -- when it was made; each request asks what the role is now
    made_by    text        NOT NULL, -- the kind of credential: token
    credential bytea       NOT NULL, -- HMAC of the credential; the key is in the cookie, so the row reveals nothing about it
    created_at timestamptz NOT NULL,
    used_at    timestamptz NOT NULL,
    ends_at    timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS desk_sessions_name ON desk_sessions (name);
COMMENT ON TABLE desk_sessions IS 'who is logged in to the console; may be emptied at any time, which logs everybody out';

-- +goose StatementBegin
-- Whoever works with the ledger may keep sessions.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'dead_letters'::regclass AND a.grantee <> c.relowner AND a.privilege_type = 'INSERT' LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON desk_sessions TO %s', g.who);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS desk_sessions;
