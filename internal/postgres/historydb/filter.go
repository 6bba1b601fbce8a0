package historydb

import (
	"regexp"
	"strconv"
	"strings"

	"docket/internal/history/reader"
	"docket/internal/postgres/db"
)

// conditions are those of decision_logs d that f asks for, but for its times.
func conditions(f reader.Filter, args *[]any) string {
	of := []string{"TRUE"}
	if c := pathsSQL(f.Paths, args); c != "" {
		of = append(of, c)
	}
	if len(f.Services) > 0 {
		of = append(of, "d.service = ANY("+db.Arg(args, f.Services)+"::text[])")
	}
	if len(f.Verdicts) > 0 {
		are := make([]string, len(f.Verdicts))
		for i, v := range f.Verdicts {
			if are[i] = isVerdictSQL[v]; are[i] == "" {
				are[i] = "FALSE"
			}
		}
		of = append(of, "("+strings.Join(are, " OR ")+")")
	}
	if len(f.RequestedBy) > 0 {
		persons := make([]string, len(f.RequestedBy))
		for i, who := range f.RequestedBy {
			persons[i] = requestedBySQL(who, args)
		}
		of = append(of, "("+strings.Join(persons, " OR ")+")")
	}
	for name, text := range f.Labels {
		of = append(of, "d.labels->>"+db.Arg(args, name)+"::text = "+db.Arg(args, text)+"::text")
	}
	for _, m := range f.Matches {
		of = append(of, matchSQL(m, args))
	}
	return strings.Join(of, " AND ")
}

// isVerdictSQL is verdictSQL for one verdict. It asks the column first, so that few payloads are looked into.
var isVerdictSQL = map[reader.Verdict]string{
	reader.Allowed:   "d.allowed",
	reader.Denied:    "NOT d.allowed",
	reader.Error:     "d.allowed IS NULL AND " + hasErrorSQL,
	reader.Undefined: "d.allowed IS NULL AND NOT " + hasErrorSQL + " AND coalesce(d.raw->'result', 'null') = 'null'",
	reader.Other:     "d.allowed IS NULL AND NOT " + hasErrorSQL + " AND coalesce(d.raw->'result', 'null') <> 'null'",
}

const hasErrorSQL = `(coalesce(d.raw->'error', 'null') <> 'null')`

// pathsSQL is empty where all paths are meant.
func pathsSQL(paths []string, args *[]any) string {
	var whole, ranges []string
	for _, p := range paths {
		if below, ok := strings.CutSuffix(p, "/*"); ok {
			from, to := prefixRange(below + "/")
			ranges = append(ranges, `d.path COLLATE "C" >= `+db.Arg(args, from)+`::text AND d.path COLLATE "C" < `+db.Arg(args, to)+`::text`)
			continue
		}
		whole = append(whole, p)
	}
	if len(whole) > 0 {
		ranges = append(ranges, `d.path COLLATE "C" = ANY(`+db.Arg(args, whole)+`::text[])`)
	}
	if len(ranges) == 0 {
		return ""
	}
	return "(" + strings.Join(ranges, " OR ") + ")"
}

// prefixRange is where, byte by byte, the texts lie that begin with prefix, which ends in a character of ASCII.
func prefixRange(prefix string) (from, to string) {
	last := len(prefix) - 1
	return prefix, prefix[:last] + string(rune(prefix[last]+1))
}

// askerSQL is who asked without the digits of the port: "10.0.0.1:" for all the ports of a host. It is what [migrations.ReadIndexes] has.
const askerSQL = `rtrim(d.requested_by, '0123456789') COLLATE "C"`

// askers are the values of askerSQL among which those of who are.
func askers(who string) []string {
	exact := strings.TrimRight(who, "0123456789")
	if reader.HasPort(who) {
		return []string{exact}
	}
	return []string{exact, reader.Portless(who)}
}

func requestedBySQL(who string, args *[]any) string {
	exact := `d.requested_by = ` + db.Arg(args, who) + `::text`
	if reader.HasPort(who) {
		return exact
	}
	return "(" + exact + " OR " + askerSQL + " = " + db.Arg(args, reader.Portless(who)) + "::text)"
}

var (
	// Postgres takes more for the index of an array than RFC 6901 does.
	numeric = regexp.MustCompile(`^\s*[+-]?[0-9]+\s*$`)
	index   = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
)

// matchSQL is a condition on a value inside d.raw.
func matchSQL(m reader.Match, args *[]any) string {
	steps := []string{}
	if m.In != "raw" {
		steps = append(steps, m.In)
	}
	if m.Pointer != "" {
		for token := range strings.SplitSeq(m.Pointer[1:], "/") {
			steps = append(steps, strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
		}
	}
	var of []string
	for i, step := range steps {
		if numeric.MatchString(step) && !index.MatchString(step) {
			of = append(of, "jsonb_typeof(d.raw #> "+db.Arg(args, steps[:i])+"::text[]) = 'object'")
		}
	}
	// A step by a name takes two thirds of the time of the same step in a list of them. But a number may be a place in an array, too.
	at := "d.raw"
	for len(steps) > 0 && !numeric.MatchString(steps[0]) {
		at, steps = at+"->"+db.Arg(args, steps[0])+"::text", steps[1:]
	}
	if len(steps) > 0 {
		at += " #> " + db.Arg(args, steps) + "::text[]"
	}
	if m.Value == nil {
		return strings.Join(append(of, at+" IS NOT NULL"), " AND ")
	}
	return strings.Join(append(of, at+" = "+db.Arg(args, string(m.Value))+"::jsonb"), " AND ")
}

// pointerOK says whether text is a pointer as RFC 6901 has it.
func pointerOK(text string) bool {
	if text != "" && text[0] != '/' {
		return false
	}
	for i := range len(text) {
		if text[i] == '~' && (i+1 == len(text) || text[i+1] != '0' && text[i+1] != '1') {
			return false
		}
	}
	return true
}

// checkFilter refuses what would otherwise silently find nothing, or something else.
func checkFilter(f reader.Filter) error {
	for _, m := range f.Matches {
		if m.In != "input" && m.In != "result" && m.In != "raw" || !pointerOK(m.Pointer) {
			return &FilterError{Problem: strconv.Quote(m.In) + " and the pointer " + strconv.Quote(m.Pointer) + " are no place in a decision"}
		}
	}
	return nil
}

// FilterError says that a question cannot be asked.
type FilterError struct{ Problem string }

func (e *FilterError) Error() string { return e.Problem }
