-- Rules, snoozes and assignments of dead letters, and second persons for acts that close many of them. Rows are written when a person or a
-- rule acts, and by nothing else. The rules about persons are kept here: triggers refuse all other ways.

-- +goose Up
-- A job that closes many can need a second person.
ALTER TABLE dead_letter_jobs ADD COLUMN IF NOT EXISTS proposed boolean NOT NULL DEFAULT false, ADD COLUMN IF NOT EXISTS vouched boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS login name DEFAULT session_user, ADD COLUMN IF NOT EXISTS approved_by text, ADD COLUMN IF NOT EXISTS approved_login name,
    ADD COLUMN IF NOT EXISTS approved_at timestamptz;
ALTER TABLE dead_letter_jobs DROP CONSTRAINT IF EXISTS dead_letter_jobs_state_check;
ALTER TABLE dead_letter_jobs ADD CONSTRAINT dead_letter_jobs_state_check CHECK (state IN ('PROPOSED', 'WAITING', 'RUNNING', 'STOPPED', 'DONE'));

CREATE TABLE IF NOT EXISTS dead_letter_rules (
    rule_id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    group_id       int         NOT NULL,
    topic          text        NOT NULL DEFAULT '', -- original; empty: each
    act            text        NOT NULL CHECK (act IN ('snoozed', 'retried', 'closed')),
    wait           interval    NOT NULL DEFAULT '0' CHECK (wait >= '0'),
    rate           float8      NOT NULL DEFAULT 0 CHECK (rate >= 0),
    most           bigint      NOT NULL DEFAULT 0 CHECK (most >= 0 AND (act = 'snoozed' OR most > 0)),
    failures       int         NOT NULL DEFAULT 5 CHECK (failures BETWEEN 1 AND 1000),
    why            text        NOT NULL CHECK (btrim(why) <> ''),
    state          text        NOT NULL DEFAULT 'ACTIVE' CHECK (state IN ('PROPOSED', 'ACTIVE', 'STOPPED', 'REMOVED')),
    made_by        text        NOT NULL CHECK (btrim(made_by) <> ''),
    vouched        boolean     NOT NULL DEFAULT false,
    login          name        NOT NULL DEFAULT session_user,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    ends_at        timestamptz NOT NULL,
    approved_by    text,
    approved_why   text,
    approved_login name,
    approved_at    timestamptz,
    acted          bigint      NOT NULL DEFAULT 0,
    acted_at       timestamptz,
    ended_by       text,
    ended_why      text,
    ended_at       timestamptz,
    CHECK ((state IN ('STOPPED', 'REMOVED')) = (ended_at IS NOT NULL))
);
-- Of one group and topic one rule decides, and one snooze holds.
CREATE UNIQUE INDEX IF NOT EXISTS dead_letter_rules_one ON dead_letter_rules (group_id, topic, (act = 'snoozed')) WHERE state IN ('PROPOSED', 'ACTIVE');
COMMENT ON TABLE dead_letter_rules IS 'Standing orders for the dead letters of one group; see docs/desk.md';
COMMENT ON COLUMN dead_letter_rules.vouched IS 'made_by was named by the API of a desk, which knows who it is; otherwise only the login is known';

-- One row for each act of a rule on a dead letter. The key keeps a rule from acting twice for one failure.
CREATE TABLE IF NOT EXISTS dead_letter_rule_acts (
    rule_id        bigint      NOT NULL,
    dead_letter_id text COLLATE "C" NOT NULL REFERENCES dead_letters ON DELETE CASCADE,
    attempts       int         NOT NULL,
    at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    outbox_id      bigint,
    PRIMARY KEY (rule_id, dead_letter_id, attempts)
);
CREATE INDEX IF NOT EXISTS dead_letter_rule_acts_letter ON dead_letter_rule_acts (dead_letter_id);

CREATE TABLE IF NOT EXISTS dead_letter_cases (
    dead_letter_id text COLLATE "C" PRIMARY KEY REFERENCES dead_letters ON DELETE CASCADE,
    assigned_to    text,
    snoozed_until  timestamptz,
    changed_by     text        NOT NULL CHECK (btrim(changed_by) <> ''),
    why            text        NOT NULL CHECK (btrim(why) <> '')
);
CREATE INDEX IF NOT EXISTS dead_letter_cases_snoozed ON dead_letter_cases (snoozed_until) WHERE snoozed_until IS NOT NULL;
CREATE INDEX IF NOT EXISTS dead_letter_cases_assigned ON dead_letter_cases (assigned_to) WHERE assigned_to IS NOT NULL;
CREATE TABLE IF NOT EXISTS dead_letter_group_cases (
    group_id    int  PRIMARY KEY,
    assigned_to text,
    changed_by  text NOT NULL CHECK (btrim(changed_by) <> ''),
    why         text NOT NULL CHECK (btrim(why) <> '')
);
COMMENT ON TABLE dead_letter_cases IS 'Who looks after a dead letter, and until when it is snoozed. A row has no effect on its state';

