package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
	"docket/internal/postgres/ledgerdb"
)

const grantsFile = "docs/grants.sql has roles that may do their work and nothing else"

// checkGrants looks at what the role needs. The role of a desk stores too, for a trial, and makes no days.
func checkGrants(ctx context.Context, conn *pgx.Conn) (Check, error) {
	var ins, sel, days, confirms, policies bool
	err := conn.QueryRow(ctx, `
		SELECT has_table_privilege(to_regclass('decision_logs')::oid, 'INSERT'),
		       has_table_privilege(to_regclass('decision_logs')::oid, 'SELECT'),
		       coalesce(has_function_privilege(to_regprocedure('decision_logs_make_partitions(int)')::oid, 'EXECUTE'), true)
		         OR coalesce(has_table_privilege(to_regclass('dead_letters')::oid, 'UPDATE'), false),
		       (SELECT bool_and(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc
		         WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = 'pg_logical_emit_message' AND proargtypes[2] = 'text'::regtype),
		       row_security_active(to_regclass('decision_logs')::oid)`).Scan(&ins, &sel, &days, &confirms, &policies)
	if err != nil {
		return Check{}, err
	}
	var lacking []string
	for _, g := range []struct {
		name string
		has  bool
	}{{"INSERT", ins}, {"SELECT", sel}} {
		if !g.has {
			lacking = append(lacking, g.name)
		}
	}
	switch {
	case len(lacking) > 0:
		return Check{Name: "grants", Level: Fail, Detail: "the role lacks " + strings.Join(lacking, " and "), Hint: db.HintOf("42501")}, nil
	case !confirms:
		return Check{Name: "grants", Level: Fail, Detail: "the role lacks EXECUTE on pg_logical_emit_message",
			Hint: "with it Docket has a standby confirm the rows that are there already: GRANT EXECUTE on it to the role, as PUBLIC has it by default"}, nil
	case policies:
		return Check{Name: "grants", Level: Warn, Detail: "row-level security of decision_logs binds the role",
			Hint: "Docket neither stores nor finds a row that a policy keeps from it: give the role policies with USING (true) and WITH CHECK (true), or ALTER ROLE ... BYPASSRLS"}, nil
	case !days:
		return Check{Name: "grants", Level: Warn, Detail: "the role lacks EXECUTE on decision_logs_make_partitions(int)",
			Hint: "the next days get no partitions: GRANT EXECUTE on it, or call it from elsewhere and set DOCKET_PARTITIONS_AHEAD=0"}, nil
	}
	return Check{Name: "grants", Detail: "the role may INSERT and SELECT"}, nil
}

// rightsSQL is what the role may do that storing does not need. A superuser may do all of it, and that says enough.
const rightsSQL = `
SELECT CASE WHEN rolsuper THEN ARRAY['is superuser'] ELSE array_remove(ARRAY[
    CASE WHEN pg_has_role(c.relowner, 'USAGE') THEN 'owns decision_logs' END,
    CASE WHEN has_schema_privilege(c.relnamespace, 'CREATE') THEN 'may CREATE in its schema' END,
    CASE WHEN rolcreaterole THEN 'is CREATEROLE' END, CASE WHEN rolcreatedb THEN 'is CREATEDB' END,
    CASE WHEN rolreplication THEN 'is REPLICATION' END, CASE WHEN rolbypassrls THEN 'is BYPASSRLS' END]
  || (SELECT array_agg('may ' || p) FROM unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS p WHERE has_table_privilege(c.oid, p))
  || (SELECT array_agg('is member of ' || r.rolname ORDER BY r.rolname) FROM pg_roles r
       WHERE r.rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files', 'pg_read_all_data', 'pg_write_all_data') AND pg_has_role(r.oid, 'USAGE')), NULL) END
  FROM pg_class c, pg_roles u WHERE c.oid = to_regclass('decision_logs') AND u.rolname = current_user`

// checkRights looks at what the role does not need.
func checkRights(ctx context.Context, conn *pgx.Conn) (Check, error) {
	var more []string
	if err := conn.QueryRow(ctx, rightsSQL).Scan(&more); err != nil {
		return Check{}, err
	}
	if len(more) > 0 {
		return Check{Name: "rights", Level: Warn, Detail: "the role " + strings.Join(more, ", "), Hint: "a stolen password gives these rights: " + grantsFile}, nil
	}
	return Check{Name: "rights", Detail: "the role may do nothing else"}, nil
}

