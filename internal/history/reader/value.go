package reader

import (
	"strings"
	"unicode/utf8"

	"docket/internal/record/decision"
)

// storable reports whether Postgres accepts it as text.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// storableJSON reports whether a stored decision can contain this valid JSON, according to the decoder.
func storableJSON(text string) bool {
	whole := []byte(`{"decision_id":"a","timestamp":"2026-01-01T00:00:00Z","":` + text + `}`)
	return decision.Holds(whole)
}
