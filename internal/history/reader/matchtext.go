package reader

import (
	"encoding/json"
	"strings"
)

// Text returns m in the form that [ParseMatch] reads.
func (m Match) Text() string {
	text := m.In
	if m.Pointer != "" {
		pointer := m.Pointer
		if strings.ContainsAny(pointer, `="`) {
			quoted, _ := json.Marshal(pointer) //nolint:errchkjson // a string
			pointer = string(quoted)
		}
		text += ":" + pointer
	}
	if m.Value != nil {
		text += "=" + string(m.Value)
	}
	return text
}
