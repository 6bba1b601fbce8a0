-- Retries of edited letters. The row of such a retry is marked in decision_logs.edited_audit_id, and the ledger alone says which
-- row that is: by the place where it published the retry, or by the bytes that it published. Nobody but the functions below writes here.
CREATE TABLE IF NOT EXISTS dead_letter_edits (
    outbox_id bigint      PRIMARY KEY REFERENCES dead_letter_outbox ON DELETE CASCADE,
    audit_id  bigint      NOT NULL, -- the last edit before the retry was claimed
    mark_at   timestamptz NOT NULL DEFAULT clock_timestamp(), -- when its rows are to be marked
    tries     int         NOT NULL DEFAULT 0,
    marked_at timestamptz -- NULL: its rows are not marked yet, or it has none
);
CREATE INDEX IF NOT EXISTS dead_letter_edits_due ON dead_letter_edits (mark_at) WHERE marked_at IS NULL;
COMMENT ON TABLE dead_letter_edits IS 'Retries of edited dead letters, and whether their rows say so; see docs/desk.md';

-- The last edit that a letter's value comes from: its own, or that of the letter that it was a part of, before it entered.
CREATE OR REPLACE FUNCTION dead_letters_edit_of(letter text) RETURNS bigint LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
    found_id bigint;
    before   bigint := 9223372036854775807;
BEGIN
    FOR level IN 1..100 LOOP
        SELECT max(audit_id) INTO found_id FROM dead_letter_audit
         WHERE dead_letter_id = letter AND audit_id < before AND (act = 'edited' OR original IS NOT NULL);
        IF found_id IS NOT NULL THEN
            RETURN found_id;
        END IF;
        SELECT min(audit_id) INTO before FROM dead_letter_audit WHERE dead_letter_id = letter AND act = 'entered';
        SELECT parent_id INTO letter FROM dead_letters WHERE dead_letter_id = letter;
        IF letter IS NULL OR before IS NULL THEN
            RETURN NULL;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- A claim takes the value that is published, so it is then that the edit is known.
CREATE OR REPLACE FUNCTION dead_letters_claimed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO dead_letter_edits AS e (outbox_id, audit_id)
        SELECT n.outbox_id, v.audit_id FROM is_now n JOIN was o USING (outbox_id) CROSS JOIN LATERAL (SELECT dead_letters_edit_of(n.dead_letter_id) OFFSET 0) AS v(audit_id)
         WHERE n.published_at IS NULL AND n.claimed_until IS NOT NULL AND n.claimed_until IS DISTINCT FROM o.claimed_until AND v.audit_id IS NOT NULL
        ON CONFLICT (outbox_id) DO UPDATE SET audit_id = EXCLUDED.audit_id WHERE e.audit_id <> EXCLUDED.audit_id;
    RETURN NULL;
END $$;

-- It marks the rows of a retry. ids, times and came are the decisions in what was published; they only help to find the rows. A row
-- is the retry's where it is of the place at which the retry was published; where that is not known, or was another as the retry was
-- published twice, where it was stored since, of bytes that are in the value that was published. What was there before is neither.
CREATE OR REPLACE FUNCTION dead_letters_mark_edited(sending bigint, ids text[], times timestamptz[], came bytea[], OUT marked int, OUT missing int)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    e       dead_letter_edits;
    o       dead_letter_outbox;
    sent    bytea;
    one     record;
    there   record;
    now_is  bigint;
BEGIN
    marked := 0;
    missing := 0;
    SELECT * INTO e FROM dead_letter_edits d WHERE d.outbox_id = sending AND d.marked_at IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO o FROM dead_letter_outbox d WHERE d.outbox_id = sending AND d.outcome = 'stored';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT a.v INTO sent FROM (
        SELECT value AS v FROM dead_letters WHERE dead_letter_id = o.dead_letter_id
        UNION ALL SELECT original FROM dead_letter_audit WHERE dead_letter_id = o.dead_letter_id AND original IS NOT NULL) a
     WHERE sha256(a.v) = o.value_hash LIMIT 1;
    FOR one IN SELECT i.id, i.ts, i.bytes, sha256(i.bytes) AS sum FROM unnest(ids, times, came) AS i(id, ts, bytes) LOOP
        SELECT d.edited_audit_id AS edit, coalesce(
               d.source_topic = o.topic AND d.source_partition = o.published_partition AND d.source_offset = o.published_offset AND coalesce(d.raw_sha256 = one.sum, true)
               OR d.raw_sha256 = one.sum AND d.stored_at >= o.created_at AND position(one.bytes IN sent) > 0, false) AS its
          INTO there FROM decision_logs d WHERE d.decision_id = one.id AND d.ts = one.ts;
        IF NOT FOUND THEN -- an archive has its day
            missing := missing + 1;
        ELSIF there.its AND there.edit IS NULL THEN
            UPDATE decision_logs d SET edited_audit_id = e.audit_id WHERE d.decision_id = one.id AND d.ts = one.ts RETURNING d.edited_audit_id INTO now_is;
            IF now_is IS NOT DISTINCT FROM e.audit_id THEN
                marked := marked + 1;
            ELSE -- a policy or a trigger of somebody else's keeps the row as it is
                missing := missing + 1;
            END IF;
        END IF;
    END LOOP;
    UPDATE dead_letter_edits d SET tries = tries + 1, mark_at = clock_timestamp() + least(interval '1 day', interval '1 s' * power(2, least(tries, 17))),
           marked_at = CASE WHEN missing = 0 THEN clock_timestamp() END
     WHERE d.outbox_id = sending;
END $$;

-- What was edited stays in the ledger until its rows say so.
CREATE OR REPLACE FUNCTION dead_letters_awaited() RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT o.dead_letter_id FROM dead_letter_edits e JOIN dead_letter_outbox o USING (outbox_id) WHERE e.marked_at IS NULL AND o.outcome = 'stored' $$;

DO $$
DECLARE
    f text;
BEGIN
    FOREACH f IN ARRAY ARRAY['dead_letters_awaited()', 'dead_letters_edit_of(text)', 'dead_letters_claimed()', 'dead_letters_mark_edited(bigint, text[], timestamptz[], bytea[])'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
    ALTER FUNCTION dead_letters_claimed() SET enable_nestloop = off; -- as those of 00003
    -- The planner has no way but the primary key.
    ALTER FUNCTION dead_letters_mark_edited(bigint, text[], timestamptz[], bytea[]) SET enable_seqscan = off;
END $$;

CREATE OR REPLACE TRIGGER claimed AFTER UPDATE ON dead_letter_outbox REFERENCING OLD TABLE AS was NEW TABLE AS is_now FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_claimed();

-- What was claimed before this step, and what was stored since it was edited.
INSERT INTO dead_letter_edits (outbox_id, audit_id)
    SELECT o.outbox_id, a.audit_id
      FROM (SELECT DISTINCT dead_letter_id FROM dead_letter_audit WHERE act = 'edited') x JOIN dead_letter_outbox o USING (dead_letter_id)
     CROSS JOIN LATERAL (SELECT max(audit_id) AS audit_id FROM dead_letter_audit a
         WHERE a.dead_letter_id = o.dead_letter_id AND a.act = 'edited' AND a.at <= o.created_at) a
     WHERE a.audit_id IS NOT NULL AND (o.outcome IS NULL OR o.outcome <> 'dead')
ON CONFLICT (outbox_id) DO NOTHING;
