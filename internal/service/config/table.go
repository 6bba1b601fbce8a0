package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Setting is one line of the table.
type Setting struct {
	Group    string // heading
	Name     string // environment variable
	Unit     string // the kind of its value
	Text     string // one sentence on what it does
	Min, Max string // range, both ends allowed; empty where there is none
	OneOf    []string
	Required bool
	Secret   bool      // never printed; can come from the file that Name_FILE names
	Programs []Program // it belongs to; none: to all

	field     string // of Settings
	standard  string // default
	replayer  string // default in the replayer where it differs
	desk      string // and in the desk
	collector string // and in the collector
	keepNull  bool   // set but empty is a value of its own
	empty     string // the meaning of an empty value
}

// Default is what the setting is in that program when its variable is missing, empty where there is nothing.
func (s Setting) Default(p Program) string {
	switch {
	case p == Replayer && s.replayer != "":
		return s.replayer
	case p == Desk && s.desk != "":
		return s.desk
	case p == Collector && s.collector != "":
		return s.collector
	}
	return s.standard
}

// Of says whether the setting belongs to that program.
func (s Setting) Of(p Program) bool { return len(s.Programs) == 0 || slices.Contains(s.Programs, p) }

// plainUnits are those that the name, the default or the text of a setting says anyway.
var plainUnits = []string{"", "duration", "size", "choice", "true or false", "secret", "text", "name", "topic", "consumer group", "subject"}

// Form is the range with its unit, the choices, or how a value is written; empty where there is nothing to say.
func (s Setting) Form() string {
	switch r := s.Range(); {
	case slices.Contains(plainUnits, s.Unit):
		return r
	case r == "":
		return s.Unit
	case strings.Contains(s.Unit, ","):
		return r + "; " + s.Unit
	default:
		return r + " " + s.Unit
	}
}

// Range is the range or the choices in words, empty where anything goes.
func (s Setting) Range() string {
	switch {
	case len(s.OneOf) > 0:
		return strings.Join(s.OneOf, ", ")
	case s.Min != "" && s.Max != "":
		return s.Min + " to " + s.Max
	}
	return ""
}

// Table lists every setting of every program in the order in which people read them.
func Table() []Setting { return slices.Clone(table()) }

var table = sync.OnceValue(func() []Setting {
	t := reflect.TypeFor[Settings]()
	table := make([]Setting, 0, t.NumField())
	group := ""
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		if g := f.Tag.Get("group"); g != "" {
			group = g
		}
		s := Setting{
			Group: group, Name: f.Tag.Get("env"), Unit: f.Tag.Get("unit"), Text: f.Tag.Get("text"),
			Min: f.Tag.Get("min"), Max: f.Tag.Get("max"),
			Required: f.Tag.Get("required") == "true", Secret: f.Type == reflect.TypeFor[Secret](),
			field: f.Name, standard: f.Tag.Get("default"), replayer: f.Tag.Get("replayer"), desk: f.Tag.Get("desk"), collector: f.Tag.Get("collector"), empty: f.Tag.Get("empty"),
		}
		if choices := f.Tag.Get("oneof"); choices != "" {
			s.OneOf = strings.Split(choices, ",")
		}
		if programs := f.Tag.Get("for"); programs != "" {
			for p := range strings.SplitSeq(programs, ",") {
				s.Programs = append(s.Programs, Program(p))
			}
		}
		s.keepNull = s.empty != ""
		table = append(table, s)
	}
	return table
})
