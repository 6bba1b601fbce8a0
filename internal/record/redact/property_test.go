package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"docket/internal/record/decision"
	"docket/sample"
)

// names are few, so that pointers hit and names repeat.
var names = []string{"password", "a", "b", "x/y", "~", "*", "0", "1", "é"}

// secret is a leaf of a generated decision: a unique text and its path.
type secret struct {
	text string
	path []string // with indexes
}

// maker writes unusual decisions: with blanks, escapes and repeated names.
type maker struct {
	*rapid.T
	out     strings.Builder
	secrets []secret
}

func (m *maker) blank() {
	m.out.WriteString(rapid.SampledFrom([]string{"", "", "", " ", "\n\t"}).Draw(m.T, "blank"))
}

func (m *maker) name(name string) {
	m.out.WriteByte('"')
	for _, c := range name {
		if c < 0x10000 && rapid.IntRange(0, 3).Draw(m.T, "escaped") == 0 {
			fmt.Fprintf(&m.out, `\u%04x`, c)
		} else {
			m.out.WriteRune(c)
		}
	}
	m.out.WriteByte('"')
}

func (m *maker) value(path []string, depth int) {
	kind := rapid.IntRange(0, 4).Draw(m.T, "kind")
	if depth == 0 {
		kind = 0
	}
	switch kind {
	case 1, 2:
		m.out.WriteByte('{')
		m.members(path, depth, false)
		m.out.WriteByte('}')
	case 3:
		m.out.WriteByte('[')
		m.blank()
		for i := range rapid.IntRange(0, 4).Draw(m.T, "elements") {
			if i > 0 {
				m.out.WriteByte(',')
				m.blank()
			}
			m.value(append(slices.Clone(path), strconv.Itoa(i)), depth-1)
			m.blank()
		}
		m.out.WriteByte(']')
	case 4:
		m.out.WriteString(rapid.SampledFrom([]string{"null", "true", "-1.5e3", `"}\\\"{"`, "{}", "[]"}).Draw(m.T, "plain"))
	default:
		text := fmt.Sprintf("secret-%d.", len(m.secrets))
		m.secrets = append(m.secrets, secret{text, path})
		m.out.WriteString(`"` + text + `"`)
	}
}

func (m *maker) members(path []string, depth int, more bool) {
	for i := range rapid.IntRange(0, 4).Draw(m.T, "members") {
		if i > 0 || more {
			m.out.WriteByte(',')
		}
		m.blank()
		name := rapid.SampledFrom(names).Draw(m.T, "name")
		if depth == 4 { // of the decision itself, where names are unique
			name += "-" + strconv.Itoa(i)
		}
		m.name(name)
		m.blank()
		m.out.WriteByte(':')
		m.blank()
		m.value(append(slices.Clone(path), name), depth-1)
		m.blank()
	}
}

// pointers makes rules for the decision: mostly paths that exist, some with *.
func (m *maker) pointers(label string) (made [][]string) {
	for range rapid.IntRange(0, 4).Draw(m.T, label) {
		var path []string
		if len(m.secrets) > 0 && rapid.IntRange(0, 4).Draw(m.T, "there") > 0 {
			path = slices.Clone(rapid.SampledFrom(m.secrets).Draw(m.T, "way").path)
			path = path[:rapid.IntRange(1, len(path)).Draw(m.T, "length")]
		} else {
			path = []string{rapid.SampledFrom(names).Draw(m.T, "first") + "-0", rapid.SampledFrom(names).Draw(m.T, "second")}
		}
		for i := 1; i < len(path); i++ {
			if rapid.IntRange(0, 4).Draw(m.T, "star") == 0 {
				path[i] = "*"
			}
		}
		made = append(made, path)
	}
	return made
}

func written(paths [][]string) (pointers []string) {
	for _, path := range paths {
		pointer := ""
		for _, name := range path {
			pointer += "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
		}
		pointers = append(pointers, pointer)
	}
	return pointers
}

// covered reports whether a path leads through a value that a rule names.
func covered(path []string, rules [][]string) bool {
	return slices.ContainsFunc(rules, func(rule []string) bool {
		for i, name := range rule {
			if i == len(path) || name != "*" && name != path[i] {
				return false
			}
		}
		return true
	})
}

