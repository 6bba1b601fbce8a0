-- How many dead letters a client brings into the ledger in an hour, and which of them stay in Kafka because it brought too many.
-- Programs read both tables; only functions change them.

-- +goose Up
CREATE TABLE IF NOT EXISTS dead_letter_growth (
    client  text COLLATE "C" NOT NULL,
    hour    timestamptz      NOT NULL,
    entered bigint           NOT NULL,
    PRIMARY KEY (client, hour)
);
COMMENT ON TABLE dead_letter_growth IS 'dead letters that entered the ledger, by client and hour; empty client: none that is proven';

CREATE TABLE IF NOT EXISTS dead_letter_surplus (
    surplus_id    bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic         text COLLATE "C" NOT NULL,
    partition     int              NOT NULL,
    client        text COLLATE "C" NOT NULL,
    hour          timestamptz      NOT NULL,
    first_offset  bigint           NOT NULL,
    last_offset   bigint           NOT NULL,
    next_offset   bigint           NOT NULL,
    letters       bigint           NOT NULL,
    entered       bigint           NOT NULL DEFAULT 0,
    archived      bigint           NOT NULL DEFAULT 0,
    lost          bigint           NOT NULL DEFAULT 0,
    first_at      timestamptz      NOT NULL,
    last_at       timestamptz      NOT NULL,
    left_at       timestamptz      NOT NULL DEFAULT clock_timestamp(),
    state         text             NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'entered', 'archived', 'lost')),
    closed_at     timestamptz,
    archived_from bigint,
    archived_in   text,
    ordered_at    timestamptz,
    ordered_by    text,
    ordered_why   text,
    ordered_login name,
    CHECK ((state = 'open') = (closed_at IS NULL))
);
COMMENT ON TABLE dead_letter_surplus IS 'ranges of the dead-letter topics in which dead letters of one client are in Kafka alone: it had brought too many in that hour';
COMMENT ON COLUMN dead_letter_surplus.letters IS 'how many records of the client are in the range; what is between them is of others';
COMMENT ON COLUMN dead_letter_surplus.next_offset IS 'what comes before was read again';
COMMENT ON COLUMN dead_letter_surplus.first_at IS 'the earliest Kafka timestamp of what is still to be read';
COMMENT ON COLUMN dead_letter_surplus.lost IS 'letters that Kafka had deleted before they were read again';
COMMENT ON COLUMN dead_letter_surplus.ordered_by IS 'who had it entered whatever the client brought';
-- One open range of a client in each partition and hour, however many letters it has.
CREATE UNIQUE INDEX IF NOT EXISTS dead_letter_surplus_open ON dead_letter_surplus (topic, partition, client, hour) WHERE state = 'open';
CREATE INDEX IF NOT EXISTS dead_letter_surplus_places ON dead_letter_surplus (topic, partition, last_offset) WHERE state IN ('open', 'archived');

-- The hour that growth counts to. Tests replace this function.
CREATE OR REPLACE FUNCTION dead_letters_hour() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT date_trunc('hour', clock_timestamp(), 'UTC') $$;

-- +goose StatementBegin
-- dead_letters_admit decides which letters enter the ledger, each by one word: 'enter'; 'known' of one that is there, was removed, or is in a range
-- already; 'left' of one that its client has no room for. What is left is in a range once this returns. Letters are given in the order of their ids.
-- A letter has so many copies, the last of them at ends. Children, which are parts of a retry, enter always and count for nothing. Of letters of a range that are read again (range_id) none is known by the
-- range, and what finds no room stays in it. most 0, and anyway: there is room for all.
CREATE OR REPLACE FUNCTION dead_letters_admit(ids text[], clients text[], topics text[], partitions int[], places bigint[], stamps timestamptz[], unplaced boolean[],
    children boolean[], most bigint, range_id bigint, anyway boolean, ends bigint[], copies bigint[]) RETURNS text[] LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    this_hour timestamptz := dead_letters_hour();
    fates     text[] := array_fill('known'::text, ARRAY[cardinality(ids)]);
    fresh     int[];
    admitted  int[];
    remain    int[];
    i         int;
