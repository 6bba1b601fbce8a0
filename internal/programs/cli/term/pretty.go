package term

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// IsJSON says that a value is JSON and nothing is lost by showing it as such.
func IsJSON(value []byte) bool { return utf8.Valid(value) && json.Valid(value) }

// Pretty is a value as people read it: JSON indented, everything else as it is.
func Pretty(value []byte) string {
	if !IsJSON(value) {
		return string(value)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, value, "", "  "); err != nil {
		return string(value)
	}
	return b.String()
}