// TestApply_ExactlyTheNamedValues: in any decision, a text disappears exactly if a rule leads to it, wherever a
// lenient reader may look.
func TestApply_ExactlyTheNamedValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := maker{T: t}
		m.out.WriteString(`{"decision_id":"d","timestamp":"2026-11-21T02:00:39Z"`)
		m.members(nil, 4, true)
		m.out.WriteString(rapid.SampledFrom([]string{``, ``, `,"erased":[]`, `,"masked":["/old"],"erased":null`, `,"masked":"/old"`}).Draw(t, "told before"))
		m.out.WriteByte('}')
		log := m.out.String()
		drop, mask := m.pointers("drop"), m.pointers("mask")
		rules, err := Parse(written(drop), written(mask))
		if err != nil {
			t.Fatal(err)
		}
		got, err := rules.Apply([]byte(log))
		if err != nil {
			t.Fatalf("%v of %s", err, log)
		}
		for _, s := range m.secrets {
			if there, hidden := bytes.Contains(got, []byte(s.text)), covered(s.path, drop) || covered(s.path, mask); there == hidden {
				t.Fatalf("drop %q mask %q: %s at %q is there: %v\nof %s\ngot %s", written(drop), written(mask), s.text, s.path, there, log, got)
			}
		}
		again, err := rules.Apply([]byte(log))
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("a second time: %v, %s", err, again)
		}
		if refusal := refusalOf(got); refusal != nil {
			t.Fatalf("%v: drop %q mask %q\nof %s\ngot %s", refusal, written(drop), written(mask), log, got)
		}
		if want, have := reference(t, log, drop, mask), plain(t, got); !reflect.DeepEqual(want, have) {
			t.Fatalf("drop %q mask %q of %s\nwant %v\n got %v", written(drop), written(mask), log, want, have)
		}
	})
}

func refusalOf(log []byte) error {
	record, refusal := decision.Decode(log, 1<<30)
	switch {
	case refusal != nil:
		return refusal
	case !record.Sole:
		return errors.New("many")
	case record.Parts[0].Err != nil:
		return record.Parts[0].Err
	}
	return nil
}

// plain is the decision as encoding/json reads it, without the lists of pointers.
func plain(t *rapid.T, log []byte) map[string]any {
	var value map[string]any
	if err := json.Unmarshal(log, &value); err != nil {
		t.Fatal(err)
	}
	delete(value, erased)
	delete(value, masked)
	return value
}

// reference redacts by encoding/json.
func reference(t *rapid.T, log string, drop, mask [][]string) map[string]any {
	return redacted(plain(t, []byte(log)), nil, drop, mask).(map[string]any) //nolint:forcetypeassert // no rule is about all
}

func redacted(value any, path []string, drop, mask [][]string) any {
	gone := func(name string) bool { return covered(append(slices.Clone(path), name), drop) }
	inner := func(name string, v any) any {
		way := append(slices.Clone(path), name)
		if covered(way, mask) {
			return Mask
		}
		return redacted(v, way, drop, mask)
	}
	switch v := value.(type) {
	case map[string]any:
		for name, one := range v {
			if gone(name) {
				delete(v, name)
			} else {
				v[name] = inner(name, one)
			}
		}
	case []any:
		left := []any{}
		for i, one := range v {
			if name := strconv.Itoa(i); !gone(name) {
				left = append(left, inner(name, one))
			}
		}
		return left
	}
	return value
}

// TestApply_SampleStaysStorable has rules that match most real decision logs.
func TestApply_SampleStaysStorable(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, "-/input/method -/labels/version -/metrics -/result/reasons /requested_by /input/path/0 /result /bundles/* /path -/input/attributes/request/http/headers/*")
	changed := 0
	for _, log := range sample.DecisionLogs() {
		if refusalOf(log) != nil {
			continue
		}
		got, err := rules.Apply(log)
		if err != nil || refusalOf(got) != nil {
			t.Fatalf("%v, %v: %s", err, refusalOf(got), got)
		}
		if !bytes.Equal(got, log) {
			changed++
		}
	}
	if changed < 900 {
		t.Errorf("only %d decisions changed", changed)
	}
}

func FuzzApply(f *testing.F) {
	for _, log := range sample.DecisionLogs()[:30] {
		f.Add(log, "/input/path/0", "/result")
	}
	f.Add([]byte(`{"decision_id":"d","timestamp":"2026-11-21T02:00:39Z","a":{"b":[1,{"c":2}],"b":"\u0000"}}`), "/a/b/*", "/a/*")
	f.Fuzz(func(t *testing.T, log []byte, drop, mask string) {
		rules, err := Parse([]string{drop}, []string{mask})
		if err != nil {
			return
		}
		was := bytes.Clone(log)
		got, err := rules.Apply(log)
		if !bytes.Equal(was, log) {
			t.Fatal("the decision itself was written to")
		}
		if err == nil && refusalOf(log) == nil && refusalOf(got) != nil {
			t.Fatalf("%v: %s", refusalOf(got), got)
		}
		if refusalOf(log) == nil && err != nil && json.Valid(log) && bytes.HasPrefix(log, []byte("{")) {
			t.Fatal(err)
		}
	})
}

func BenchmarkApply(b *testing.B) {
	logs := sample.DecisionLogs()
	for name, words := range map[string]string{"miss": "-/input/password /result/token", "hit": "-/input/method /result"} {
		b.Run(name, func(b *testing.B) {
			rules := rulesOf(b, words)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := rules.Apply(logs[i%len(logs)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
