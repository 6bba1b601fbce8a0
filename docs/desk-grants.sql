-- Roles for the ledger of dead letters. Run by the owner of the tables, after `consumer migrate`, and after docs/grants.sql
-- where that is used; it can be run again:
--   psql "$URL" -v schema=public -f docs/desk-grants.sql
--
-- docket_desk works: the daemon and the command line of operators. It cannot write to the audit: the triggers do. What leaves the
-- ledger, the counters and the rates are changed by functions alone, which check what they are asked for.
-- docket_desk_admin is docket_desk and may propose, approve and reject edits that two persons have to make. For logins of persons, one each.
-- docket_desk_api is docket_desk and may do so for others, whom it names. For the login of the daemon alone: whoever has it can speak for anybody.
-- docket_desk_reader looks: list, groups, show, report. It sees payloads, which may hold personal data.
-- The consumer and the replayer need none of this.

DO $$
DECLARE
    r text;
BEGIN
    FOREACH r IN ARRAY ARRAY['docket_desk', 'docket_desk_admin', 'docket_desk_api', 'docket_desk_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', r);
        END IF;
    END LOOP;
    FOREACH r IN ARRAY ARRAY['docket_desk_admin', 'docket_desk_api'] LOOP
        IF NOT EXISTS (SELECT FROM pg_auth_members WHERE roleid = 'docket_desk'::regrole AND member = r::regrole) THEN
            EXECUTE format('GRANT docket_desk TO %I', r);
        END IF;
    END LOOP;
END $$;

GRANT USAGE ON SCHEMA :"schema" TO docket_desk, docket_desk_reader;

GRANT SELECT ON dead_letters, dead_letter_decisions, dead_letter_groups, dead_letter_audit, dead_letter_outbox, dead_letter_jobs, dead_letter_job_ends, dead_letter_counts, dead_letter_days,
    dead_letter_duties, dead_letter_notes, dead_letter_edits, dead_letter_proposals, decision_logs, decision_counts, decision_counts_days, decision_counts_mark, decision_counts_left,
    decision_states, decision_flips, decision_states_mark, decision_states_paths, decision_states_revisions TO docket_desk_reader;
GRANT SELECT ON dead_letter_growth, dead_letter_surplus, dead_letter_archives TO docket_desk_reader, docket_desk;
GRANT EXECUTE ON FUNCTION dead_letters_hour() TO docket_desk_reader, docket_desk;
-- Rules, snoozes and assignments. Triggers check who may do what, and write the audit.
GRANT SELECT ON dead_letter_rules, dead_letter_rule_acts, dead_letter_cases, dead_letter_group_cases, dead_letter_group_audit TO docket_desk_reader, docket_desk;
GRANT INSERT, UPDATE ON dead_letter_rules, dead_letter_cases, dead_letter_group_cases TO docket_desk;
GRANT INSERT ON dead_letter_rule_acts TO docket_desk;

GRANT SELECT ON dead_letter_audit, dead_letter_moves, dead_letter_edits, dead_letter_proposals, dead_letter_job_ends, dead_letter_counts, dead_letter_days, decision_counts, decision_counts_days, decision_counts_mark, decision_counts_left TO docket_desk;
-- Rows of edited dead letters are marked by a function: it asks the ledger which rows these are.
GRANT EXECUTE ON FUNCTION dead_letters_mark_edited(bigint, text[], timestamptz[], bytea[]) TO docket_desk;
-- These functions say what an edit changes and whether it needs a second person. Other functions write and decide proposals, and check that two persons act.
GRANT EXECUTE ON FUNCTION dead_letters_touched(bytea, bytea), dead_letters_four_eyes() TO docket_desk;
GRANT EXECUTE ON FUNCTION dead_letters_propose(text, bytea, bytea, boolean, text, text, boolean), dead_letters_approve(bigint, text, text, text, timestamptz, text, text, boolean),
    dead_letters_reject(bigint, text, text, boolean) TO docket_desk_admin, docket_desk_api;
GRANT EXECUTE ON FUNCTION dead_letters_vouch() TO docket_desk_api;
GRANT SELECT, INSERT ON dead_letter_groups, dead_letter_decisions TO docket_desk;
GRANT SELECT, INSERT, UPDATE ON dead_letters, dead_letter_outbox, dead_letter_jobs, dead_letter_duties, dead_letter_notes TO docket_desk;
-- INSERT is for the dry run, which has the table take each row and takes it back.
GRANT SELECT, INSERT ON decision_logs TO docket_desk;
-- Removing what was resolved long ago, summing up the counters, counting for rates over time.
GRANT EXECUTE ON FUNCTION dead_letters_remove(timestamptz, int, text, text), dead_letters_compact(), decision_counts_count(interval, interval) TO docket_desk;
-- States of subjects, where DOCKET_STATES is true. Flips are only added, and a function removes what is idle or old.
GRANT SELECT, INSERT, UPDATE ON decision_states, decision_states_paths, decision_states_revisions TO docket_desk;
GRANT SELECT, UPDATE ON decision_states_mark TO docket_desk;
GRANT SELECT, INSERT ON decision_flips TO docket_desk;
GRANT EXECUTE ON FUNCTION decision_states_trim(interval, interval, int) TO docket_desk;
-- Claims of work that several processes need once, such as reading an archived day.
GRANT SELECT, INSERT, UPDATE, DELETE ON decision_reads TO docket_desk;
-- Sessions of the console.
GRANT SELECT, INSERT, UPDATE, DELETE ON desk_sessions TO docket_desk;
GRANT SELECT, INSERT, UPDATE, DELETE ON desk_views TO docket_desk;
-- Functions count the dead letters of each client, and note the range of Kafka in which the surplus stays.
GRANT EXECUTE ON FUNCTION dead_letters_admit(text[], text[], text[], int[], bigint[], timestamptz[], boolean[], boolean[], bigint, bigint, boolean, bigint[], bigint[]),
    dead_letters_surplus_pass(bigint, bigint, bigint, timestamptz, text[], bigint), dead_letters_surplus_archived(bigint, bigint, bigint, text, bigint),
    dead_letters_surplus_order(bigint, text, text), dead_letters_surplus_trim() TO docket_desk;

-- Rights that earlier releases granted. A desk of such a release works without them, except for removing, summing up and counting.
REVOKE DELETE ON dead_letters, dead_letter_outbox FROM docket_desk;
REVOKE INSERT, UPDATE, DELETE ON dead_letter_job_ends, dead_letter_counts, dead_letter_days, decision_counts, decision_counts_days, decision_counts_mark, decision_counts_left FROM docket_desk;
