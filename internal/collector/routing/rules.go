package routing

import (
	"fmt"
	"slices"
	"strings"

	"docket/internal/record/decision"
	"docket/internal/record/subject"
	"docket/internal/record/verdict"
)

// Rules choose the decisions of the urgent lane. The zero value chooses none.
type Rules struct{ conditions []condition }

// condition is one entry of the setting. It is true for a decision with one of its values.
type condition struct {
	entry   int    // from 1
	name    string // as in the setting, without its values: verdict, path, label:NAME
	label   string // for label:NAME
	values  []string
	payload bool // a verdict that the column allowed does not tell
}

const (
	byVerdict = "verdict"
	byPath    = "path"
	byLabel   = "label:"
)

// ParseRules reads rules like verdict=denied,error;path=admin/*;label:tenant=acme. It returns all that is wrong, each
// with the number of its entry.
func ParseRules(text string) (r Rules, wrong []string) {
	seen := map[string]bool{}
	for entry, part := range entries(text) {
		name, values, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		complain := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf("entry %d ", entry)+fmt.Sprintf(format, args...))
		}
		switch {
		case part == "":
			complain("is empty; remove the semicolon")
			continue
		case !ok:
			complain("has no value; write it like verdict=denied")
			continue
		case name != byVerdict && name != byPath && !isLabel(name):
			complain("has an unknown condition; allowed: verdict, path, label:NAME")
			continue
		case seen[name]:
			complain("is the second with the condition %q; join their values by comma", name)
			continue
		}
		seen[name] = true
		c := condition{entry: entry, name: name, label: strings.TrimPrefix(name, byLabel)}
		for _, fault := range c.read(values) {
			complain("%s", fault)
		}
		r.conditions = append(r.conditions, c)
	}
	if len(wrong) > 0 {
		return Rules{}, wrong
	}
	return r, nil
}

// entries are the parts of a setting between semicolons, by their number from 1.
func entries(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		if strings.TrimSpace(text) == "" {
			return
		}
		n := 0
		for part := range strings.SplitSeq(text, ";") {
			if n++; !yield(n, strings.TrimSpace(part)) {
				return
			}
		}
	}
}

func isLabel(name string) bool { return strings.HasPrefix(name, byLabel) && name != byLabel }

// read reads the values of a condition, and returns what is wrong with them.
func (c *condition) read(text string) (wrong []string) {
	for value := range strings.SplitSeq(text, ",") {
		value = strings.TrimSpace(value)
		switch star := strings.Contains(strings.TrimSuffix(value, "*"), "*"); {
		case value == "":
			wrong = append(wrong, "has an empty value")
			continue
		case slices.Contains(c.values, value):
			wrong = append(wrong, fmt.Sprintf("names %q twice", value))
			continue
		case c.name == byPath && star, c.name != byPath && strings.Contains(value, "*"):
			wrong = append(wrong, "has a * elsewhere than at the end of a path")
			continue
		case c.name == byVerdict && !slices.Contains(verdict.All(), verdict.Verdict(value)):
			wrong = append(wrong, fmt.Sprintf("has the unknown verdict %q; allowed: allowed, denied, undefined, error, other", value))
			continue
		}
		c.values = append(c.values, value)
		if c.name == byVerdict {
			v := verdict.Verdict(value)
			c.payload = c.payload || v != verdict.Allowed && v != verdict.Denied
		}
	}
	return wrong
}

// Any reports whether there are rules.
func (r Rules) Any() bool { return len(r.conditions) > 0 }

// Match reports whether a rule is true for a decision.
func (r Rules) Match(l *decision.Log) bool {
	return slices.ContainsFunc(r.conditions, func(c condition) bool { return c.matches(l) })
}

func (c *condition) matches(l *decision.Log) bool {
	text, ok := c.textOf(l)
	for i := range c.values {
		if ok && c.hits(i, text) {
			return true
		}
	}
	return false
}

// textOf returns the text of a decision that the values of the condition are compared with. It returns false if none of
// them can be true.
func (c *condition) textOf(l *decision.Log) (text string, ok bool) {
	switch c.name {
	case byVerdict:
		if !l.Allowed.Valid && !c.payload {
			return "", false
		}
		return string(verdict.Of(l)), true
	case byPath:
		return l.Path.V, l.Path.Valid
	}
	text = labelOf(l, c.label)
	return text, text != ""
}

// hits reports whether a value of the condition is true for the text of a decision.
func (c *condition) hits(i int, text string) bool {
	value := c.values[i]
	if c.name == byPath {
		if start, open := strings.CutSuffix(value, "*"); open && strings.HasPrefix(text, start) {
			return true
		}
	}
	return value == text
}

// labelOf returns the value of a label, empty for none. An object, an array and null are none.
func labelOf(l *decision.Log, name string) string {
	if name == "id" && l.OPAID.Valid && l.OPAID.V != "" {
		return l.OPAID.V
	}
	value, _ := subject.LabelOf(l.Labels, name)
	return value
}