// ledgerNeeds are the desk's tables and what the desk does with them, as docs/desk-grants.sql has it.
var ledgerNeeds = []struct {
	table  string
	rights []string
	past   []string // rights that change the table past the triggers and functions that check
}{
	{"dead_letters", []string{"SELECT", "INSERT", "UPDATE"}, []string{"DELETE", "TRUNCATE", "TRIGGER"}},
	{"dead_letter_decisions", []string{"SELECT", "INSERT"}, []string{"UPDATE", "DELETE", "TRUNCATE"}},
	{"dead_letter_outbox", []string{"SELECT", "INSERT", "UPDATE"}, []string{"DELETE", "TRUNCATE"}},
	{"dead_letter_job_ends", []string{"SELECT"}, changing},
	{"dead_letter_counts", []string{"SELECT"}, changing},
	{"dead_letter_days", []string{"SELECT"}, changing},
	{"dead_letter_jobs", []string{"SELECT", "INSERT", "UPDATE"}, []string{"DELETE", "TRUNCATE"}},
	{"dead_letter_duties", []string{"SELECT", "INSERT", "UPDATE"}, nil},
	{"dead_letter_notes", []string{"SELECT", "INSERT", "UPDATE"}, nil},
	{"dead_letter_groups", []string{"SELECT", "INSERT"}, []string{"UPDATE", "DELETE", "TRUNCATE"}},
	{"dead_letter_audit", []string{"SELECT"}, changing},
	{"dead_letter_moves", []string{"SELECT"}, changing},
	{"dead_letter_edits", []string{"SELECT"}, changing},
	{"dead_letter_proposals", []string{"SELECT"}, changing},
	{"dead_letter_growth", []string{"SELECT"}, changing},
	{"dead_letter_rules", []string{"SELECT", "INSERT", "UPDATE"}, []string{"DELETE", "TRUNCATE"}},
	{"dead_letter_rule_acts", []string{"SELECT", "INSERT"}, []string{"UPDATE", "DELETE", "TRUNCATE"}},
	{"dead_letter_cases", []string{"SELECT", "INSERT", "UPDATE"}, []string{"DELETE", "TRUNCATE"}},
	{"dead_letter_group_cases", []string{"SELECT", "INSERT", "UPDATE"}, []string{"DELETE", "TRUNCATE"}},
	{"dead_letter_group_audit", []string{"SELECT"}, changing},
	{"dead_letter_surplus", []string{"SELECT"}, changing},
	{"dead_letter_archives", []string{"SELECT"}, changing},
	{"decision_counts", []string{"SELECT"}, changing},
	{"decision_counts_days", []string{"SELECT"}, changing},
	{"decision_counts_mark", []string{"SELECT"}, changing},
	{"decision_counts_left", []string{"SELECT"}, changing},
	{"decision_states", []string{"SELECT", "INSERT", "UPDATE"}, []string{"DELETE", "TRUNCATE"}},
	{"decision_flips", []string{"SELECT", "INSERT"}, []string{"UPDATE", "DELETE", "TRUNCATE"}},
	{"decision_states_mark", []string{"SELECT", "UPDATE"}, []string{"INSERT", "DELETE", "TRUNCATE"}},
	{"decision_states_paths", []string{"SELECT", "INSERT", "UPDATE"}, []string{"DELETE", "TRUNCATE"}},
	{"decision_states_revisions", []string{"SELECT", "INSERT", "UPDATE"}, []string{"DELETE", "TRUNCATE"}},
	{claimsTable, []string{"SELECT", "INSERT", "UPDATE", "DELETE"}, nil},
	{"desk_sessions", []string{"SELECT", "INSERT", "UPDATE", "DELETE"}, nil},
	{"desk_views", []string{"SELECT", "INSERT", "UPDATE", "DELETE"}, nil},
}

var changing = []string{"INSERT", "UPDATE", "DELETE", "TRUNCATE"}

// claimsTable is unlogged: a crash ends the claims, too.
const claimsTable = "decision_reads"

// readersFunction is one that whoever looks calls, too.
const readersFunction = "dead_letters_hour()"

