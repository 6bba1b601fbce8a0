package ledgerdb

import (
	"strings"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

// filterSQL is the condition under which dead_letters d is one that f chooses, whatever its state.
func filterSQL(f ledger.Filter, args *[]any) string {
	var of []string
	if groups := groupSQL(f, args); groups != "" {
		of = append(of, "d.group_id IN (SELECT group_id FROM dead_letter_groups g WHERE "+groups+")")
	}
	if f.Path != "" {
		of = append(of, "d.path = "+db.Arg(args, pathText(f.Path))+"::text")
	}
	return allOf(append(of, innerSQL(f, args)))
}

// groupSQL is the condition on dead_letter_groups g, empty where f takes all.
func groupSQL(f ledger.Filter, args *[]any) string {
	var of []string
	if f.Fingerprint != "" {
		of = append(of, "starts_with(g.fingerprint, "+db.Arg(args, db.Text(strings.ToLower(f.Fingerprint)))+"::text)")
	}
	if f.Kind != "" {
		of = append(of, "g.kind = "+db.Arg(args, db.Text(string(f.Kind)))+"::text")
	}
	if f.Code != "" {
		of = append(of, "g.code = "+db.Arg(args, db.Text(f.Code))+"::text")
	}
	return strings.Join(of, " AND ")
}

// rangeSQL is the condition on the time of the last failure of dead_letters d.
func rangeSQL(f ledger.Filter, args *[]any) string {
	var of []string
	if !f.From.IsZero() {
		of = append(of, "d.last_failed_at >= "+db.Arg(args, f.From)+"::timestamptz")
	}
	if !f.To.IsZero() {
		of = append(of, "d.last_failed_at < "+db.Arg(args, f.To)+"::timestamptz")
	}
	return allOf(of)
}

// originSQL is the condition on the original place, of an alias that has it.
func originSQL(alias string, f ledger.Filter, args *[]any) string {
	var of []string
	if f.Topic != "" {
		of = append(of, alias+".origin_topic = "+db.Arg(args, db.Text(f.Topic))+"::text")
	}
	if f.Partition != nil {
		of = append(of, alias+".origin_partition = "+db.Arg(args, *f.Partition)+"::int")
	}
	return allOf(of)
}

// innerSQL is the condition on what dead_letter_counts does not tell: time, original place and attempts.
func innerSQL(f ledger.Filter, args *[]any) string {
	of := rangeSQL(f, args) + " AND " + originSQL("d", f, args)
	if f.AttemptsBelow > 0 {
		of += " AND d.attempts < " + db.Arg(args, f.AttemptsBelow) + "::int"
	}
	if looked(f) {
		of += " AND " + casesSQL(f, args)
	}
	return of
}

// counterSQL is the condition on dead_letter_counts c, or on dead_letter_days c where f has no path. States of f count here.
func counterSQL(f ledger.Filter, args *[]any) string {
	var of []string
	if groups := groupSQL(f, args); groups != "" {
		of = append(of, "c.group_id IN (SELECT group_id FROM dead_letter_groups g WHERE "+groups+")")
	}
	if f.Path != "" {
		of = append(of, "c.path = "+db.Arg(args, pathText(f.Path))+"::text")
	}
	if states := statesSQL("c", f.States, args); states != "" {
		of = append(of, states)
	}
	return allOf(of)
}

// statesSQL is the condition on the state of an alias, empty where all are taken.
func statesSQL(alias string, states []ledger.State, args *[]any) string {
	if len(states) == 0 {
		return ""
	}
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = string(s)
	}
	return alias + ".state = ANY(" + db.Arg(args, names) + "::text[]::dead_letter_state[])"
}

// wholeSQL is filterSQL with the states of f.
func wholeSQL(f ledger.Filter, args *[]any) string {
	where := filterSQL(f, args)
	if states := statesSQL("d", f.States, args); states != "" {
		where += " AND " + states
	}
	return where
}

func allOf(conditions []string) string {
	if len(conditions) == 0 {
		return "TRUE"
	}
	return strings.Join(conditions, " AND ")
}

// dated says that f has a range of time, placed that it has an original place.
func dated(f ledger.Filter) bool  { return !f.From.IsZero() || !f.To.IsZero() }
func placed(f ledger.Filter) bool { return f.Topic != "" || f.Partition != nil }

// everywhere is f without time and original place.
func everywhere(f ledger.Filter) ledger.Filter {
	f.From, f.To, f.Topic, f.Partition = time.Time{}, time.Time{}, "", nil
	return f
}
