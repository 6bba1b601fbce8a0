package reader

import (
	"strings"
	"unicode/utf8"

	"docket/internal/record/decision"
)

// storable says whether Postgres takes it for text.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// storableJSON says whether valid JSON is such that a stored decision can hold it: the decoder knows.
func storableJSON(text string) bool {
	whole := []byte(`{"decision_id":"a","timestamp":"2026-01-01T00:00:00Z","":` + text + `}`)
	return decision.Holds(whole)
}
