package config

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Source is where the value of a setting comes from.
type Source string

// The sources, by rank: the first that has a value wins.
const (
	FromEnvironment Source = "environment"
	FromFile        Source = "file"    // that [FileVariable] names
	FromDefault     Source = "default" // of the program
	Unset           Source = "unset"   // it has no value, and no default
)

// Effective is a setting as a program has it.
type Effective struct {
	Setting
	Key    string // its name in a file; of a secret that comes from a file of its own, that of the path
	Value  string // as its variable would have it; empty if it is unset or hidden
	Source Source
	Hidden bool // a secret is set, and not shown
}

// EffectiveOf returns the settings of a program in the order of the table, each with its source. It judges nothing: see
// [LoadWith].
func EffectiveOf(p Program, environ []string) []Effective {
	values := ours(environ)
	var file map[string]string
	if path := values[FileVariable]; path != "" {
		_, file = readFile(path)
	}
	delete(values, FileVariable)
	var all []Effective
	for _, s := range Table() {
		if s.Of(p) {
			all = append(all, s.effective(p, values, file))
		}
	}
	return all
}

func (s Setting) effective(p Program, environ, file map[string]string) Effective {
	e := Effective{Setting: s, Key: keyOf(s.Name), Source: FromDefault, Value: s.Default(p)}
	given := file
	switch {
	case setIn(environ, s.Name):
		e.Source, given = FromEnvironment, environ
	case setIn(file, s.Name):
		e.Source = FromFile
	case e.Value == "":
		e.Source = Unset
		return e
	default:
		return e
	}
	e.Value = given[s.Name]
	switch path := given[s.Name+fileSuffix]; {
	case s.Secret && e.Value == "":
		e.Key, e.Value = keyOf(s.Name+fileSuffix), path
	case s.Secret:
		e.Value, e.Hidden = "", true
	}
	return e
}

// keyOf is the name of a variable in a file.
func keyOf(variable string) string { return strings.ToLower(strings.TrimPrefix(variable, prefix)) }

// YAML returns the lines of a file that sets the same values. Secrets and settings without a value are comments, and so are
// the sources.
func YAML(all []Effective) string {
	var b strings.Builder
	group := ""
	for _, e := range all {
		if e.Group != group {
			if group != "" {
				b.WriteByte('\n')
			}
			group = e.Group
			b.WriteString("# " + group + "\n")
		}
		switch {
		case e.Hidden:
			b.WriteString("# " + e.Key + ": set, not shown (" + string(e.Source) + ")\n")
		case e.Source == Unset:
			b.WriteString("# " + e.Key + ": unset\n")
		default:
			b.WriteString(e.Key + ": " + plainYAML(e.Value) + "  # " + string(e.Source) + "\n")
		}
	}
	return b.String()
}

// plainYAML is a value on one line. A text that YAML would not show as it is, or that could control a terminal, is quoted in
// ASCII.
func plainYAML(value string) string {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return strconv.QuoteToASCII(value)
	}
	text, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value})
	if err != nil || strings.Count(string(text), "\n") > 1 {
		return strconv.QuoteToASCII(value)
	}
	return strings.TrimSuffix(string(text), "\n")
}