BEGIN
    SELECT array_agg(n.at::int) INTO fresh FROM unnest(ids, stamps, unplaced) WITH ORDINALITY AS n(id, stamp, nowhere, at)
     WHERE NOT EXISTS (SELECT FROM dead_letters d WHERE d.dead_letter_id = n.id)
       AND NOT EXISTS (SELECT FROM dead_letter_audit a WHERE a.dead_letter_id = n.id AND a.act = 'removed' AND (NOT n.nowhere OR a.at >= n.stamp));
    IF fresh IS NULL THEN
        RETURN fates;
    END IF;
    -- Others that bring letters of the same client wait here, so that what is left is counted once and the room is given out once.
    INSERT INTO dead_letter_growth (client, hour, entered)
        SELECT c.client, this_hour, 0 FROM (SELECT DISTINCT clients[f.at] AS client FROM unnest(fresh) AS f(at)) c ORDER BY c.client COLLATE "C" ON CONFLICT DO NOTHING;
    PERFORM FROM dead_letter_growth g WHERE g.hour = this_hour AND g.client = ANY (ARRAY(SELECT clients[f.at] FROM unnest(fresh) AS f(at))) ORDER BY g.client FOR UPDATE;
    SELECT array_agg(f.at) INTO fresh FROM unnest(fresh) AS f(at) WHERE NOT EXISTS (SELECT FROM dead_letters d WHERE d.dead_letter_id = ids[f.at]);
    WITH came AS (
        SELECT f.at, clients[f.at] AS client, topics[f.at] AS topic, partitions[f.at] AS part, places[f.at] AS place, children[f.at] AS child,
               range_id IS NULL AND EXISTS (SELECT FROM dead_letter_surplus s WHERE s.topic = topics[f.at] AND s.partition = partitions[f.at] AND s.client = clients[f.at]
                   AND s.last_offset >= places[f.at] AND (s.state = 'open' AND s.next_offset <= places[f.at] OR s.state = 'archived' AND s.archived_from <= places[f.at])) AS stays
          FROM unnest(fresh) AS f(at)),
    ordered AS (
        SELECT c.*, row_number() OVER (PARTITION BY c.client, c.child, c.stays ORDER BY c.topic, c.part, c.place) AS nth FROM came c),
    decided AS (
        SELECT o.*, o.child OR NOT o.stays AND (anyway OR most = 0 OR o.nth <= most - g.entered) AS enters
          FROM ordered o JOIN dead_letter_growth g ON g.client = o.client AND g.hour = this_hour)
    SELECT array_agg(d.at) FILTER (WHERE d.enters), array_agg(d.at) FILTER (WHERE NOT d.enters AND NOT d.stays) INTO admitted, remain FROM decided d;
    UPDATE dead_letter_growth g SET entered = g.entered + n.n
      FROM (SELECT clients[a.at] AS client, count(*) AS n FROM unnest(admitted) AS a(at) WHERE NOT children[a.at] GROUP BY 1) n
     WHERE g.client = n.client AND g.hour = this_hour;
    IF range_id IS NULL THEN
        INSERT INTO dead_letter_surplus AS s (topic, partition, client, hour, first_offset, last_offset, next_offset, letters, first_at, last_at)
            SELECT topics[r.at], partitions[r.at], clients[r.at], this_hour, min(places[r.at]), max(ends[r.at]), min(places[r.at]), sum(copies[r.at]), min(stamps[r.at]), max(stamps[r.at])
              FROM unnest(remain) AS r(at) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
            ON CONFLICT (topic, partition, client, hour) WHERE state = 'open' DO UPDATE SET first_offset = least(s.first_offset, EXCLUDED.first_offset),
                next_offset = least(s.next_offset, EXCLUDED.next_offset), last_offset = greatest(s.last_offset, EXCLUDED.last_offset), letters = s.letters + EXCLUDED.letters,
                first_at = least(s.first_at, EXCLUDED.first_at), last_at = greatest(s.last_at, EXCLUDED.last_at);
    END IF;
    FOREACH i IN ARRAY coalesce(admitted, '{}') LOOP
        fates[i] := 'enter';
    END LOOP;
    FOREACH i IN ARRAY coalesce(remain, '{}') LOOP
        fates[i] := 'left';
    END LOOP;
    RETURN fates;
END $$;

