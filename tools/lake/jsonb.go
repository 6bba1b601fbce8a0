package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// jsonb appends a value as Postgres prints jsonb: members by the length of their names, then by their bytes.
func jsonb(to []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(to, "null"...)
	case bool:
		return strconv.AppendBool(to, v)
	case json.Number:
		return append(to, v...)
	case string:
		return append(to, quoted(v)...)
	case []any:
		to = append(to, '[')
		for i, each := range v {
			if i > 0 {
				to = append(to, ", "...)
			}
			to = jsonb(to, each)
		}
		return append(to, ']')
	case map[string]any:
		names := slices.SortedFunc(maps.Keys(v), func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) })
		to = append(to, '{')
		for i, name := range names {
			if i > 0 {
				to = append(to, ", "...)
			}
			to = append(append(to, quoted(name)...), ": "...)
			to = jsonb(to, v[name])
		}
		return append(to, '}')
	}
	panic("no value of encoding/json")
}

// quoted returns a JSON string in which only what JSON demands is escaped. The sample has none of the few characters
// that Postgres escapes otherwise.
func quoted(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string never fails
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
