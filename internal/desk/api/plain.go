package api

import (
	"bytes"
	"encoding/json"
)

// Limits of a body. No request needs a tenth of them, and checking more takes many times its size in memory.
const (
	maxLevels = 32
	maxNames  = 4096
)

// ambiguousJSON returns a construct in a body that JSON readers treat differently. A null is absent for some. Of a
// repeated name some take the first value and some the last. Too many levels or names count too. It does not check
// syntax.
func ambiguousJSON(body []byte) string {
	type level struct {
		names map[string]bool // nil: an array
		value bool            // of an object: a value comes next
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var levels []level
	named := 0
	for {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		var in *level
		if len(levels) > 0 {
			in = &levels[len(levels)-1]
		}
		if delim, is := token.(json.Delim); is && (delim == '}' || delim == ']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if in != nil && in.names != nil && !in.value {
			name, _ := token.(string)
			if in.names[name] {
				return "each name once"
			}
			if named++; named > maxNames {
				return "fewer names"
			}
			in.names[name], in.value = true, true
			continue
		}
		if in != nil {
			in.value = false
		}
		if _, opens := token.(json.Delim); opens && len(levels) == maxLevels {
			return "fewer levels"
		}
		switch token {
		case nil:
			return "no null: leave it away"
		case json.Delim('{'):
			levels = append(levels, level{names: map[string]bool{}})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}
