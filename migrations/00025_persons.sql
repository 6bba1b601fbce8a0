-- A person who has a token and logs in at an OpenID provider is one person for acts that need two.

-- +goose Up
-- +goose StatementBegin
-- Whether two names can be those of one person. A desk writes oidc: before the name that an OpenID provider gave, which can be an address of
-- mail. So alice, oidc:alice and oidc:alice@acme.example are one person here, and alice@acme.example and alice@other.example are two.
CREATE OR REPLACE FUNCTION dead_letters_same_person(one text, other text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN position('@' IN a) > 0 AND position('@' IN b) > 0 OR oidc_a = oidc_b THEN a = b ELSE split_part(a, '@', 1) = split_part(b, '@', 1) END
      FROM (SELECT regexp_replace(lower(btrim(one)), '^oidc:\s*', '') AS a, regexp_replace(lower(btrim(other)), '^oidc:\s*', '') AS b,
                   lower(btrim(one)) LIKE 'oidc:%' AS oidc_a, lower(btrim(other)) LIKE 'oidc:%' AS oidc_b) AS x $$;

-- Why the one may not approve what the other made; NULL: two persons act. Those whom a desk vouches for are known by name, all others by login.
CREATE OR REPLACE FUNCTION dead_letters_second(made_by text, made_vouched boolean, made_login name, actor text, vouched boolean) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN vouched IS DISTINCT FROM made_vouched THEN 'way'
                WHEN coalesce(btrim(actor), '') = '' OR dead_letters_same_person(actor, made_by) THEN 'name'
                WHEN NOT vouched AND session_user = made_login THEN 'login' END $$;

-- It makes the edit of a proposal for a second person. Whom a desk vouches for is known by name, all others by their login: whether a
-- name of the one kind and a login of the other are two persons, nobody here can tell. difference is what the second person saw, who does not
-- have to believe the first, and said_* is what the new value says.
CREATE OR REPLACE FUNCTION dead_letters_approve(proposal bigint, difference text, said_path text, said_id text, said_ts timestamptz, actor text, reason text, vouched boolean)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    p       dead_letter_proposals;
    l       dead_letters;
    refused text;
BEGIN
    PERFORM dead_letters_asked(actor, reason, vouched);
    p := dead_letters_open_proposal(proposal);
    SELECT * INTO STRICT l FROM dead_letters d WHERE d.dead_letter_id = p.dead_letter_id;
    refused := CASE
        WHEN p.expires_at <= clock_timestamp() THEN 'expired'
        WHEN l.state <> p.letter_state OR sha256(l.value) IS DISTINCT FROM p.value_hash THEN 'void'
        WHEN vouched <> p.vouched THEN 'way'
        WHEN dead_letters_same_person(actor, p.proposed_by) THEN 'name'
        WHEN NOT vouched AND session_user = p.login THEN 'login' END;
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'proposal % cannot be approved like that: %', proposal, refused USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_proposals_' || refused;
    END IF;
    UPDATE dead_letter_proposals o SET state = 'APPROVED', decided_by = actor, decided_why = reason, decided_login = session_user, decided_app = nullif(current_setting('application_name'), ''),
           decided_client = inet_client_addr(), decided_at = clock_timestamp(), decided_in = pg_current_xact_id()
     WHERE o.proposal_id = proposal;
    PERFORM dead_letters_noted(p.dead_letter_id, 'approved', proposal, actor, reason);
    PERFORM set_config('docket.diff', coalesce(difference, ''), true);
    UPDATE dead_letters d SET value = p.value, edited = true, path = coalesce(said_path, ''), decision_id = said_id, decision_ts = said_ts,
           changed_at = clock_timestamp(), changed_by = p.proposed_by, why = p.why
     WHERE d.dead_letter_id = p.dead_letter_id;
    RETURN p.dead_letter_id;
END $$;

DO $$
DECLARE
    f text;
BEGIN
    FOREACH f IN ARRAY ARRAY['dead_letters_same_person(text, text)', 'dead_letters_second(text, boolean, name, text, boolean)',
        'dead_letters_approve(bigint, text, text, text, timestamptz, text, text, boolean)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
    END LOOP;
    REVOKE ALL ON FUNCTION dead_letters_same_person(text, text) FROM PUBLIC;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
-- Why the one may not approve what the other made; NULL: two persons act. Those whom a desk vouches for are known by name, all others by login.
CREATE OR REPLACE FUNCTION dead_letters_second(made_by text, made_vouched boolean, made_login name, actor text, vouched boolean) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN vouched IS DISTINCT FROM made_vouched THEN 'way'
                WHEN coalesce(btrim(actor), '') = '' OR lower(btrim(actor)) = lower(btrim(made_by)) THEN 'name'
                WHEN NOT vouched AND session_user = made_login THEN 'login' END $$;

-- It makes the edit of a proposal for a second person. Whom a desk vouches for is known by name, all others by their login: whether a
-- name of the one kind and a login of the other are two persons, nobody here can tell. difference is what the second person saw, who does not
-- have to believe the first, and said_* is what the new value says.
CREATE OR REPLACE FUNCTION dead_letters_approve(proposal bigint, difference text, said_path text, said_id text, said_ts timestamptz, actor text, reason text, vouched boolean)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    p       dead_letter_proposals;
    l       dead_letters;
    refused text;
BEGIN
    PERFORM dead_letters_asked(actor, reason, vouched);
    p := dead_letters_open_proposal(proposal);
    SELECT * INTO STRICT l FROM dead_letters d WHERE d.dead_letter_id = p.dead_letter_id;
    refused := CASE
        WHEN p.expires_at <= clock_timestamp() THEN 'expired'
        WHEN l.state <> p.letter_state OR sha256(l.value) IS DISTINCT FROM p.value_hash THEN 'void'
        WHEN vouched <> p.vouched THEN 'way'
        WHEN lower(btrim(actor)) = lower(btrim(p.proposed_by)) THEN 'name'
        WHEN NOT vouched AND session_user = p.login THEN 'login' END;
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'proposal % cannot be approved like that: %', proposal, refused USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_proposals_' || refused;
    END IF;
    UPDATE dead_letter_proposals o SET state = 'APPROVED', decided_by = actor, decided_why = reason, decided_login = session_user, decided_app = nullif(current_setting('application_name'), ''),
           decided_client = inet_client_addr(), decided_at = clock_timestamp(), decided_in = pg_current_xact_id()
     WHERE o.proposal_id = proposal;
    PERFORM dead_letters_noted(p.dead_letter_id, 'approved', proposal, actor, reason);
    PERFORM set_config('docket.diff', coalesce(difference, ''), true);
    UPDATE dead_letters d SET value = p.value, edited = true, path = coalesce(said_path, ''), decision_id = said_id, decision_ts = said_ts,
           changed_at = clock_timestamp(), changed_by = p.proposed_by, why = p.why
     WHERE d.dead_letter_id = p.dead_letter_id;
    RETURN p.dead_letter_id;
END $$;

DO $$
DECLARE
    f text;
BEGIN
    FOREACH f IN ARRAY ARRAY['dead_letters_second(text, boolean, name, text, boolean)', 'dead_letters_approve(bigint, text, text, text, timestamptz, text, text, boolean)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd
DROP FUNCTION IF EXISTS dead_letters_same_person(text, text);
