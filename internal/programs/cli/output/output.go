// Package output writes the answers of commands in other forms, from their JSON.
package output

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"docket/internal/programs/cli/term"
	"docket/internal/record/escape"
)

// Format is a form of answers.
type Format string

// The formats.
const (
	Table Format = "table" // for people
	Wide  Format = "wide"  // for people, with all columns
	JSON  Format = "json"
	Lines Format = "jsonl"
	YAML  Format = "yaml"
	CSV   Format = "csv"
	ID    Format = "id"
)

// Formats returns all formats.
func Formats() []string {
	return []string{string(Table), string(Wide), string(JSON), string(Lines), string(YAML), string(CSV), string(ID)}
}

// Made reports whether the format is made from JSON.
func (f Format) Made() bool { return f != Table && f != Wide }

// NoIDsError says that an answer has no ids.
type NoIDsError struct{}

func (*NoIDsError) Error() string { return "this answer has no ids; choose another format" }

// lists are the names that lists have in the JSON of commands.
var lists = []string{"items", "entries", "decisions", "states", "flips", "lines", "groups", "checks", "codes", "records", "shards"}

// ids are the names of ids, the first that an item has counts.
var ids = []string{"id", "flip_id", "decision_id", "dead_letter_id", "fingerprint", "name", "day", "what", "code", "path", "range", "proposal", "job", "asked"}

// Write writes an answer, given in JSON, in a format. A list is {"items": [...], "next": "..."} with the other members of
// the answer behind. Other text than JSON, as help, is written as it is. A list of ids is as safe to print as the rest.
func Write(w io.Writer, f Format, answer []byte) error {
	document, err := read(answer)
	if err != nil {
		_, err = w.Write(answer)
		return err
	}
	document, items := enveloped(document)
	switch f {
	case Table, Wide, JSON:
		return indented(w, document)
	case Lines:
		for _, item := range items {
			text, err := encoded(item)
			if err != nil {
				return fmt.Errorf("write JSON: %w", err)
			}
			if _, err := w.Write(append(escape.JSON(text), '\n')); err != nil {
				return err
			}
		}
	case YAML:
		return written(w, document)
	case CSV:
		return table(w, items)
	case ID:
		return named(w, items)
	}
	return nil
}

// limits are members of an answer that say what it lacks.
var limits = []string{"next", "freshness", "complete_until", "not_looked", "later", "edits_unknown", "not_read", "shards_not_asked"}

// Lacks returns what an answer has that a format has no place for: the next page, how fresh it is, what it lacks, and
// other lists. A line each, safe to print. A complete and fresh answer of one list has none.
func Lacks(f Format, answer []byte) (lines []string) {
	if f != Lines && f != CSV && f != ID {
		return nil
	}
	document, err := read(answer)
	if err != nil {
		return nil
	}
	document, _ = enveloped(document)
	o, ok := document.(object)
	if !ok {
		return nil
	}
	lines = leftOut(o)
	fresh, _ := o.get("freshness")
	for _, name := range limits {
		value, is := o.get(name)
		about := name == "freshness" || name == "complete_until"
		if !is || value == nil || value == "" || value == false || about && (fresh == "FRESH" || fresh == "ARCHIVED") {
			continue
		}
		if list, is := value.([]any); is && len(list) == 0 {
			continue
		}
		text, err := encoded(value)
		if err == nil {
			lines = append(lines, name+": "+strings.Trim(string(escape.JSON(text)), `"`))
		}
	}
	return lines
}

// leftOut names the lists of objects that an answer has beside its items.
func leftOut(o object) (lines []string) {
	if _, is := o.get("items"); !is {
		return nil
	}
	for _, m := range o {
		list, _ := m.value.([]any)
		if m.name == "items" || len(list) == 0 || slices.Contains(limits, m.name) {
			continue
		}
		if _, is := list[0].(object); is {
			lines = append(lines, fmt.Sprintf("%s: %d left out; -o json has them", m.name, len(list)))
		}
	}
	return lines
}