CREATE TABLE IF NOT EXISTS dead_letter_group_audit (
    audit_id    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    group_id    int         NOT NULL,
    rule_id     bigint,
    act         text        NOT NULL,
    actor       text        NOT NULL,
    why         text        NOT NULL,
    login       name        NOT NULL DEFAULT session_user,
    application text        DEFAULT nullif(current_setting('application_name'), ''),
    client      inet        DEFAULT inet_client_addr()
);
CREATE INDEX IF NOT EXISTS dead_letter_group_audit_group ON dead_letter_group_audit (group_id, audit_id);
COMMENT ON TABLE dead_letter_group_audit IS 'What happened to groups of dead letters and to their rules: lines are added and never changed';

-- A person can reopen what a person closed.
INSERT INTO dead_letter_moves SELECT 'RESOLVED', 'PENDING', 'reopened' WHERE NOT EXISTS (SELECT FROM dead_letter_moves WHERE act = 'reopened');

-- +goose StatementBegin
-- Why the one may not approve what the other made; NULL: two persons act. Those whom a desk vouches for are known by name, all others by login.
CREATE OR REPLACE FUNCTION dead_letters_second(made_by text, made_vouched boolean, made_login name, actor text, vouched boolean) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN vouched IS DISTINCT FROM made_vouched THEN 'way'
                WHEN coalesce(btrim(actor), '') = '' OR lower(btrim(actor)) = lower(btrim(made_by)) THEN 'name'
                WHEN NOT vouched AND session_user = made_login THEN 'login' END $$;

