-- What each subject may do now, by path, and when that changed. The desk keeps these tables where DOCKET_STATES is true. It follows the
-- rows of decision_logs in the order of storing; the mark says how far, and moves in the transaction that changes the states.

-- +goose Up
-- No column but the key has an index, and pages have room, so that an update changes no index (HOT).
CREATE TABLE IF NOT EXISTS decision_states (
    subject        text COLLATE "C" NOT NULL,
    path           text COLLATE "C" NOT NULL,
    verdict        text             NOT NULL,
    revision       text             NOT NULL, -- of the bundles; empty: none
    hash           bytea            NOT NULL, -- of verdict, revision, and a result that is not only true or false
    since          timestamptz      NOT NULL, -- ts of the first decision with this verdict, as far as the order of storing tells
    since_id       text COLLATE "C" NOT NULL,
    last_seen      timestamptz      NOT NULL,
    decisions      bigint           NOT NULL,
    version_ts     timestamptz      NOT NULL, -- of the newest decision: none that is older changes verdict, revision or hash
    version_id     text COLLATE "C" NOT NULL,
    before_verdict text,                      -- of the last decision before since; NULL: none is known
    before_ts      timestamptz,
    before_id      text COLLATE "C",
    late           bigint           NOT NULL DEFAULT 0, -- late decisions with another verdict after since, which is doubtful then
    PRIMARY KEY (subject, path)
) WITH (fillfactor = 70);
COMMENT ON TABLE decision_states IS 'the newest answer of each subject and path, as far as decision_states_mark has come; kept by docket desk with DOCKET_STATES';

