-- Roles for the ledger of dead letters. Run by the owner of the tables, after `consumer migrate`, and after docs/grants.sql
-- where that is used; it can be run again:
--   psql "$URL" -v schema=public -f docs/desk-grants.sql
--
-- docket_desk works: the daemon and the command line of operators. It cannot write to the audit: the triggers do.
-- docket_desk_reader looks: list, groups, show, report. It sees payloads, which may hold personal data.
-- The consumer and the replayer need none of this.

DO $$
DECLARE
    r text;
BEGIN
    FOREACH r IN ARRAY ARRAY['docket_desk', 'docket_desk_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', r);
        END IF;
    END LOOP;
END $$;

GRANT USAGE ON SCHEMA :"schema" TO docket_desk, docket_desk_reader;

GRANT SELECT ON dead_letters, dead_letter_decisions, dead_letter_groups, dead_letter_audit, dead_letter_outbox, dead_letter_jobs, dead_letter_job_ends, dead_letter_counts, dead_letter_days,
    dead_letter_duties, dead_letter_notes, decision_logs, decision_counts, decision_counts_days, decision_counts_mark TO docket_desk_reader;

GRANT SELECT ON dead_letter_audit, dead_letter_moves TO docket_desk;
GRANT SELECT, INSERT ON dead_letter_groups, dead_letter_decisions TO docket_desk;
GRANT SELECT, INSERT, UPDATE ON dead_letter_jobs, dead_letter_duties, dead_letter_notes TO docket_desk;
GRANT SELECT, INSERT, UPDATE, DELETE ON dead_letters, dead_letter_outbox, dead_letter_job_ends, dead_letter_counts, dead_letter_days TO docket_desk;
-- INSERT is for the dry run, which has the table take each row and takes it back.
GRANT SELECT, INSERT ON decision_logs TO docket_desk;
-- Rates over time are answered from counts that the daemon makes.
GRANT SELECT, INSERT, DELETE ON decision_counts, decision_counts_days TO docket_desk;
GRANT SELECT, UPDATE ON decision_counts_mark TO docket_desk;
