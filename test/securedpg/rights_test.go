//go:build integration

package securedpg

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rightsSQL lists every right of a role, over every kind of object in the catalog, one a line.
const rightsSQL = `
WITH it AS (SELECT oid, rolname FROM pg_roles WHERE rolname = '%[1]s')
SELECT p || ' on ' || c.oid::regclass FROM it, pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS p
 WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND has_table_privilege(it.oid, c.oid, p)
UNION ALL
SELECT p || ' (' || attname || ') on ' || attrelid::regclass FROM it, pg_attribute a JOIN pg_class c ON c.oid = attrelid, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) AS p
 WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND attacl IS NOT NULL AND has_column_privilege(it.oid, attrelid, attnum, p) AND NOT has_table_privilege(it.oid, attrelid, p)
UNION ALL
SELECT p || ' on sequence ' || c.oid::regclass FROM it, pg_class c, unnest(ARRAY['SELECT', 'USAGE', 'UPDATE']) AS p WHERE relkind = 'S' AND has_sequence_privilege(it.oid, c.oid, p)
UNION ALL
SELECT 'EXECUTE on ' || f.oid::regprocedure FROM it, pg_proc f WHERE has_function_privilege(it.oid, f.oid, 'EXECUTE')
UNION ALL
SELECT p || ' on schema ' || nspname FROM it, pg_namespace n, unnest(ARRAY['USAGE', 'CREATE']) AS p WHERE has_schema_privilege(it.oid, n.oid, p)
UNION ALL
SELECT p || ' on database ' || datname FROM it, pg_database d, unnest(ARRAY['CREATE', 'TEMPORARY', 'CONNECT']) AS p
 WHERE datname = current_database() AND has_database_privilege(it.oid, d.oid, p)
UNION ALL
SELECT 'USAGE on language ' || lanname FROM it, pg_language l WHERE has_language_privilege(it.oid, l.oid, 'USAGE')
UNION ALL
SELECT 'CREATE on tablespace ' || spcname FROM it, pg_tablespace s WHERE has_tablespace_privilege(it.oid, s.oid, 'CREATE')
UNION ALL
SELECT 'USAGE on foreign data wrapper ' || fdwname FROM it, pg_foreign_data_wrapper w WHERE has_foreign_data_wrapper_privilege(it.oid, w.oid, 'USAGE')
UNION ALL
SELECT 'USAGE on type ' || y.oid::regtype FROM it, pg_type y WHERE typtype <> 'c' AND typelem = 0 AND has_type_privilege(it.oid, y.oid, 'USAGE')
UNION ALL
SELECT 'member of ' || r.rolname FROM it, pg_roles r WHERE r.oid <> it.oid AND pg_has_role(it.oid, r.oid, 'MEMBER')
UNION ALL
SELECT 'attribute ' || a FROM pg_roles r, unnest(ARRAY[CASE WHEN rolsuper THEN 'superuser' END, CASE WHEN rolcreaterole THEN 'createrole' END,
       CASE WHEN rolcreatedb THEN 'createdb' END, CASE WHEN rolreplication THEN 'replication' END, CASE WHEN rolbypassrls THEN 'bypassrls' END]) AS a
 WHERE rolname = '%[1]s' AND a IS NOT NULL
UNION ALL
SELECT 'owns ' || d.classid::regclass || ' ' || d.objid FROM it JOIN pg_shdepend d ON refobjid = it.oid AND deptype = 'o'`

// rights returns a role's rights beyond those of a role without any.
func (d *database) rights(role string) []string {
	d.t.Helper()
	all := d.list(fmt.Sprintf(rightsSQL, role) + " EXCEPT " + fmt.Sprintf(strings.Replace(rightsSQL, "WITH it AS", "(WITH it AS", 1), "docket_nobody") + ")")
	slices.Sort(all)
	return all
}