-- Rows are only added. The number is in the order of storing, as one transaction at a time adds them.
CREATE TABLE IF NOT EXISTS decision_flips (
    flip_id      bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subject      text COLLATE "C" NOT NULL,
    path         text COLLATE "C" NOT NULL,
    was          text             NOT NULL,
    verdict      text             NOT NULL,
    was_revision text             NOT NULL,
    revision     text             NOT NULL,
    ts           timestamptz      NOT NULL, -- of the decision with the other verdict
    decision_id  text COLLATE "C" NOT NULL,
    was_ts       timestamptz      NOT NULL, -- of the decision that it differs from
    was_id       text COLLATE "C" NOT NULL,
    stored_at    timestamptz      NOT NULL,
    late         boolean          NOT NULL, -- it was stored after a newer one, and did not change the state
    noted_at     timestamptz      NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS decision_flips_subject ON decision_flips (subject, flip_id);
CREATE INDEX IF NOT EXISTS decision_flips_path ON decision_flips (path, flip_id);
COMMENT ON TABLE decision_flips IS 'changes of the verdict of a subject and path, in the order of storing';

CREATE TABLE IF NOT EXISTS decision_states_mark (
    stored_before timestamptz NOT NULL,           -- what was stored before is in the states, and nothing else
    states        bigint      NOT NULL DEFAULT 0, -- rows of decision_states
    subject_by    text        NOT NULL DEFAULT '',-- the settings by which subjects are found; empty: none was yet
    since         timestamptz,                    -- the least stored_at that the states have
    full_at       timestamptz,                    -- when a subject last had no room; NULL: all had
    one           boolean     PRIMARY KEY DEFAULT true CHECK (one)
);
INSERT INTO decision_states_mark (stored_before) VALUES ('-infinity') ON CONFLICT DO NOTHING;
COMMENT ON TABLE decision_states_mark IS 'how far decision_states and decision_flips have come';

CREATE TABLE IF NOT EXISTS decision_states_paths (
    path      text COLLATE "C" PRIMARY KEY,
    denied_ts timestamptz      NOT NULL, -- of the first decision that was denied, in the order of storing
    denied_id text COLLATE "C" NOT NULL,
    stored_at timestamptz      NOT NULL,
    told      boolean          NOT NULL DEFAULT false
);
COMMENT ON TABLE decision_states_paths IS 'the first denial of each path, for alerts';

CREATE TABLE IF NOT EXISTS decision_states_revisions (
    path      text COLLATE "C" NOT NULL,
    revision  text COLLATE "C" NOT NULL,
    first_at  timestamptz      NOT NULL, -- stored_at
    last_at   timestamptz      NOT NULL,
    allowed   bigint           NOT NULL,
    denied    bigint           NOT NULL,
    told      boolean          NOT NULL DEFAULT false,
    PRIMARY KEY (path, revision)
) WITH (fillfactor = 70);
COMMENT ON TABLE decision_states_revisions IS 'decisions that each revision of the bundles allowed and denied, by path, for alerts';

-- +goose StatementBegin
-- decision_states_trim removes states that were not seen for so long, flips that were noted so long ago, and revisions and first
-- denials of 30 days without a decision. It removes at most so many rows of each, and returns how many states that were.
CREATE OR REPLACE FUNCTION decision_states_trim(idle interval, keep interval, portion int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    gone bigint;
BEGIN
    IF idle < interval '1 hour' OR keep < interval '1 hour' OR portion NOT BETWEEN 1 AND 100000 THEN
        RAISE EXCEPTION 'states and flips are kept for an hour at least' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The mark is locked first, as where the states change.
    PERFORM FROM decision_states_mark FOR UPDATE;
    DELETE FROM decision_states WHERE (subject, path) IN (SELECT subject, path FROM decision_states WHERE last_seen < now() - idle LIMIT portion);
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
        UPDATE decision_states_mark SET states = greatest(states - gone, 0);
    END IF;
    DELETE FROM decision_flips WHERE flip_id IN (SELECT flip_id FROM decision_flips WHERE noted_at < now() - keep ORDER BY flip_id LIMIT portion);
    DELETE FROM decision_states_revisions WHERE last_at < now() - interval '30 days';
    DELETE FROM decision_states_paths WHERE told AND stored_at < now() - idle;
    RETURN gone;
END $$;

-- decision_states_restart empties all of it: the next round begins with the oldest stored row. It is for the owner, after the
-- settings by which subjects are found were changed.
CREATE OR REPLACE FUNCTION decision_states_restart() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM decision_states_mark FOR UPDATE;
    TRUNCATE decision_states, decision_flips, decision_states_paths, decision_states_revisions;
    UPDATE decision_states_mark SET stored_before = '-infinity', states = 0, subject_by = '', since = NULL, full_at = NULL;
END $$;

-- Whoever works with the ledger may keep the states, and whoever reads it may read them.
DO $$
DECLARE
    f text;
    g record;
BEGIN
    FOREACH f IN ARRAY ARRAY['decision_states_trim(interval, interval, int)', 'decision_states_restart()'] LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
    END LOOP;
    FOR g IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'dead_letters'::regclass AND a.grantee <> c.relowner AND a.privilege_type = 'INSERT' LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE ON decision_states, decision_states_paths, decision_states_revisions TO %s', g.who);
        EXECUTE format('GRANT SELECT, UPDATE ON decision_states_mark TO %s', g.who);
        EXECUTE format('GRANT SELECT, INSERT ON decision_flips TO %s', g.who);
        EXECUTE format('GRANT EXECUTE ON FUNCTION decision_states_trim(interval, interval, int) TO %s', g.who);
    END LOOP;
    FOR g IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'dead_letters'::regclass AND a.grantee <> c.relowner AND a.privilege_type = 'SELECT' LOOP
        EXECUTE format('GRANT SELECT ON decision_states, decision_flips, decision_states_mark, decision_states_paths, decision_states_revisions TO %s', g.who);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION IF EXISTS decision_states_trim(interval, interval, int), decision_states_restart();
DROP TABLE IF EXISTS decision_states, decision_flips, decision_states_mark, decision_states_paths, decision_states_revisions;
