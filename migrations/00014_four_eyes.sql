-- Two persons change what a decision says. An edit that changes decision_id, timestamp, path, result or input of a dead letter is a
-- proposal of the one, which another approves. The rule is kept here, whatever a program asks for: a trigger refuses all other ways.

-- +goose Up
CREATE TABLE IF NOT EXISTS dead_letter_proposals (
    proposal_id    bigint            GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dead_letter_id text COLLATE "C"  NOT NULL REFERENCES dead_letters ON DELETE CASCADE,
    state          text              NOT NULL DEFAULT 'OPEN' CHECK (state IN ('OPEN', 'APPROVED', 'REJECTED')),
    letter_state   dead_letter_state NOT NULL,
    members        text[]            NOT NULL,
    value_hash     bytea,
    value          bytea,
    retry          boolean           NOT NULL,
    proposed_by    text              NOT NULL,
    why            text              NOT NULL,
    vouched        boolean           NOT NULL,
    login          name              NOT NULL DEFAULT session_user,
    application    text              DEFAULT nullif(current_setting('application_name'), ''),
    client         inet              DEFAULT inet_client_addr(),
    created_at     timestamptz       NOT NULL DEFAULT clock_timestamp(),
    expires_at     timestamptz       NOT NULL DEFAULT clock_timestamp() + interval '7 days',
    decided_by     text,
    decided_why    text,
    decided_login  name,
    decided_app    text,
    decided_client inet,
    decided_at     timestamptz,
    decided_in     xid8,
    CHECK ((state = 'OPEN') = (decided_at IS NULL))
);
CREATE INDEX IF NOT EXISTS dead_letter_proposals_letter ON dead_letter_proposals (dead_letter_id);
CREATE INDEX IF NOT EXISTS dead_letter_proposals_waiting ON dead_letter_proposals (proposal_id) WHERE state = 'OPEN';
COMMENT ON TABLE dead_letter_proposals IS 'Edits that wait for a second person, and those that had one; they go with their dead letter. Only functions write here; see docs/desk.md';
COMMENT ON COLUMN dead_letter_proposals.value_hash IS 'SHA-256 of the value that is to be replaced; NULL: there is none';
COMMENT ON COLUMN dead_letter_proposals.vouched IS 'proposed_by was named by the API of a desk, which knows who it is; otherwise only the login is known';
COMMENT ON COLUMN dead_letter_proposals.decided_in IS 'the transaction that approved it, which alone may make the edit';

-- +goose StatementBegin
-- Whether the rule holds. `consumer migrate` replaces this function as DOCKET_DESK_FOUR_EYES says; its owner alone can.
CREATE OR REPLACE FUNCTION dead_letters_four_eyes() RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT true $$;

-- Whoever may call this function may tell propose, approve and reject whom they work for. It does nothing.
CREATE OR REPLACE FUNCTION dead_letters_vouch() RETURNS void LANGUAGE sql IMMUTABLE AS $$ SELECT $$;

