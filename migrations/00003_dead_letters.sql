-- The ledger of dead letters, in the schema of decision_logs. Its rules are kept here and not only in the program: whoever
-- changes a row, by psql too, can make legal moves alone, and each leaves its line in the audit.

-- +goose Up
CREATE TYPE dead_letter_state AS ENUM ('PENDING', 'PROCESSING', 'FAILED', 'RESOLVED');

CREATE TABLE dead_letter_groups (
    group_id    int         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fingerprint text        NOT NULL UNIQUE,
    kind        text        NOT NULL,
    code        text        NOT NULL,
    "table"     text        NOT NULL,
    "column"    text        NOT NULL,
    "constraint" text       NOT NULL,
    message     text        NOT NULL,
    first_seen  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE dead_letters (
    dead_letter_id   text COLLATE "C"  PRIMARY KEY,
    state            dead_letter_state NOT NULL DEFAULT 'PENDING',
    group_id         int               NOT NULL,
    path             text COLLATE "C"  NOT NULL DEFAULT '',
    decision_id      text,
    decision_ts      timestamptz,
    origin_topic     text              NOT NULL,
    origin_partition int               NOT NULL,
    origin_offset    bigint            NOT NULL,
    origin_index     int,
    origin_timestamp timestamptz,
    found_topic      text              NOT NULL,
    found_partition  int               NOT NULL,
    found_offset     bigint            NOT NULL,
    found_at         timestamptz       NOT NULL,
    key              bytea,
    value            bytea,
    headers          jsonb,
    message          text              NOT NULL,
    attempts         int               NOT NULL DEFAULT 0,
    edited           boolean           NOT NULL DEFAULT false,
    first_failed_at  timestamptz       NOT NULL,
    last_failed_at   timestamptz       NOT NULL,
    seen_at          timestamptz       NOT NULL DEFAULT now(),
    changed_at       timestamptz       NOT NULL DEFAULT clock_timestamp(),
    changed_by       text              NOT NULL,
    changed_act      text              NOT NULL,
    why              text              NOT NULL,
    owner            text,
    lease_until      timestamptz,
    job_id           bigint,
    parent_id        text COLLATE "C"
);

-- A list is asked for by group, path and state, in the order of the last failure: the counters say which of these combinations
-- there are, and each has its newest at one place of "listed". "newest" is for lists of nearly everything and for ranges of time.
-- What else a filter asks is included, so that rows are fetched only once it is known that they are on the page.
CREATE INDEX dead_letters_listed ON dead_letters (group_id, path, state, last_failed_at DESC, dead_letter_id DESC) INCLUDE (origin_partition, first_failed_at);
CREATE INDEX dead_letters_newest ON dead_letters (last_failed_at DESC, dead_letter_id DESC) INCLUDE (group_id, path, state, origin_partition, first_failed_at);
-- The first and the last failure of a group, which is all that the counters do not know of it. "first" and "open" also lead a job
-- from the oldest on; what its filter asks is in their keys, as what is only included is looked at in the row.
CREATE INDEX dead_letters_first ON dead_letters (group_id, state, first_failed_at, origin_partition, path) INCLUDE (last_failed_at) WHERE state <> 'RESOLVED';
CREATE INDEX dead_letters_last ON dead_letters (group_id, state, last_failed_at) INCLUDE (path, origin_partition);
-- For the report, and for what retention deletes next.
CREATE INDEX dead_letters_open ON dead_letters (first_failed_at, group_id, state, origin_partition, path) WHERE state <> 'RESOLVED';
CREATE INDEX dead_letters_found ON dead_letters (found_topic, found_at) WHERE state <> 'RESOLVED';
CREATE INDEX dead_letters_leased ON dead_letters (lease_until) WHERE state = 'PROCESSING';
CREATE INDEX dead_letters_resolved ON dead_letters (changed_at) WHERE state = 'RESOLVED';

CREATE TABLE dead_letter_audit (
    audit_id       bigint            GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at             timestamptz       NOT NULL DEFAULT clock_timestamp(),
    dead_letter_id text COLLATE "C"  NOT NULL,
    act            text              NOT NULL,
    from_state     dead_letter_state,
    to_state       dead_letter_state,
    actor          text              NOT NULL,
    why            text              NOT NULL,
    attempts       int               NOT NULL,
    job_id         bigint,
    original       bytea,
    diff           text
);
CREATE INDEX dead_letter_audit_letter ON dead_letter_audit (dead_letter_id, audit_id);
CREATE INDEX dead_letter_audit_removed ON dead_letter_audit (dead_letter_id) WHERE act = 'removed';

CREATE TABLE dead_letter_outbox (
    outbox_id           bigint          GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dead_letter_id      text COLLATE "C" NOT NULL,
    mark                uuid            NOT NULL UNIQUE DEFAULT gen_random_uuid(),
    topic               text            NOT NULL,
    key_hash            bigint,
    value_hash          bytea           NOT NULL,
    actor               text            NOT NULL,
    job_id              bigint,
    created_at          timestamptz     NOT NULL DEFAULT clock_timestamp(),
    tries               int             NOT NULL DEFAULT 0,
    next_try_at         timestamptz     NOT NULL DEFAULT clock_timestamp(),
    claimed_by          text,
    claimed_until       timestamptz,
    published_at        timestamptz,
    published_partition int,
    published_offset    bigint,
    children            int[]           NOT NULL DEFAULT '{}',
    looks               int             NOT NULL DEFAULT 0,
    look_at             timestamptz,
    ended_at            timestamptz,
    outcome             text CHECK (outcome IN ('stored', 'dead', 'refused', 'withdrawn')),
    code                text            NOT NULL DEFAULT '',
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
-- One effect: of one dead letter no two retries wait to be published.
CREATE UNIQUE INDEX dead_letter_outbox_unsent ON dead_letter_outbox (dead_letter_id) WHERE published_at IS NULL AND ended_at IS NULL;
CREATE INDEX dead_letter_outbox_due ON dead_letter_outbox (outbox_id) INCLUDE (next_try_at, claimed_until) WHERE published_at IS NULL AND ended_at IS NULL;
CREATE INDEX dead_letter_outbox_held ON dead_letter_outbox (key_hash, outbox_id) WHERE (tries > 0 OR claimed_until IS NOT NULL) AND published_at IS NULL AND ended_at IS NULL;
CREATE INDEX dead_letter_outbox_look ON dead_letter_outbox (look_at) WHERE published_at IS NOT NULL AND ended_at IS NULL;
-- An answer that was lost: what was given up may be in its topic all the same.
CREATE INDEX dead_letter_outbox_doubtful ON dead_letter_outbox (look_at) WHERE outcome = 'refused' AND look_at IS NOT NULL;
CREATE INDEX dead_letter_outbox_letter ON dead_letter_outbox (dead_letter_id, outbox_id);
CREATE INDEX dead_letter_outbox_place ON dead_letter_outbox (topic, published_partition, published_offset) WHERE published_at IS NOT NULL;
CREATE INDEX dead_letter_outbox_job ON dead_letter_outbox (job_id, ended_at) WHERE job_id IS NOT NULL;

CREATE TABLE dead_letter_jobs (
    job_id     bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    act        text        NOT NULL CHECK (act IN ('retried', 'closed')),
    filter     jsonb       NOT NULL,
    rate       float8      NOT NULL DEFAULT 0 CHECK (rate >= 0),
    most       bigint      NOT NULL DEFAULT 0 CHECK (most >= 0),
    state      text        NOT NULL DEFAULT 'WAITING' CHECK (state IN ('WAITING', 'RUNNING', 'STOPPED', 'DONE')),
    operator   text        NOT NULL CHECK (operator <> ''),
    reason     text        NOT NULL CHECK (reason <> ''),
    matched    bigint      NOT NULL,
    sent       bigint      NOT NULL DEFAULT 0,
    reached    timestamptz NOT NULL DEFAULT '-infinity', -- the first failure of what was moved last: it moves the oldest first
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,
    ended_at   timestamptz,
    note       text        NOT NULL DEFAULT '',
    stopped_by text        NOT NULL DEFAULT '',
    owner      text,
    lease_until timestamptz
);

-- How the retries of a job ended: the sum over all rows of a job and outcome, as below. It stays when the retries are removed.
CREATE TABLE dead_letter_job_ends (
    job_id  bigint NOT NULL,
    outcome text   NOT NULL,
    n       bigint NOT NULL
);
CREATE INDEX dead_letter_job_ends_job ON dead_letter_job_ends (job_id);

CREATE TABLE dead_letter_duties (
    duty    text        PRIMARY KEY,
    holder  text        NOT NULL,
    until   timestamptz NOT NULL,
    done_at timestamptz
);

CREATE TABLE dead_letter_notes (
    name text        PRIMARY KEY,
    text text        NOT NULL,
    at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- How many dead letters there are by group, path and state: the sum over all rows of a combination. A change adds rows and
-- never touches one that is there, so nobody waits for anybody; the desk sums them up now and then.
CREATE TABLE dead_letter_counts (
    group_id int               NOT NULL,
    path     text COLLATE "C"  NOT NULL,
    state    dead_letter_state NOT NULL,
    n        bigint            NOT NULL
);

-- The same by day of the last failure (UTC) and original partition, for filters that ask for these.
CREATE TABLE dead_letter_days (
    day              date              NOT NULL,
    origin_topic     text              NOT NULL,
    origin_partition int               NOT NULL,
    group_id         int               NOT NULL,
    state            dead_letter_state NOT NULL,
    n                bigint            NOT NULL
);

-- The legal moves. internal/desk/ledger has the same table, and a test holds them against each other.
CREATE TABLE dead_letter_moves (
    from_state dead_letter_state,
    to_state   dead_letter_state,
    act        text NOT NULL
);
INSERT INTO dead_letter_moves VALUES
    (NULL, 'PENDING', 'entered'),
    ('PENDING', 'PROCESSING', 'retried'), ('FAILED', 'PROCESSING', 'retried'),
    ('PROCESSING', 'PENDING', 'died'), ('PROCESSING', 'FAILED', 'died'), ('PENDING', 'FAILED', 'died'),
    ('PROCESSING', 'FAILED', 'refused'), ('PROCESSING', 'PENDING', 'lease_ended'),
    ('PROCESSING', 'RESOLVED', 'stored'), ('PENDING', 'RESOLVED', 'stored'), ('FAILED', 'RESOLVED', 'stored'),
    ('PENDING', 'RESOLVED', 'closed'), ('FAILED', 'RESOLVED', 'closed'),
    ('RESOLVED', NULL, 'removed');

-- +goose StatementBegin
CREATE FUNCTION dead_letters_entered() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF EXISTS (SELECT FROM came WHERE state <> 'PENDING' OR changed_act <> 'entered') THEN
        RAISE EXCEPTION 'a dead letter enters the ledger as PENDING' USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    INSERT INTO dead_letter_audit (at, dead_letter_id, act, to_state, actor, why, attempts, job_id)
        SELECT changed_at, dead_letter_id, changed_act, state, changed_by, why, attempts, job_id FROM came;
    INSERT INTO dead_letter_counts SELECT group_id, path, state, count(*) FROM came GROUP BY 1, 2, 3;
    INSERT INTO dead_letter_days SELECT (last_failed_at AT TIME ZONE 'UTC')::date, origin_topic, origin_partition, group_id, state, count(*) FROM came GROUP BY 1, 2, 3, 4, 5;
    RETURN NULL;
END $$;

CREATE FUNCTION dead_letters_moved() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    wrong text;
BEGIN
    -- Whoever changes a state by hand and says nothing of it is named by the role.
    SELECT format('%s from %s to %s by %s', o.dead_letter_id, o.state, n.state, n.changed_act) INTO wrong
      FROM was o JOIN is_now n USING (dead_letter_id)
     WHERE o.state <> n.state
       AND NOT EXISTS (SELECT FROM dead_letter_moves m WHERE m.from_state = o.state AND m.to_state = n.state AND m.act = n.changed_act)
     LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'a dead letter cannot move like that: %', wrong USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    IF (SELECT count(*) FROM was) <> (SELECT count(*) FROM was JOIN is_now USING (dead_letter_id)) THEN
        RAISE EXCEPTION 'a dead letter keeps its id' USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    INSERT INTO dead_letter_audit (at, dead_letter_id, act, from_state, to_state, actor, why, attempts, job_id, original, diff)
        SELECT n.changed_at, n.dead_letter_id,
               CASE WHEN o.state <> n.state THEN n.changed_act WHEN n.attempts <> o.attempts THEN 'died' ELSE 'edited' END, o.state, n.state,
               CASE WHEN n.changed_at = o.changed_at THEN session_user || ' (SQL)' ELSE n.changed_by END,
               CASE WHEN n.changed_at = o.changed_at THEN 'changed by hand' ELSE n.why END,
               n.attempts, n.job_id, CASE WHEN n.value IS DISTINCT FROM o.value THEN o.value END,
               CASE WHEN n.value IS DISTINCT FROM o.value THEN nullif(current_setting('docket.diff', true), '') END
          FROM was o JOIN is_now n USING (dead_letter_id)
         WHERE o.state <> n.state OR n.attempts <> o.attempts OR n.value IS DISTINCT FROM o.value;
    INSERT INTO dead_letter_counts
        SELECT group_id, path, state, sum(n) FROM (
            SELECT group_id, path, state, -1 AS n FROM was UNION ALL SELECT group_id, path, state, 1 FROM is_now) c
         GROUP BY 1, 2, 3 HAVING sum(n) <> 0;
    INSERT INTO dead_letter_days
        SELECT (last_failed_at AT TIME ZONE 'UTC')::date, origin_topic, origin_partition, group_id, state, sum(n) FROM (
            SELECT last_failed_at, origin_topic, origin_partition, group_id, state, -1 AS n FROM was UNION ALL
            SELECT last_failed_at, origin_topic, origin_partition, group_id, state, 1 FROM is_now) c
         GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0;
    RETURN NULL;
END $$;

CREATE FUNCTION dead_letters_left() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF EXISTS (SELECT FROM gone WHERE state <> 'RESOLVED') THEN
        RAISE EXCEPTION 'only what is RESOLVED leaves the ledger' USING ERRCODE = 'check_violation', CONSTRAINT = 'dead_letters_moves';
    END IF;
    INSERT INTO dead_letter_audit (dead_letter_id, act, from_state, actor, why, attempts, job_id)
        SELECT dead_letter_id, 'removed', state, coalesce(nullif(current_setting('docket.actor', true), ''), session_user || ' (SQL)'),
               coalesce(nullif(current_setting('docket.why', true), ''), 'removed by hand'), attempts, job_id FROM gone;
    INSERT INTO dead_letter_counts SELECT group_id, path, state, -count(*) FROM gone GROUP BY 1, 2, 3;
    INSERT INTO dead_letter_days SELECT (last_failed_at AT TIME ZONE 'UTC')::date, origin_topic, origin_partition, group_id, state, -count(*) FROM gone GROUP BY 1, 2, 3, 4, 5;
    RETURN NULL;
END $$;

CREATE FUNCTION dead_letters_ended() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO dead_letter_job_ends
        SELECT job_id, outcome, sum(n) FROM (
            SELECT job_id, outcome, -1 AS n FROM was UNION ALL SELECT job_id, outcome, 1 FROM is_now) c
         WHERE job_id IS NOT NULL AND outcome IS NOT NULL GROUP BY 1, 2 HAVING sum(n) <> 0;
    RETURN NULL;
END $$;

CREATE FUNCTION dead_letters_kept() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RAISE EXCEPTION '% on %: what is written there stays', TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;

-- They work as their owner, so that whoever works with dead letters cannot write to the audit but by moving one.
DO $$
DECLARE
    f text;
BEGIN
    FOREACH f IN ARRAY ARRAY['entered', 'moved', 'left', 'ended', 'kept'] LOOP
        EXECUTE format('ALTER FUNCTION dead_letters_%s() SET search_path = %I, pg_temp', f, current_schema());
        -- Nobody puts them on a table of his own, and has them write there what he likes.
        EXECUTE format('REVOKE ALL ON FUNCTION dead_letters_%s() FROM PUBLIC', f);
        -- A plan that was made for a statement of one row is kept for the next, of a hundred thousand.
        EXECUTE format('ALTER FUNCTION dead_letters_%s() SET enable_nestloop = off', f);
    END LOOP;
END $$;
-- +goose StatementEnd

CREATE TRIGGER entered AFTER INSERT ON dead_letters REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_entered();
CREATE TRIGGER moved AFTER UPDATE ON dead_letters REFERENCING OLD TABLE AS was NEW TABLE AS is_now FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_moved();
CREATE TRIGGER gone AFTER DELETE ON dead_letters REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_left();
CREATE TRIGGER ended AFTER UPDATE ON dead_letter_outbox REFERENCING OLD TABLE AS was NEW TABLE AS is_now FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_ended();
CREATE TRIGGER kept BEFORE TRUNCATE ON dead_letters FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_kept();
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON dead_letter_audit FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_kept();

COMMENT ON TABLE dead_letters IS 'Dead letters, one row for each x-dead-letter-id; see docs/desk.md';
COMMENT ON TABLE dead_letter_audit IS 'What happened to dead letters: lines are added and never changed';
COMMENT ON TABLE dead_letter_counts IS 'Sums: SELECT group_id, path, state, sum(n) GROUP BY 1, 2, 3';
COMMENT ON TABLE dead_letter_days IS 'Sums: SELECT day, origin_topic, origin_partition, group_id, state, sum(n) GROUP BY 1, 2, 3, 4, 5';

-- +goose Down
DROP TABLE dead_letters, dead_letter_audit, dead_letter_outbox, dead_letter_jobs, dead_letter_job_ends, dead_letter_duties, dead_letter_notes, dead_letter_counts, dead_letter_days, dead_letter_moves, dead_letter_groups;
DROP FUNCTION dead_letters_entered(), dead_letters_moved(), dead_letters_left(), dead_letters_ended(), dead_letters_kept();
DROP TYPE dead_letter_state;
