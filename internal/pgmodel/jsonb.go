package pgmodel

import (
	"bytes"
	"encoding/json"
)

type document struct{ normal []byte }

func checkJSON(b []byte) *failure {
	if !json.Valid(b) {
		return fail("22P02", "invalid input syntax for type json")
	}
	return nil
}

func (t *tuple) equals(raw []byte) (bool, *failure) {
	return bytes.Equal(t.Raw, raw), nil
}

func fitsIndex(string) *failure { return nil }
