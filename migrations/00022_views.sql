-- Named filters of the desk's web console. A row is written when a person saves a view, and by nothing else.

-- +goose Up
CREATE TABLE IF NOT EXISTS desk_views (
    id      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner   text        NOT NULL, -- the name of the person, as in the audit; empty: all have it
    name    text        NOT NULL,
    query   text        NOT NULL, -- of the URL of the page of decisions
    made_by text        NOT NULL,
    made_at timestamptz NOT NULL,
    UNIQUE (owner, name)
);
COMMENT ON TABLE desk_views IS 'named filters of the console; may be emptied at any time';

-- +goose StatementBegin
-- Whoever works with the ledger may keep views.
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'dead_letters'::regclass AND a.grantee <> c.relowner AND a.privilege_type = 'INSERT' LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON desk_views TO %s', g.who);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS desk_views;