// ledgerFunctions are those that the desk calls.
var ledgerFunctions = []string{readersFunction, "dead_letters_remove(timestamptz, int, text, text)", "dead_letters_compact()", "decision_counts_count(interval, interval)", "decision_states_trim(interval, interval, int)",
	"dead_letters_touched(bytea, bytea)", "dead_letters_four_eyes()", "dead_letters_mark_edited(bigint, text[], timestamptz[], bytea[])",
	"dead_letters_surplus_pass(bigint, bigint, bigint, timestamptz, text[], bigint)", "dead_letters_surplus_archived(bigint, bigint, bigint, text, bigint)",
	"dead_letters_surplus_order(bigint, text, text)", "dead_letters_surplus_trim()",
	"dead_letters_admit(text[], text[], text[], int[], bigint[], timestamptz[], boolean[], boolean[], bigint, bigint, boolean, bigint[], bigint[])"}

// checkLedger looks at the desk's tables, where there are any: the consumer needs no right there, the desk all, and
// whoever looks SELECT.
func checkLedger(ctx context.Context, conn *pgx.Conn) (Check, error) {
	const name = "ledger"
	var missing, unlogged, has, lacks, past []string
	for _, need := range ledgerNeeds {
		var there, logged bool
		var rights, more []string
		err := conn.QueryRow(ctx, `
			SELECT c.oid IS NOT NULL, coalesce(c.relpersistence = 'p', true),
			       coalesce((SELECT array_agg(p) FROM unnest($2::text[]) AS p WHERE has_table_privilege(c.oid, p)), '{}'),
			       coalesce((SELECT array_agg(p) FROM unnest($3::text[]) AS p WHERE has_table_privilege(c.oid, p) AND NOT pg_has_role(c.relowner, 'USAGE')), '{}')
			  FROM (SELECT to_regclass($1)::oid AS oid) AS t LEFT JOIN pg_class c USING (oid)`, need.table, need.rights, need.past).Scan(&there, &logged, &rights, &more)
		switch {
		case err != nil:
			return Check{}, err
		case !there:
			missing = append(missing, need.table)
			continue
		case !logged && need.table != claimsTable:
			unlogged = append(unlogged, need.table)
		}
		for _, right := range need.rights {
			if of := right + " on " + need.table; slices.Contains(rights, right) {
				has = append(has, of)
			} else {
				lacks = append(lacks, of)
			}
		}
		for _, right := range more {
			past = append(past, right+" on "+need.table)
		}
	}
	for _, f := range ledgerFunctions {
		var may bool
		if err := conn.QueryRow(ctx, `SELECT coalesce(has_function_privilege(to_regprocedure($1)::oid, 'EXECUTE'), false)`, f).Scan(&may); err != nil {
			return Check{}, err
		}
		if of := "EXECUTE on " + f; may {
			has = append(has, of)
		} else {
			lacks = append(lacks, of)
		}
	}
	selects := func(of string) bool {
		return strings.HasPrefix(of, "SELECT on ") || of == "EXECUTE on "+readersFunction
	}
	switch {
	case len(missing) == len(ledgerNeeds):
		return Check{Name: name, Detail: "there is none, so there is no desk yet"}, nil
	case len(missing) > 0:
		return Check{Name: name, Level: Fail, Detail: "missing tables of the desk: " + strings.Join(missing, ", "), Hint: "run `docket migrate`; undo changes made by hand"}, nil
	case len(unlogged) > 0:
		return Check{Name: name, Level: Fail, Detail: "unlogged tables of the desk, which a crash empties: " + strings.Join(unlogged, ", "), Hint: "ALTER TABLE ... SET LOGGED for each"}, nil
	case len(past) > 0:
		return Check{Name: name, Level: Warn, Detail: "the role can change what only functions are to change: " + strings.Join(past, ", "),
			Hint: "run docs/desk-grants.sql again once every desk is of this release: it takes these rights away"}, nil
	case len(lacks) == 0:
		return Check{Name: name, Detail: "the desk's tables are there, and the role may work with it"}, nil
	case len(has) == 0:
		return Check{Name: name, Detail: "the desk's tables are there; the role has no right on them, and needs none to store"}, nil
	case !slices.ContainsFunc(has, func(of string) bool { return !selects(of) }):
		return Check{Name: name, Detail: "the desk's tables are there, and the role may look into them"}, nil
	}
	return Check{Name: name, Level: Warn, Detail: "on the desk's tables the role lacks " + strings.Join(lacks, ", "), Hint: ledgerdb.GrantsHint()}, nil
}
