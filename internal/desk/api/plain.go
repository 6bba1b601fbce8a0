package api

import (
	"bytes"
	"encoding/json"
)

// What a body has at most. No request has a tenth of it, and what there is more takes many times its size to be looked at.
const (
	maxLevels = 32
	maxNames  = 4096
)

// unplain says what a body holds that readers of JSON disagree about: a null, which is not the same as nothing for all of
// them, or a name twice, of which some take the first and some the last; or more levels or names than any request has.
// Empty: nothing. Syntax is not judged here.
func unplain(body []byte) string {
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
