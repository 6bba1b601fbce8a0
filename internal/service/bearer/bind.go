package bearer

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Bind returns an HMAC of the token's hash. Without the key it reveals nothing about the token.
func (s Secret) Bind(key []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(s.hash[:])
	return m.Sum(nil)
}

// Bound reports whether a value of [Secret.Bind] with this key is for this token.
func (s Secret) Bound(key, to []byte) bool { return hmac.Equal(s.Bind(key), to) }