-- dead_letters_surplus_pass notes that a range was read again from one offset up to another, and which letters were found. Those that the ledger has count
-- as entered, and so many that were ends of retries. Where Kafka had deleted some, the range ends with fewer than it had, and says that they are lost. It returns how many are lost; NULL: somebody else was faster.
CREATE OR REPLACE FUNCTION dead_letters_surplus_pass(range_id bigint, begin_at bigint, end_at bigint, earliest timestamptz, ids text[], ends bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    found_ bigint;
BEGIN
    SELECT count(*) INTO found_ FROM unnest(ids) AS n(id)
     WHERE EXISTS (SELECT FROM dead_letters d WHERE d.dead_letter_id = n.id) OR EXISTS (SELECT FROM dead_letter_audit a WHERE a.dead_letter_id = n.id);
    UPDATE dead_letter_surplus s SET next_offset = end_at, entered = s.entered + found_ + ends, first_at = coalesce(earliest, s.first_at)
     WHERE s.surplus_id = range_id AND s.state = 'open' AND s.next_offset = begin_at AND end_at >= begin_at;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE dead_letter_surplus s SET closed_at = clock_timestamp(), lost = greatest(s.letters - s.entered, 0), state = CASE WHEN s.entered < s.letters THEN 'lost' ELSE 'entered' END
     WHERE s.surplus_id = range_id AND s.next_offset > s.last_offset;
    RETURN (SELECT s.lost FROM dead_letter_surplus s WHERE s.surplus_id = range_id);
END $$;

-- dead_letters_surplus_archived notes that an archive has what of a range was not read again, so many letters. What neither has is lost; it returns how many that are. NULL: the range is another by now.
CREATE OR REPLACE FUNCTION dead_letters_surplus_archived(range_id bigint, begin_at bigint, end_at bigint, archive text, n bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    gone bigint;
BEGIN
    UPDATE dead_letter_surplus s SET state = 'archived', closed_at = clock_timestamp(), next_offset = s.last_offset + 1, archived_from = begin_at, archived_in = archive, archived = n,
           lost = greatest(s.letters - s.entered - n, 0)
     WHERE s.surplus_id = range_id AND s.state = 'open' AND s.next_offset = begin_at AND s.last_offset = end_at AND archive <> ''
    RETURNING lost INTO gone;
    RETURN gone;
END $$;

-- dead_letters_surplus_order has a range entered whatever its client brought. The desk does it.
CREATE OR REPLACE FUNCTION dead_letters_surplus_order(range_id bigint, actor text, reason text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF coalesce(actor, '') = '' OR coalesce(reason, '') = '' THEN
        RAISE EXCEPTION 'whoever has dead letters entered has to be named, and to say why' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE dead_letter_surplus s SET ordered_at = clock_timestamp(), ordered_by = actor, ordered_why = reason, ordered_login = session_user
     WHERE s.surplus_id = range_id AND s.state = 'open' AND s.ordered_by IS NULL;
    RETURN FOUND;
END $$;

-- dead_letters_surplus_trim removes the counts of past hours, and ranges whose letters are all in the ledger for 30 days.
CREATE OR REPLACE FUNCTION dead_letters_surplus_trim() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM dead_letter_growth WHERE hour < dead_letters_hour() - interval '2 days';
    DELETE FROM dead_letter_surplus WHERE state = 'entered' AND closed_at < now() - interval '30 days';
END $$;

-- Whoever may enter dead letters may do this, and whoever may read them may read it.
DO $$
DECLARE
    f text;
    g record;
BEGIN
    FOREACH f IN ARRAY ARRAY['dead_letters_hour()', 'dead_letters_admit(text[], text[], text[], int[], bigint[], timestamptz[], boolean[], boolean[], bigint, bigint, boolean, bigint[], bigint[])',
        'dead_letters_surplus_pass(bigint, bigint, bigint, timestamptz, text[], bigint)', 'dead_letters_surplus_archived(bigint, bigint, bigint, text, bigint)',
        'dead_letters_surplus_order(bigint, text, text)', 'dead_letters_surplus_trim()'] LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
        FOR g IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
                   FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'dead_letters'::regclass AND a.grantee <> c.relowner AND a.privilege_type = 'INSERT' LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', f, g.who);
        END LOOP;
    END LOOP;
    FOR g IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
               FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'dead_letters'::regclass AND a.grantee <> c.relowner AND a.privilege_type = 'SELECT' LOOP
        EXECUTE format('GRANT SELECT ON dead_letter_growth, dead_letter_surplus TO %s', g.who);
        EXECUTE format('GRANT EXECUTE ON FUNCTION dead_letters_hour() TO %s', g.who);
    END LOOP;
    -- A plan that was made for a ledger that was small is kept for one that has grown.
    ALTER FUNCTION dead_letters_admit(text[], text[], text[], int[], bigint[], timestamptz[], boolean[], boolean[], bigint, bigint, boolean, bigint[], bigint[]) SET enable_seqscan = off;
    ALTER FUNCTION dead_letters_surplus_pass(bigint, bigint, bigint, timestamptz, text[], bigint) SET enable_seqscan = off;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION IF EXISTS dead_letters_admit(text[], text[], text[], int[], bigint[], timestamptz[], boolean[], boolean[], bigint, bigint, boolean, bigint[], bigint[]),
    dead_letters_surplus_pass(bigint, bigint, bigint, timestamptz, text[], bigint), dead_letters_surplus_archived(bigint, bigint, bigint, text, bigint),
    dead_letters_surplus_order(bigint, text, text), dead_letters_surplus_trim(), dead_letters_hour();
DROP TABLE IF EXISTS dead_letter_surplus, dead_letter_growth;
