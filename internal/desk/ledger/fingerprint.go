package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"docket/internal/record/envelope"
)

// FingerprintLength is the length of a fingerprint in characters.
const FingerprintLength = 16

// Fingerprint is the same for dead letters with the same failure: kind, code, constraint, column, and the message
// without its numbers and quoted names. The table is left out, also at the front of a constraint's name. It is the
// name of a partition, and one cause has one fingerprint on every day.
func Fingerprint(c envelope.Cause) string {
	constraint := c.Constraint
	if c.Table != "" {
		constraint = strings.TrimPrefix(constraint, c.Table+"_")
	}
	h := sha256.New()
	for _, part := range []string{string(c.Kind), c.Code, constraint, c.Column, Normal(c.Message)} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:FingerprintLength]
}

// Normal returns a message without the parts that differ from record to record: numbers become #, quoted text becomes
// "".
func Normal(message string) string {
	var b strings.Builder
	var quote rune
	digits := false
	for _, r := range message {
		switch {
		case quote != 0:
			if r == quote {
				b.WriteRune(r)
				quote = 0
			}
		case r == '"' || r == '`':
			quote = r
			b.WriteRune(r)
			digits = false
		case r >= '0' && r <= '9':
			if !digits {
				b.WriteByte('#')
			}
			digits = true
		default:
			digits = false
			b.WriteRune(r)
		}
	}
	return b.String()
}
