-- Where a session by OpenID Connect comes from, so that the provider can end it, and so that a login is used once.

-- +goose Up
ALTER TABLE desk_sessions
    ADD COLUMN IF NOT EXISTS subject          text,  -- of the person at the provider; null for a session by token
    ADD COLUMN IF NOT EXISTS provider_session text,  -- the provider's own session, if it names one
    ADD COLUMN IF NOT EXISTS login            bytea; -- SHA-256 of the state of the login
CREATE UNIQUE INDEX IF NOT EXISTS desk_sessions_login ON desk_sessions (login);
CREATE INDEX IF NOT EXISTS desk_sessions_subject ON desk_sessions (subject) WHERE subject IS NOT NULL;
CREATE INDEX IF NOT EXISTS desk_sessions_provider_session ON desk_sessions (provider_session) WHERE provider_session IS NOT NULL;

-- +goose Down
DELETE FROM desk_sessions WHERE made_by = 'oidc';
ALTER TABLE desk_sessions
    DROP COLUMN IF EXISTS subject,
    DROP COLUMN IF EXISTS provider_session,
    DROP COLUMN IF EXISTS login;
