package reader

import (
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"docket/internal/record/verdict"
)

func verdictOf(denied bool) Verdict {
	if denied {
		return Denied
	}
	return Allowed
}

// columns returns the verdict of the columns.
func columns(whole, result *node) (Verdict, string) {
	for _, steps := range [][]string{{}, {"allow"}, {"allowed"}} {
		if value, ok := result.at(steps...).boolean(); ok {
			return verdictOf(!value), pointer("/result", steps...) + " is " + strconv.FormatBool(value)
		}
	}
	v := verdict.From(sql.Null[bool]{}, whole.get("error").there(), result.there())
	return v, map[Verdict]string{Error: "/error is set", Undefined: "no result"}[v]
}

// columnPointers are the places that the columns use too.
var columnPointers = []string{"", "/allow", "/allowed"}

func (s *shape) decide(whole, result *node, path string, e Extractors) {
	column, why := columns(whole, result)
	for _, one := range slices.Concat(e.of(path, RoleAllow), e.of(path, RoleDeny)) {
		n := result.at(one.steps...)
		if n == nil || one.Role == RoleDeny && n.kind == isNull {
			continue
		}
		verdict, ok := verdictOf(n.text == "true" || n.kind != isBool && n.kind != isNumber && !n.empty()), true
		if one.Role == RoleAllow {
			verdict, ok = allowing(n)
		}
		if ok {
			s.verdict, s.from, s.column = verdict, "extractor "+string(one.Role)+" at /result"+one.Pointer, verdict == column && slices.Contains(columnPointers, one.Pointer)
			return
		}
	}
	s.verdict, s.from, s.column = column, why, true
	name := last(path)
	switch value, ok := result.boolean(); {
	case ok && denies(name):
		s.verdict, s.column = verdictOf(value), false
		s.from = why + ", and a rule named " + name + " denies when it is true"
	case column == Other:
		if verdict, from := known(result, name); verdict != "" {
			s.verdict, s.from, s.column = verdict, from, false
		}
	}
}

// allowing reads a boolean, or a word with that meaning.
func allowing(n *node) (Verdict, bool) {
	if value, ok := n.boolean(); ok {
		return verdictOf(!value), true
	}
	word := strings.ToLower(n.str())
	if slices.Contains(allowWords, word) || slices.Contains(denyWords, word) {
		return verdictOf(slices.Contains(denyWords, word)), true
	}
	return "", false
}

// known finds a verdict in shapes that the columns do not know.
func known(result *node, name string) (Verdict, string) {
	if denies(name) && (result.is(isArray) || result.is(isObject)) {
		if result.empty() {
			return Allowed, "/result is empty, and a rule named " + name + " lists violations"
		}
		return Denied, "/result is not empty, and a rule named " + name + " lists violations"
	}
	if !result.is(isObject) {
		return "", ""
	}
	for _, steps := range [][]string{{"response", "allowed"}, {"decision", "allow"}, {"decision", "allowed"}, {"outcome", "allow"}, {"outcome", "allowed"}} {
		if value, ok := result.at(steps...).boolean(); ok {
			return verdictOf(!value), pointer("/result", steps...) + " is " + strconv.FormatBool(value)
		}
	}
	for _, key := range []string{"allow", "allowed", "decision", "effect", "verdict", "outcome", "action"} {
		if n := result.get(key); n.is(isString) {
			if verdict, ok := allowing(n); ok {
				return verdict, "/result/" + key + " says " + strings.ToLower(n.text)
			}
		}
	}
	return listed(result)
}

// listed finds a verdict in lists of denials, as in conftest and Gatekeeper.
func listed(result *node) (verdict Verdict, from string) {
	for i, key := range result.keys {
		n := result.kids[i]
		if !denies(key) {
			continue
		}
		at := pointer("/result", key)
		value, ok := n.boolean()
		switch {
		case ok && value:
			return Denied, at + " is true"
		case ok:
			verdict, from = Allowed, at+" is false"
		case n.kind != isArray && n.kind != isObject:
		case !n.empty():
			return Denied, at + " is not empty"
		case verdict == "":
			verdict, from = Allowed, at+" is empty"
		}
	}
	return verdict, from
}
