package verify

import (
	"bytes"
	"encoding/json"
	"math/big"

	"docket/internal/record/decision"
)

// SameJSON reports whether two texts are equal as jsonb: key order, white space and the notation of numbers do not
// sortedEvidence, and the last of repeated keys counts. Texts that jsonb cannot hold are equal only byte for byte.
func SameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if !decision.Holds(a) || !decision.Holds(b) {
		return false
	}
	x, okX := parsed(a)
	y, okY := parsed(b)
	return okX && okY && same(x, y)
}

func parsed(text []byte) (any, bool) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	return v, dec.Decode(&v) == nil
}

func same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if w, there := y[k]; !there || !same(v, w) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	case json.Number:
		y, ok := b.(json.Number)
		return ok && (x == y || sameNumber(x.String(), y.String()))
	}
	return a == b
}

// sameNumber compares by value. Exponents are within numeric's, so the numbers can be written out.
func sameNumber(a, b string) bool {
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}