CREATE OR REPLACE FUNCTION dead_letters_second_or_fail(made_by text, made_vouched boolean, made_login name, actor text, vouched boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    refused text := dead_letters_second(made_by, made_vouched, made_login, actor, vouched);
BEGIN
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'a second person has to approve this: %', refused USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_seconds_' || refused;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION dead_letters_rule_guard() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    said boolean;
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.login := session_user;
        NEW.created_at := clock_timestamp();
        NEW.acted := 0;
        NEW.state := CASE WHEN NEW.act <> 'snoozed' AND dead_letters_four_eyes() THEN 'PROPOSED' ELSE 'ACTIVE' END;
        NEW.approved_by := NULL; NEW.approved_why := NULL; NEW.approved_login := NULL; NEW.approved_at := NULL;
        NEW.acted_at := NULL; NEW.ended_by := NULL; NEW.ended_why := NULL; NEW.ended_at := NULL;
        IF NEW.state = 'PROPOSED' THEN
            PERFORM dead_letters_asked(NEW.made_by, NEW.why, NEW.vouched);
        END IF;
        INSERT INTO dead_letter_group_audit (group_id, rule_id, act, actor, why)
            VALUES (NEW.group_id, NEW.rule_id, CASE WHEN NEW.act = 'snoozed' THEN 'snoozed' WHEN NEW.state = 'PROPOSED' THEN 'rule_proposed' ELSE 'rule_added' END, NEW.made_by,
                    CASE WHEN NEW.act = 'snoozed' THEN format('until %s UTC: %s', to_char(NEW.ends_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), NEW.why) ELSE NEW.why END);
        RETURN NEW;
    END IF;
    IF (NEW.rule_id, NEW.group_id, NEW.topic, NEW.act, NEW.wait, NEW.rate, NEW.most, NEW.failures, NEW.why, NEW.made_by, NEW.login, NEW.created_at, NEW.ends_at)
        IS DISTINCT FROM (OLD.rule_id, OLD.group_id, OLD.topic, OLD.act, OLD.wait, OLD.rate, OLD.most, OLD.failures, OLD.why, OLD.made_by, OLD.login, OLD.created_at, OLD.ends_at) THEN
        RAISE EXCEPTION 'a rule stays as it was made: %', OLD.rule_id USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_rules_fixed';
    END IF;
    IF NEW.acted < OLD.acted OR NEW.acted <> OLD.acted AND (OLD.state <> 'ACTIVE' OR NEW.acted > OLD.most AND OLD.most > 0) THEN
        RAISE EXCEPTION 'a rule acts while it is active, and no more than it may: %', OLD.rule_id USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_rules_most';
    END IF;
    IF NEW.state = OLD.state THEN
        IF (NEW.approved_by, NEW.approved_why, NEW.approved_login, NEW.approved_at, NEW.vouched, NEW.ended_by, NEW.ended_why, NEW.ended_at)
            IS DISTINCT FROM (OLD.approved_by, OLD.approved_why, OLD.approved_login, OLD.approved_at, OLD.vouched, OLD.ended_by, OLD.ended_why, OLD.ended_at) THEN
            RAISE EXCEPTION 'a rule stays as it was made: %', OLD.rule_id USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_rules_fixed';
        END IF;
        RETURN NEW;
    END IF;
    CASE
    WHEN OLD.state = 'PROPOSED' AND NEW.state = 'ACTIVE' THEN
        -- vouched says in this statement how the second person is known.
        said := NEW.vouched;
        PERFORM dead_letters_asked(NEW.approved_by, NEW.approved_why, said);
        PERFORM dead_letters_second_or_fail(OLD.made_by, OLD.vouched, OLD.login, NEW.approved_by, said);
        NEW.vouched := OLD.vouched;
        NEW.approved_login := session_user;
        NEW.approved_at := clock_timestamp();
        INSERT INTO dead_letter_group_audit (group_id, rule_id, act, actor, why) VALUES (NEW.group_id, NEW.rule_id, 'rule_approved', NEW.approved_by, NEW.approved_why);
    WHEN OLD.state IN ('PROPOSED', 'ACTIVE') AND NEW.state IN ('STOPPED', 'REMOVED') THEN
        IF coalesce(btrim(NEW.ended_by), '') = '' OR coalesce(btrim(NEW.ended_why), '') = '' THEN
            RAISE EXCEPTION 'a name and a reason are required' USING ERRCODE = 'invalid_parameter_value';
        END IF;
        NEW.vouched := OLD.vouched;
        NEW.ended_at := clock_timestamp();
        INSERT INTO dead_letter_group_audit (group_id, rule_id, act, actor, why)
            VALUES (NEW.group_id, NEW.rule_id, CASE NEW.state WHEN 'STOPPED' THEN 'rule_stopped' ELSE 'rule_removed' END, NEW.ended_by, NEW.ended_why);
    ELSE
        RAISE EXCEPTION 'a rule that ended stays so: %', OLD.rule_id USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_rules_fixed';
    END CASE;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION dead_letters_job_guard() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.login := session_user;
        NEW.approved_by := NULL; NEW.approved_login := NULL; NEW.approved_at := NULL;
        NEW.proposed := NEW.act = 'closed' AND dead_letters_four_eyes();
        IF NEW.proposed THEN
            PERFORM dead_letters_asked(NEW.operator, NEW.reason, NEW.vouched);
            NEW.state := 'PROPOSED';
            NEW.note := 'it waits for a second person';
        END IF;
        RETURN NEW;
    END IF;
    IF (NEW.act, NEW.filter, NEW.most, NEW.proposed) IS DISTINCT FROM (OLD.act, OLD.filter, OLD.most, OLD.proposed) THEN
        RAISE EXCEPTION 'job % stays as it was made', OLD.job_id USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_jobs_fixed';
    END IF;
    IF NOT OLD.proposed THEN
        RETURN NEW;
    END IF;
    IF (NEW.job_id, NEW.act, NEW.filter, NEW.most, NEW.operator, NEW.login, NEW.proposed) IS DISTINCT FROM (OLD.job_id, OLD.act, OLD.filter, OLD.most, OLD.operator, OLD.login, OLD.proposed)
        OR OLD.approved_by IS NOT NULL AND (NEW.approved_by, NEW.approved_login, NEW.approved_at) IS DISTINCT FROM (OLD.approved_by, OLD.approved_login, OLD.approved_at) THEN
        RAISE EXCEPTION 'job % stays as it was proposed', OLD.job_id USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_jobs_fixed';
    END IF;
    IF OLD.approved_by IS NULL AND NEW.approved_by IS NOT NULL THEN
        PERFORM dead_letters_asked(NEW.approved_by, NEW.reason, NEW.vouched);
        PERFORM dead_letters_second_or_fail(OLD.operator, OLD.vouched, OLD.login, NEW.approved_by, NEW.vouched);
        NEW.approved_login := session_user;
        NEW.approved_at := clock_timestamp();
    END IF;
    NEW.vouched := OLD.vouched;
    IF NEW.approved_by IS NULL AND NEW.state NOT IN ('PROPOSED', 'STOPPED') THEN
        RAISE EXCEPTION 'a second person has to approve job %', OLD.job_id USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letter_seconds_open';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION dead_letters_case_noted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP = 'INSERT' AND NEW.assigned_to IS NOT NULL OR TG_OP = 'UPDATE' AND NEW.assigned_to IS DISTINCT FROM OLD.assigned_to THEN
        INSERT INTO dead_letter_audit (dead_letter_id, act, from_state, to_state, actor, why, attempts, job_id)
            SELECT d.dead_letter_id, 'assigned', d.state, d.state, NEW.changed_by, format('to %s: %s', coalesce(NEW.assigned_to, 'nobody'), NEW.why), d.attempts, d.job_id
              FROM dead_letters d WHERE d.dead_letter_id = NEW.dead_letter_id;
    END IF;
    IF TG_OP = 'INSERT' AND NEW.snoozed_until IS NOT NULL OR TG_OP = 'UPDATE' AND NEW.snoozed_until IS DISTINCT FROM OLD.snoozed_until THEN
        INSERT INTO dead_letter_audit (dead_letter_id, act, from_state, to_state, actor, why, attempts, job_id)
            SELECT d.dead_letter_id, 'snoozed', d.state, d.state, NEW.changed_by,
                   CASE WHEN NEW.snoozed_until IS NULL THEN 'no longer: ' || NEW.why
                        ELSE format('until %s UTC: %s', to_char(NEW.snoozed_until AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), NEW.why) END, d.attempts, d.job_id
              FROM dead_letters d WHERE d.dead_letter_id = NEW.dead_letter_id;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION dead_letters_group_noted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO dead_letter_group_audit (group_id, act, actor, why) VALUES (NEW.group_id, 'assigned', NEW.changed_by, format('to %s: %s', coalesce(NEW.assigned_to, 'nobody'), NEW.why));
    RETURN NULL;
END $$;

-- They are for nobody but their triggers, and see the tables of this schema alone.
DO $$
DECLARE
    f text;
    g record;
BEGIN
    FOREACH f IN ARRAY ARRAY['dead_letters_second(text, boolean, name, text, boolean)', 'dead_letters_second_or_fail(text, boolean, name, text, boolean)',
        'dead_letters_rule_guard()', 'dead_letters_job_guard()', 'dead_letters_case_noted()', 'dead_letters_group_noted()'] LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
    END LOOP;
    -- Whoever works with the ledger keeps working with it, and whoever reads it sees this.
    FOR g IN SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who, bool_or(a.privilege_type = 'INSERT') AS works
               FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'dead_letters'::regclass AND a.grantee <> c.relowner AND a.privilege_type IN ('SELECT', 'INSERT') GROUP BY 1 LOOP
        EXECUTE format('GRANT SELECT ON dead_letter_rules, dead_letter_rule_acts, dead_letter_cases, dead_letter_group_cases, dead_letter_group_audit TO %s', g.who);
        IF g.works THEN
            EXECUTE format('GRANT INSERT, UPDATE ON dead_letter_rules, dead_letter_cases, dead_letter_group_cases TO %s', g.who);
            EXECUTE format('GRANT INSERT ON dead_letter_rule_acts TO %s', g.who);
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd

CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON dead_letter_rules FOR EACH ROW EXECUTE FUNCTION dead_letters_rule_guard();
CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON dead_letter_jobs FOR EACH ROW EXECUTE FUNCTION dead_letters_job_guard();
CREATE OR REPLACE TRIGGER noted AFTER INSERT OR UPDATE ON dead_letter_cases FOR EACH ROW EXECUTE FUNCTION dead_letters_case_noted();
CREATE OR REPLACE TRIGGER noted AFTER INSERT OR UPDATE ON dead_letter_group_cases FOR EACH ROW EXECUTE FUNCTION dead_letters_group_noted();
CREATE OR REPLACE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON dead_letter_group_audit FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_kept();

-- +goose Down
DROP TRIGGER IF EXISTS guard ON dead_letter_jobs;
DROP TABLE IF EXISTS dead_letter_rule_acts, dead_letter_rules, dead_letter_cases, dead_letter_group_cases, dead_letter_group_audit;
DROP FUNCTION IF EXISTS dead_letters_rule_guard(), dead_letters_job_guard(), dead_letters_case_noted(), dead_letters_group_noted(),
    dead_letters_second_or_fail(text, boolean, name, text, boolean), dead_letters_second(text, boolean, name, text, boolean);
UPDATE dead_letter_jobs SET state = 'STOPPED', ended_at = clock_timestamp() WHERE state = 'PROPOSED';
ALTER TABLE dead_letter_jobs DROP CONSTRAINT IF EXISTS dead_letter_jobs_state_check;
ALTER TABLE dead_letter_jobs ADD CONSTRAINT dead_letter_jobs_state_check CHECK (state IN ('WAITING', 'RUNNING', 'STOPPED', 'DONE'));
ALTER TABLE dead_letter_jobs DROP COLUMN IF EXISTS proposed, DROP COLUMN IF EXISTS vouched, DROP COLUMN IF EXISTS login, DROP COLUMN IF EXISTS approved_by, DROP COLUMN IF EXISTS approved_login, DROP COLUMN IF EXISTS approved_at;
DELETE FROM dead_letter_moves WHERE act = 'reopened';