// enveloped returns the answer with its list as items, and the items. Another answer than a list is one item.
func enveloped(document any) (any, []any) {
	o, ok := document.(object)
	if !ok {
		if list, is := document.([]any); is {
			return object{{"items", list}, {"next", ""}}, list
		}
		return document, []any{document}
	}
	for _, m := range o {
		items, is := m.value.([]any)
		if !is || !slices.Contains(lists, m.name) {
			continue
		}
		after, _ := o.get("next")
		if after == nil {
			after = ""
		}
		out := object{{"items", items}, {"next", after}}
		for _, other := range o {
			if other.name != m.name && other.name != "next" {
				out = append(out, other)
			}
		}
		return out, items
	}
	return document, []any{document}
}

func indented(w io.Writer, document any) error {
	text, err := encoded(document)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	b.WriteByte('\n')
	_, err = w.Write(escape.JSON(b.Bytes()))
	return err
}

// written writes YAML. Text that could control a terminal is in double quotes and escaped.
func written(w io.Writer, document any) error {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(node(document)); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err := w.Write(escape.JSON(b.Bytes()))
	return err
}

func node(v any) *yaml.Node {
	switch v := v.(type) {
	case object:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, m := range v {
			n.Content = append(n.Content, text(m.name), node(m.value))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			n.Content = append(n.Content, node(item))
		}
		return n
	case string:
		return text(v)
	case json.Number:
		kind := "!!int"
		if strings.ContainsAny(v.String(), ".eE") {
			kind = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: kind, Value: v.String()}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v)}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if s != term.Line(s) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// table writes CSV with a column for each member of the items. Members that are objects or lists are JSON.
func table(w io.Writer, items []any) error {
	var columns []string
	for _, item := range items {
		o, ok := item.(object)
		if !ok {
			o = object{{"value", item}}
		}
		for _, m := range o {
			if !slices.Contains(columns, m.name) {
				columns = append(columns, m.name)
			}
		}
	}
	if len(columns) == 0 {
		return nil
	}
	out := csv.NewWriter(w)
	head := make([]string, len(columns))
	for i, c := range columns {
		head[i] = harmless(c)
	}
	_ = out.Write(head) // Flush tells
	for _, item := range items {
		o, ok := item.(object)
		if !ok {
			o = object{{"value", item}}
		}
		row, err := rowOf(o, columns)
		if err != nil {
			return err
		}
		_ = out.Write(row) // Flush tells
	}
	out.Flush()
	return out.Error()
}

// rowOf returns the cells of an item; a member that it lacks is an empty one.
func rowOf(o object, columns []string) ([]string, error) {
	row := make([]string, len(columns))
	for i, c := range columns {
		value, _ := o.get(c)
		cell, err := cellOf(value)
		if err != nil {
			return nil, err
		}
		row[i] = cell
	}
	return row, nil
}

func cellOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return harmless(v), nil
	case json.Number:
		return v.String(), nil
	case bool:
		return fmt.Sprint(v), nil
	}
	text, err := encoded(v)
	if err != nil {
		return "", fmt.Errorf("write CSV: %w", err)
	}
	return harmless(string(text)), nil
}

// harmless is a text that controls no terminal, and that no spreadsheet takes for a formula. Some skip spaces before one.
func harmless(s string) string {
	if begin := strings.TrimLeft(s, " \u00a0\u3000"); strings.TrimLeft(begin, "=+-@\t\r\n＝＋－＠") != begin {
		s = "'" + s
	}
	return term.Line(s)
}

// named writes the ids alone, one a line. An id that is null names nothing.
func named(w io.Writer, items []any) error {
	for _, item := range items {
		o, _ := item.(object) // another one has no id
		id, found := any(nil), false
		for _, name := range ids {
			if id, found = o.get(name); found {
				break
			}
		}
		if !found {
			return &NoIDsError{}
		}
		if id != nil {
			term.Fprintf(w, "%s\n", fmt.Sprint(id))
		}
	}
	return nil
}
