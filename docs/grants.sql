-- Roles for decision_logs that may do their work and nothing else. Run by a superuser, or whoever owns the database and
-- may make roles, before the first `consumer migrate` and once again after it; it can be run as often as one likes, and
-- takes away what was given beyond it:
--   psql "$URL" -v schema=public -f docs/grants.sql
--
-- docket_migrate owns the tables and may change the schema: `consumer migrate`, retention (DROP of a partition).
-- docket_write   stores: consumer and parking-replayer. It adds rows, reads them, and has the days to come made.
-- docket_read    looks: where-is, verify, people, reports. It sees payloads, which may hold personal data.
-- The desk has roles of its own: docs/desk-grants.sql, to be run after this.
--
-- None of them logs in. Who does is a member, and can have a password or a certificate that changes:
--   CREATE ROLE docket_consumer LOGIN PASSWORD '...' IN ROLE docket_write;
--   CREATE ROLE docket_migrator LOGIN PASSWORD '...' IN ROLE docket_migrate;
--   ALTER ROLE docket_migrator SET role = docket_migrate;  -- so that what it makes belongs to docket_migrate

SET docket.schema = :'schema';

DO $$
DECLARE
    r    text;
    home text := current_setting('docket.schema');
    what record;
BEGIN
    FOREACH r IN ARRAY ARRAY['docket_migrate', 'docket_write', 'docket_read'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', r);
        END IF;
        -- Only a superuser or a member of docket_migrate may give rights on what it owns.
        IF r = 'docket_migrate' AND NOT pg_has_role(current_user, r, 'USAGE') THEN
            EXECUTE format('GRANT %I TO %I', r, current_user);
        END IF;
        EXECUTE format('REVOKE ALL ON SCHEMA %I FROM %I', home, r);
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM %I', home, r);
        EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA %I FROM %I', home, r);
        EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %I FROM %I', home, r);
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', home, r);
    END LOOP;
    -- Whoever may make tables and functions in the schema could have others run into them.
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', home);
    EXECUTE format('GRANT CREATE ON SCHEMA %I TO docket_migrate', home);

    -- What is there already, whoever made it, becomes docket_migrate's: the functions work with the rights of their owner.
    FOR what IN
        SELECT format('ALTER TABLE %s OWNER TO docket_migrate', c.oid::regclass) AS act
          FROM pg_class c WHERE c.relnamespace = quote_ident(home)::regnamespace AND c.relkind IN ('r', 'p')
           AND (c.relname IN ('decision_logs', 'decision_logs_strays', 'goose_db_version') OR c.relname LIKE 'dead\_letter%' OR c.relname LIKE 'decision\_counts%' OR c.relname LIKE 'decision\_states%' OR c.relname IN ('decision_flips', 'decision_reads', 'desk_sessions', 'desk_views')
                OR c.oid IN (SELECT inhrelid FROM pg_inherits JOIN pg_class p ON p.oid = inhparent WHERE p.relname = 'decision_logs' AND p.relnamespace = c.relnamespace))
           AND pg_get_userbyid(c.relowner) <> 'docket_migrate'
        UNION ALL
        SELECT format('ALTER FUNCTION %s OWNER TO docket_migrate', oid::regprocedure)
          FROM pg_proc WHERE pronamespace = quote_ident(home)::regnamespace AND (proname = 'decision_logs_make_partitions' OR proname LIKE 'dead\_letters\_%' OR proname LIKE 'decision\_counts\_%' OR proname LIKE 'decision\_states\_%')
           AND pg_get_userbyid(proowner) <> 'docket_migrate'
        UNION ALL
        SELECT format('ALTER TYPE %s OWNER TO docket_migrate', oid::regtype)
          FROM pg_type WHERE typnamespace = quote_ident(home)::regnamespace AND typname = 'dead_letter_state' AND pg_get_userbyid(typowner) <> 'docket_migrate'
    LOOP
        EXECUTE what.act;
    END LOOP;
    -- Since REVOKE took an owner's own rights too, where it was one already.
    FOR what IN
        SELECT format('GRANT ALL ON TABLE %s TO docket_migrate', oid::regclass) AS act FROM pg_class
         WHERE relnamespace = quote_ident(home)::regnamespace AND relkind IN ('r', 'p') AND pg_get_userbyid(relowner) = 'docket_migrate'
        UNION ALL
        SELECT format('GRANT ALL ON SEQUENCE %s TO docket_migrate', oid::regclass) FROM pg_class
         WHERE relnamespace = quote_ident(home)::regnamespace AND relkind = 'S' AND pg_get_userbyid(relowner) = 'docket_migrate'
        UNION ALL
        SELECT format('GRANT ALL ON FUNCTION %s TO docket_migrate', oid::regprocedure) FROM pg_proc
         WHERE pronamespace = quote_ident(home)::regnamespace AND pg_get_userbyid(proowner) = 'docket_migrate'
    LOOP
        EXECUTE what.act;
    END LOOP;

    IF to_regclass(format('%I.decision_logs', home)) IS NULL THEN
        RAISE NOTICE 'there is no decision_logs yet: run consumer migrate, then this once again';
        RETURN;
    END IF;
    -- Rows go to the days through decision_logs, so days that are made later need no rights of their own.
    EXECUTE format('GRANT SELECT, INSERT ON %I.decision_logs TO docket_write', home);
    EXECUTE format('GRANT SELECT ON %I.decision_logs TO docket_read', home);
    IF to_regclass(format('%I.decision_counts', home)) IS NOT NULL THEN -- rates over time, where a desk counts
        EXECUTE format('GRANT SELECT ON %I.decision_counts, %1$I.decision_counts_days, %1$I.decision_counts_mark TO docket_read', home);
    END IF;
    IF to_regclass(format('%I.decision_counts_left', home)) IS NOT NULL THEN
        EXECUTE format('GRANT SELECT ON %I.decision_counts_left TO docket_read', home);
    END IF;
    IF to_regclass(format('%I.decision_states', home)) IS NOT NULL THEN -- states of subjects, where a desk keeps them
        EXECUTE format('GRANT SELECT ON %I.decision_states, %1$I.decision_flips, %1$I.decision_states_mark TO docket_read', home);
    END IF;
    IF to_regclass(format('%I.decision_logs_default', home)) IS NOT NULL THEN -- `consumer check` counts what has no day
        EXECUTE format('GRANT SELECT ON %I.decision_logs_default TO docket_write, docket_read', home);
    END IF;
    IF to_regprocedure(format('%I.decision_logs_make_partitions(int)', home)) IS NOT NULL THEN
        EXECUTE format('REVOKE ALL ON FUNCTION %I.decision_logs_make_partitions(int) FROM PUBLIC', home);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %I.decision_logs_make_partitions(int) TO docket_write', home);
    END IF;
END $$;
