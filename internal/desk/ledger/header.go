package ledger

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// headerJSON is a header as JSON. A key that JSON or Postgres cannot hold as text is in RawKey.
type headerJSON struct {
	Key    string `json:"key"`
	RawKey []byte `json:"raw_key,omitempty"`
	Value  []byte `json:"value"`
}

// MarshalJSON keeps any key, because the record's writer may use any bytes.
func (h Header) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(h.Key) && !strings.Contains(h.Key, "\x00") {
		return json.Marshal(headerJSON{Key: h.Key, Value: h.Value})
	}
	return json.Marshal(headerJSON{RawKey: []byte(h.Key), Value: h.Value})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (h *Header) UnmarshalJSON(b []byte) error {
	var j headerJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*h = Header{Key: j.Key, Value: j.Value}
	if len(j.RawKey) > 0 {
		h.Key = string(j.RawKey)
	}
	return nil
}