// declared checks that each role has the rights listed here, and no others.
func (d *database) declared(t *testing.T) {
	for role, want := range map[string][]string{
		"docket_nobody": nil,
		"docket_write": {
			"EXECUTE on decision_logs_make_partitions(integer)", "INSERT on decision_logs", "SELECT on decision_logs", "SELECT on decision_logs_default",
		},
		"docket_read": {"SELECT on decision_counts", "SELECT on decision_counts_days", "SELECT on decision_counts_left", "SELECT on decision_counts_mark", "SELECT on decision_flips", "SELECT on decision_logs", "SELECT on decision_logs_default",
			"SELECT on decision_states", "SELECT on decision_states_mark"},
		"docket_desk_reader": {
			"EXECUTE on dead_letters_hour()", "SELECT on dead_letter_archives", "SELECT on dead_letter_audit", "SELECT on dead_letter_cases", "SELECT on dead_letter_counts", "SELECT on dead_letter_days",
			"SELECT on dead_letter_decisions", "SELECT on dead_letter_duties", "SELECT on dead_letter_edits", "SELECT on dead_letter_group_audit",
			"SELECT on dead_letter_group_cases", "SELECT on dead_letter_groups", "SELECT on dead_letter_growth", "SELECT on dead_letter_job_ends", "SELECT on dead_letter_jobs",
			"SELECT on dead_letter_notes", "SELECT on dead_letter_outbox", "SELECT on dead_letter_proposals", "SELECT on dead_letter_rule_acts", "SELECT on dead_letter_rules",
			"SELECT on dead_letter_surplus", "SELECT on dead_letters", "SELECT on decision_counts", "SELECT on decision_counts_days", "SELECT on decision_counts_left", "SELECT on decision_counts_mark",
			"SELECT on decision_flips", "SELECT on decision_logs", "SELECT on decision_states", "SELECT on decision_states_mark", "SELECT on decision_states_paths",
			"SELECT on decision_states_revisions",
		},
		"docket_desk": {
			"DELETE on decision_reads", "DELETE on desk_sessions", "DELETE on desk_views",
			"EXECUTE on dead_letters_admit(text[],text[],text[],integer[],bigint[],timestamp with time zone[],boolean[],boolean[],bigint,bigint,boolean,bigint[],bigint[])",
			"EXECUTE on dead_letters_compact()", "EXECUTE on dead_letters_four_eyes()", "EXECUTE on dead_letters_hour()",
			"EXECUTE on dead_letters_mark_edited(bigint,text[],timestamp with time zone[],bytea[])", "EXECUTE on dead_letters_remove(timestamp with time zone,integer,text,text)",
			"EXECUTE on dead_letters_surplus_archived(bigint,bigint,bigint,text,bigint)", "EXECUTE on dead_letters_surplus_order(bigint,text,text)",
			"EXECUTE on dead_letters_surplus_pass(bigint,bigint,bigint,timestamp with time zone,text[],bigint)", "EXECUTE on dead_letters_surplus_trim()",
			"EXECUTE on dead_letters_touched(bytea,bytea)", "EXECUTE on decision_counts_count(interval,interval)", "EXECUTE on decision_states_trim(interval,interval,integer)",
			"INSERT on dead_letter_cases", "INSERT on dead_letter_decisions", "INSERT on dead_letter_duties", "INSERT on dead_letter_group_cases", "INSERT on dead_letter_groups",
			"INSERT on dead_letter_jobs", "INSERT on dead_letter_notes", "INSERT on dead_letter_outbox", "INSERT on dead_letter_rule_acts", "INSERT on dead_letter_rules",
			"INSERT on dead_letters", "INSERT on decision_flips", "INSERT on decision_logs", "INSERT on decision_reads", "INSERT on decision_states",
			"INSERT on decision_states_paths", "INSERT on decision_states_revisions", "INSERT on desk_sessions", "INSERT on desk_views", "SELECT on dead_letter_archives", "SELECT on dead_letter_audit", "SELECT on dead_letter_cases",
			"SELECT on dead_letter_counts", "SELECT on dead_letter_days", "SELECT on dead_letter_decisions", "SELECT on dead_letter_duties", "SELECT on dead_letter_edits",
			"SELECT on dead_letter_group_audit", "SELECT on dead_letter_group_cases", "SELECT on dead_letter_groups", "SELECT on dead_letter_growth",
			"SELECT on dead_letter_job_ends", "SELECT on dead_letter_jobs", "SELECT on dead_letter_moves", "SELECT on dead_letter_notes", "SELECT on dead_letter_outbox",
			"SELECT on dead_letter_proposals", "SELECT on dead_letter_rule_acts", "SELECT on dead_letter_rules", "SELECT on dead_letter_surplus", "SELECT on dead_letters",
			"SELECT on decision_counts", "SELECT on decision_counts_days", "SELECT on decision_counts_left", "SELECT on decision_counts_mark", "SELECT on decision_flips", "SELECT on decision_logs",
			"SELECT on decision_reads", "SELECT on decision_states", "SELECT on decision_states_mark", "SELECT on decision_states_paths", "SELECT on decision_states_revisions",
			"SELECT on desk_sessions", "SELECT on desk_views", "UPDATE on dead_letter_cases", "UPDATE on dead_letter_duties", "UPDATE on dead_letter_group_cases", "UPDATE on dead_letter_jobs",
			"UPDATE on dead_letter_notes", "UPDATE on dead_letter_outbox", "UPDATE on dead_letter_rules", "UPDATE on dead_letters", "UPDATE on decision_reads",
			"UPDATE on decision_states", "UPDATE on decision_states_mark", "UPDATE on decision_states_paths", "UPDATE on decision_states_revisions", "UPDATE on desk_sessions", "UPDATE on desk_views",
		},
	} {
		if got := d.rights(role); !slices.Equal(got, want) {
			t.Errorf("%s may do\n%s\nand is to do\n%s", role, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	// Besides the rights of docket_desk, persons propose and decide edits, and the daemon does so for others.
	const decide = "EXECUTE on dead_letters_approve(bigint,text,text,text,timestamp with time zone,text,text,boolean) EXECUTE on dead_letters_propose(text,bytea,bytea,boolean,text,text,boolean) EXECUTE on dead_letters_reject(bigint,text,text,boolean)"
	base := d.rights("docket_desk")
	for role, want := range map[string]string{"docket_desk_admin": decide, "docket_desk_api": decide + " EXECUTE on dead_letters_vouch()"} {
		more := slices.DeleteFunc(d.rights(role), func(right string) bool { return slices.Contains(base, right) })
		if got := strings.Join(more, " "); got != want+" member of docket_desk" {
			t.Errorf("%s may beside docket_desk\n%s\nand is to\n%s", role, got, want)
		}
	}
	// The owner may do all with what is its own, and it owns what is Docket's alone.
	for _, r := range d.rights("docket_migrate") {
		object := r[strings.LastIndex(r, " ")+1:]
		if f, is := strings.CutPrefix(r, "EXECUTE on "); is {
			object = f
		}
		switch {
		case strings.HasPrefix(r, "owns pg_class "), strings.HasPrefix(r, "owns pg_proc "), strings.HasPrefix(r, "owns pg_type "):
		case r == "CREATE on schema public":
		case strings.HasPrefix(object, "decision_logs"), strings.HasPrefix(object, "decision_counts"), strings.HasPrefix(object, "decision_states"), strings.HasPrefix(object, "decision_flips"), strings.HasPrefix(object, "decision_reads"), strings.HasPrefix(object, "desk_sessions"), strings.HasPrefix(object, "desk_views"), strings.HasPrefix(object, "dead_letter"), strings.HasPrefix(object, "goose_db_version"):
		default:
			t.Errorf("docket_migrate may do %s", r)
		}
	}
	if stray := d.list(`SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE pg_get_userbyid(relowner) = 'docket_migrate' AND nspname NOT IN ('public', 'pg_toast')`); len(stray) > 0 {
		t.Errorf("docket_migrate owns %v", stray)
	}
	if left := d.list(`SELECT c.oid::regclass::text FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND pg_get_userbyid(relowner) <> 'docket_migrate'`); len(left) > 0 {
		t.Errorf("docket_migrate does not own %v", left)
	}
}
