// Package bearer reads and compares bearer tokens. An entry of the settings holds a token or its hash, and may say when
// it expires. It also judges the certificate of a client that has no token.
package bearer

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// minToken is how many bytes a token has at least.
	minToken = 16
	// maxToken keeps what has to be hashed for a stranger small.
	maxToken = 512

	hashed = "sha256:"
	until  = ":until="
)

// Hash is the SHA-256 of a token.
type Hash [sha256.Size]byte

// Secret is what a token is compared with. The token itself is not kept, only its hash.
type Secret struct {
	hash  Hash
	until time.Time // zero: it does not expire
}

// Parse reads TOKEN or sha256:HEX, either with :until=TIME after it. A token holds no colon, so only one reading exists,
// and the colons of a time are harmless. An error does not quote the text; it begins with a verb, for a sentence about
// an entry.
func Parse(text string) (Secret, error) {
	text, end, ends := strings.Cut(text, until)
	var s Secret
	var err error
	if digits, ok := strings.CutPrefix(text, hashed); ok {
		s.hash, err = parseHash(digits)
	} else {
		s.hash, err = hashOf(text)
	}
	if err != nil || !ends {
		return s, err
	}
	s.until, err = parseEnd(end)
	return s, err
}

func parseHash(digits string) (h Hash, err error) {
	sum, err := hex.DecodeString(digits)
	if err != nil || len(sum) != len(h) {
		return h, errors.New("has a hash that is not sha256: and 64 hexadecimal digits")
	}
	return Hash(sum), nil
}

func hashOf(token string) (Hash, error) {
	switch {
	case len(token) < minToken:
		return Hash{}, fmt.Errorf("has a token of fewer than %d characters", minToken)
	case len(token) > maxToken:
		return Hash{}, fmt.Errorf("has a token of more than %d characters", maxToken)
	case !bearable(token):
		return Hash{}, errors.New("has a token that no header can carry: use letters, digits and -._~+/=, and white space between entries")
	}
	return sha256.Sum256([]byte(token)), nil
}

// parseEnd reads a time of RFC 3339, or a date, which includes that day in UTC.
func parseEnd(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, errors.New("has an end that is neither a date (2027-01-31) nor a time of RFC 3339 (2027-01-31T12:00:00Z)")
	}
	return end, nil
}

// bearable says whether text is a token68 of RFC 6750.
func bearable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~+/=", r)
	})
}

// Header returns the hash of the token in an Authorization header, and whether there is one.
func Header(value string) (Hash, bool) {
	scheme, token, found := strings.Cut(value, " ")
	if !found || !strings.EqualFold(scheme, "Bearer") || len(token) > maxToken {
		return Hash{}, false
	}
	return sha256.Sum256([]byte(token)), true
}

// Is says whether h is the hash of this token. It takes as long for each hash.
func (s Secret) Is(h Hash) bool { return subtle.ConstantTimeCompare(s.hash[:], h[:]) == 1 }

// Same says whether both are for the same token.
func (s Secret) Same(o Secret) bool { return s.Is(o.hash) }

// Expired says whether the token does not hold any more.
func (s Secret) Expired(now time.Time) bool { return !s.until.IsZero() && !now.Before(s.until) }