-- The decisions of a value in their order: one object, an array of objects, or objects on lines of their own. NULL where it is none of
-- these, or two readers could see two things in it.
CREATE OR REPLACE FUNCTION dead_letters_decisions(value bytea) RETURNS jsonb[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    said  text;
    parts json[];
    part  json;
    found jsonb[] := '{}';
BEGIN
    said := convert_from(value, 'UTF8');
    IF said IS NULL THEN
        RETURN NULL;
    END IF;
    BEGIN
        parts := CASE json_typeof(said::json) WHEN 'array' THEN ARRAY(SELECT e FROM json_array_elements(said::json) WITH ORDINALITY AS x(e, n) ORDER BY n) ELSE ARRAY[said::json] END;
    EXCEPTION WHEN invalid_text_representation THEN
        parts := ARRAY(SELECT e::json FROM regexp_split_to_table(said, '\n') WITH ORDINALITY AS x(e, n) WHERE e ~ '[^ \t\r]' ORDER BY n);
    END;
    FOREACH part IN ARRAY parts LOOP
        IF json_typeof(part) <> 'object' OR (SELECT count(*) <> count(DISTINCT k) FROM json_object_keys(part) AS k) THEN
            RETURN NULL;
        END IF;
        found := found || part::jsonb;
    END LOOP;
    RETURN nullif(found, '{}');
EXCEPTION WHEN OTHERS THEN -- no text, no JSON, or none that jsonb takes
    RETURN NULL;
END $$;

-- The members that are evidence and that another value changes, in any of its decisions. All of them where that cannot be told.
CREATE OR REPLACE FUNCTION dead_letters_touched(before bytea, after bytea) RETURNS text[] LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER AS $$
DECLARE
    members CONSTANT text[] := '{decision_id,timestamp,path,result,input}';
    was     jsonb[];
    is_now  jsonb[];
BEGIN
    IF before IS NOT DISTINCT FROM after THEN
        RETURN '{}';
    END IF;
    was := dead_letters_decisions(before);
    is_now := dead_letters_decisions(after);
    IF was IS NULL OR is_now IS NULL OR cardinality(was) <> cardinality(is_now) THEN
        RETURN members;
    END IF;
    RETURN ARRAY(SELECT m FROM unnest(members) WITH ORDINALITY AS x(m, n)
                  WHERE EXISTS (SELECT FROM unnest(was, is_now) AS d(o, n) WHERE d.o -> m IS DISTINCT FROM d.n -> m) ORDER BY n);
END $$;

-- No value is changed in one of these members but by the transaction that approves just this change. It holds for the owner, too.
CREATE OR REPLACE FUNCTION dead_letters_approved() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF dead_letters_four_eyes() AND dead_letters_touched(OLD.value, NEW.value) <> '{}' AND NOT EXISTS (
        SELECT FROM dead_letter_proposals p
         WHERE p.dead_letter_id = NEW.dead_letter_id AND p.state = 'APPROVED' AND p.decided_in = pg_current_xact_id()
           AND p.value IS NOT DISTINCT FROM NEW.value AND p.value_hash IS NOT DISTINCT FROM sha256(OLD.value)) THEN
        RAISE EXCEPTION 'a second person has to approve this change of dead letter %', NEW.dead_letter_id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_four_eyes', HINT = 'propose it: docket dlq edit, or dead_letters_propose';
    END IF;
    RETURN NULL;
END $$;

-- One line of the audit about a proposal, whose letter is locked.
CREATE OR REPLACE FUNCTION dead_letters_noted(letter text, done text, proposal bigint, actor text, reason text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO dead_letter_audit (dead_letter_id, act, from_state, to_state, actor, why, attempts, job_id)
        SELECT letter, done, d.state, d.state, actor, format('proposal %s: %s', proposal, reason), d.attempts, d.job_id FROM dead_letters d WHERE d.dead_letter_id = letter $$;

-- Who asks has to be named, and a reason given. vouched: the caller speaks for somebody whom it knows, and has to be allowed to.
CREATE OR REPLACE FUNCTION dead_letters_asked(actor text, reason text, vouched boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(btrim(actor), '') = '' OR coalesce(btrim(reason), '') = '' OR vouched IS NULL THEN
        RAISE EXCEPTION 'a name and a reason are required' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF vouched AND NOT has_function_privilege(session_user, 'dead_letters_vouch()', 'EXECUTE') THEN
        RAISE EXCEPTION '% may not speak for others', session_user USING ERRCODE = 'insufficient_privilege', HINT = 'grant docket_desk_api to the login of the desk; see docs/desk-grants.sql';
    END IF;
END $$;

-- It writes down an edit that somebody wants. seen is the SHA-256 of the value that they saw.
CREATE OR REPLACE FUNCTION dead_letters_propose(letter text, seen bytea, wanted bytea, retried boolean, actor text, reason text, vouched boolean)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    l       dead_letters;
    touched text[];
    made    bigint;
BEGIN
    PERFORM dead_letters_asked(actor, reason, vouched);
    SELECT * INTO l FROM dead_letters d WHERE d.dead_letter_id = letter FOR UPDATE;
    IF NOT FOUND OR l.state NOT IN ('PENDING', 'FAILED') OR sha256(l.value) IS DISTINCT FROM seen THEN
        RAISE EXCEPTION 'dead letter % is not as it was seen', letter USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_proposals_void';
    END IF;
    touched := dead_letters_touched(l.value, wanted);
    IF touched = '{}' THEN
        RAISE EXCEPTION 'this change needs nobody else' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO dead_letter_proposals (dead_letter_id, letter_state, members, value_hash, value, retry, proposed_by, why, vouched)
        VALUES (letter, l.state, touched, seen, wanted, coalesce(retried, false), actor, reason, vouched) RETURNING proposal_id INTO made;
    PERFORM dead_letters_noted(letter, 'proposed', made, actor, reason);
    RETURN made;
END $$;

-- It locks a proposal that is open, behind its letter.
CREATE OR REPLACE FUNCTION dead_letters_open_proposal(proposal bigint) RETURNS dead_letter_proposals LANGUAGE plpgsql AS $$
DECLARE
    p dead_letter_proposals;
BEGIN
    PERFORM FROM dead_letters d WHERE d.dead_letter_id = (SELECT o.dead_letter_id FROM dead_letter_proposals o WHERE o.proposal_id = proposal) FOR UPDATE;
    SELECT * INTO p FROM dead_letter_proposals o WHERE o.proposal_id = proposal FOR UPDATE;
    IF NOT FOUND OR p.state <> 'OPEN' THEN
        RAISE EXCEPTION 'proposal % is not open', proposal USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_proposals_open';
    END IF;
    RETURN p;
END $$;

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

-- It ends a proposal without an edit. Whoever may propose may do so, the proposer too.
CREATE OR REPLACE FUNCTION dead_letters_reject(proposal bigint, actor text, reason text, vouched boolean) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    p dead_letter_proposals;
BEGIN
    PERFORM dead_letters_asked(actor, reason, vouched);
    p := dead_letters_open_proposal(proposal);
    UPDATE dead_letter_proposals o SET state = 'REJECTED', decided_by = actor, decided_why = reason, decided_login = session_user, decided_app = nullif(current_setting('application_name'), ''),
           decided_client = inet_client_addr(), decided_at = clock_timestamp()
     WHERE o.proposal_id = proposal;
    PERFORM dead_letters_noted(p.dead_letter_id, 'rejected', proposal, actor, reason);
    RETURN p.dead_letter_id;
END $$;

-- All of them are for those who are named, and see the tables of this schema alone.
DO $$
DECLARE
    f text;
BEGIN
    FOREACH f IN ARRAY ARRAY['dead_letters_four_eyes()', 'dead_letters_vouch()', 'dead_letters_decisions(bytea)', 'dead_letters_touched(bytea, bytea)', 'dead_letters_approved()',
        'dead_letters_noted(text, text, bigint, text, text)', 'dead_letters_asked(text, text, boolean)', 'dead_letters_propose(text, bytea, bytea, boolean, text, text, boolean)',
        'dead_letters_open_proposal(bigint)', 'dead_letters_approve(bigint, text, text, text, timestamptz, text, text, boolean)', 'dead_letters_reject(bigint, text, text, boolean)'] LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd

CREATE OR REPLACE TRIGGER approved AFTER UPDATE OF value ON dead_letters FOR EACH ROW WHEN (OLD.value IS DISTINCT FROM NEW.value) EXECUTE FUNCTION dead_letters_approved();

-- +goose Down
DROP TRIGGER IF EXISTS approved ON dead_letters;
DROP FUNCTION IF EXISTS dead_letters_reject(bigint, text, text, boolean), dead_letters_approve(bigint, text, text, text, timestamptz, text, text, boolean), dead_letters_open_proposal(bigint),
    dead_letters_propose(text, bytea, bytea, boolean, text, text, boolean), dead_letters_asked(text, text, boolean), dead_letters_noted(text, text, bigint, text, text),
    dead_letters_approved(), dead_letters_touched(bytea, bytea), dead_letters_decisions(bytea), dead_letters_vouch(), dead_letters_four_eyes();
DROP TABLE IF EXISTS dead_letter_proposals;
