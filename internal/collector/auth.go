package collector

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// minToken is how many bytes a token has at least.
	minToken = 16
	// maxToken keeps what has to be hashed for a stranger small.
	maxToken = 512
)

// names stand in log lines, so they hold nothing that could be taken for something else.
var names = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 ._@-]{0,62}[A-Za-z0-9])?$`)

// Token is who may upload by a bearer token. The token itself is not kept, only its hash.
type Token struct {
	Name string
	hash [sha256.Size]byte
}

// Auth is who may upload. The zero value lets everybody.
type Auth struct {
	Tokens []Token
	// ClientCA says that the listener verifies client certificates, and that one that it has verified may upload.
	ClientCA bool
	// Clients are the common names that such a certificate may have; none: any.
	Clients []string
}

// ParseTokens reads entries name:token, separated by white space, as DOCKET_COLLECTOR_TOKENS has them. A name may have several
// tokens, so that they can be changed one by one. Complaints name an entry by its number and never quote it; all come at once.
func ParseTokens(text string) ([]Token, error) {
	var tokens []Token
	var bad []error
	for i, entry := range strings.Fields(text) {
		name, secret, found := strings.Cut(entry, ":")
		t := Token{Name: name, hash: sha256.Sum256([]byte(secret))}
		var complaint string
		switch {
		case !found:
			complaint = "is not name:token"
		case !names.MatchString(name):
			complaint = "has a name that is not made of letters, digits, dots, dashes, underscores or @, or is longer than 64"
		case len(secret) < minToken:
			complaint = fmt.Sprintf("has a token of fewer than %d characters", minToken)
		case len(secret) > maxToken:
			complaint = fmt.Sprintf("has a token of more than %d characters", maxToken)
		case !bearable(secret):
			complaint = "has a token that no header can carry: use letters, digits and -._~+/=, and white space between entries"
		case slices.ContainsFunc(tokens, func(o Token) bool { return o.hash == t.hash }):
			complaint = "has the token of an entry before it"
		default:
			tokens = append(tokens, t)
			continue
		}
		bad = append(bad, fmt.Errorf("entry %d %s", i+1, complaint))
	}
	return tokens, errors.Join(bad...)
}

// bearable says whether text is a token68 of RFC 6750.
func bearable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~+/=", r)
	})
}

func (a Auth) anonymous() bool { return len(a.Tokens) == 0 && !a.ClientCA && len(a.Clients) == 0 }

// admits says whether who sent r may upload, and the name of the token that said so. A token goes before a certificate, and
// one that is wrong is not made up for by a certificate that is right.
func (a Auth) admits(r *http.Request, now time.Time) (name string, ok bool) {
	if a.anonymous() {
		return "", true
	}
	switch values := r.Header.Values("Authorization"); len(values) {
	case 0:
		return "", a.ClientCA && a.certified(r, now)
	case 1:
		return a.token(values[0])
	default:
		return "", false
	}
}

func (a Auth) token(header string) (name string, ok bool) {
	scheme, secret, found := strings.Cut(header, " ")
	if !found || !strings.EqualFold(scheme, "Bearer") || len(secret) > maxToken {
		return "", false
	}
	hash := sha256.Sum256([]byte(secret))
	for _, t := range a.Tokens { // all are looked at, so that the time tells nothing
		if subtle.ConstantTimeCompare(hash[:], t.hash[:]) == 1 {
			name, ok = t.Name, true
		}
	}
	return name, ok
}

// certified trusts only what the handshake has verified, and looks again at the dates: a connection can outlive them.
func (a Auth) certified(r *http.Request, now time.Time) bool {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return false
	}
	chain := r.TLS.VerifiedChains[0]
	for _, certificate := range chain {
		if now.After(certificate.NotAfter) {
			return false
		}
	}
	return len(a.Clients) == 0 || slices.Contains(a.Clients, chain[0].Subject.CommonName)
}
