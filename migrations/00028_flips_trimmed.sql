-- decision_states_trim looks at the oldest flips only: they are in the order of their ids. It read all of them each hour while none was
-- old. It returns how many states and flips it removed, so that whoever calls it comes back soon while there are more.
-- decision_states_restart lets the alerts forget how far the states were, so that they tell no old news.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION decision_states_trim(idle interval, keep interval, portion int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    gone  bigint;
    flips bigint;
BEGIN
    IF idle < interval '1 hour' OR keep < interval '1 hour' OR portion NOT BETWEEN 1 AND 100000 THEN
        RAISE EXCEPTION 'states and flips are kept for an hour at least' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The mark is locked first, as where the states change.
    PERFORM FROM decision_states_mark FOR UPDATE;
    DELETE FROM decision_states WHERE (subject, path) IN (SELECT subject, path FROM decision_states WHERE last_seen < now() - idle LIMIT portion);
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
        UPDATE decision_states_mark SET states = greatest(states - gone, 0), trimmed_before = greatest(trimmed_before, now() - idle);
    END IF;
    DELETE FROM decision_flips WHERE flip_id IN
        (SELECT flip_id FROM (SELECT flip_id, noted_at FROM decision_flips ORDER BY flip_id LIMIT portion) AS oldest WHERE noted_at < now() - keep);
    GET DIAGNOSTICS flips = ROW_COUNT;
    DELETE FROM decision_states_revisions WHERE last_at < now() - interval '30 days';
    DELETE FROM decision_states_paths WHERE told AND stored_at < now() - idle;
    RETURN gone + flips;
END $$;

CREATE OR REPLACE FUNCTION decision_states_restart() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM decision_states_mark FOR UPDATE;
    TRUNCATE decision_states, decision_flips, decision_states_paths, decision_states_revisions;
    UPDATE decision_states_mark SET stored_before = '-infinity', states = 0, subject_by = '', since = NULL, full_at = NULL, trimmed_before = NULL;
    UPDATE dead_letter_notes SET text = '' WHERE name = 'states:fresh';
END $$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION decision_states_trim(interval, interval, int) SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION decision_states_restart() SET search_path = %I, pg_temp', current_schema());
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
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
        UPDATE decision_states_mark SET states = greatest(states - gone, 0), trimmed_before = greatest(trimmed_before, now() - idle);
    END IF;
    DELETE FROM decision_flips WHERE flip_id IN (SELECT flip_id FROM decision_flips WHERE noted_at < now() - keep ORDER BY flip_id LIMIT portion);
    DELETE FROM decision_states_revisions WHERE last_at < now() - interval '30 days';
    DELETE FROM decision_states_paths WHERE told AND stored_at < now() - idle;
    RETURN gone;
END $$;

CREATE OR REPLACE FUNCTION decision_states_restart() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM decision_states_mark FOR UPDATE;
    TRUNCATE decision_states, decision_flips, decision_states_paths, decision_states_revisions;
    UPDATE decision_states_mark SET stored_before = '-infinity', states = 0, subject_by = '', since = NULL, full_at = NULL, trimmed_before = NULL;
END $$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION decision_states_trim(interval, interval, int) SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION decision_states_restart() SET search_path = %I, pg_temp', current_schema());
END $$;
-- +goose StatementEnd
