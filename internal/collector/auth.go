package collector

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"docket/internal/service/bearer"
)

// names stand in log lines, so they hold nothing that could be taken for something else.
var names = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 ._@-]{0,62}[A-Za-z0-9])?$`)

// Token is who may upload by a bearer token. The token itself is not kept, only its hash.
type Token struct {
	Name   string
	secret bearer.Secret
}

// Auth is who may upload. The zero value lets everybody.
type Auth struct {
	Tokens []Token
	// ClientCA says that the listener verifies client certificates, and that one that it has verified may upload.
	ClientCA bool
	// Clients are the names of which such a certificate must have one, as SPIFFE id, common name, DNS name or sha256:HASH; none: any.
	Clients []string
	// Rights are what each of them may upload.
	Rights Rights
}

// ParseTokens reads entries name:token, separated by white space, as DOCKET_COLLECTOR_TOKENS has them; the token may be a hash
// and may expire, see [bearer.Parse]. A name may have several tokens, so that they can be changed one by one. Complaints name an entry by its number and never quote it; all come at once.
func ParseTokens(text string) ([]Token, error) {
	var tokens []Token
	var bad []error
	for i, entry := range strings.Fields(text) {
		name, rest, found := strings.Cut(entry, ":")
		secret, err := bearer.Parse(rest)
		var complaint string
		switch {
		case !found:
			complaint = "is not name:token"
		case !names.MatchString(name):
			complaint = "has a name that is not made of letters, digits, dots, dashes, underscores or @, or is longer than 64"
		case err != nil:
			complaint = err.Error()
		case slices.ContainsFunc(tokens, func(o Token) bool { return o.secret.Same(secret) }):
			complaint = "has the token of an entry before it"
		default:
			tokens = append(tokens, Token{name, secret})
			continue
		}
		bad = append(bad, fmt.Errorf("entry %d %s", i+1, complaint))
	}
	return tokens, errors.Join(bad...)
}

func (a Auth) anonymous() bool { return len(a.Tokens) == 0 && !a.ClientCA && len(a.Clients) == 0 }

// admits reports whether the sender of r may upload, and the name of the token or certificate that decided. A name
// without ok is that of an expired token. A token is checked before a certificate. A valid certificate does not excuse a
// wrong token.
func (a Auth) admits(r *http.Request, now time.Time) (name string, ok bool) {
	if a.anonymous() {
		return "", true
	}
	switch values := r.Header.Values("Authorization"); len(values) {
	case 0:
		if !a.ClientCA {
			return "", false
		}
		return a.certified(r, now)
	case 1:
		return a.token(values[0], now)
	default:
		return "", false
	}
}

// token returns who holds the token of a header. A name without ok says that the token has expired.
func (a Auth) token(header string, now time.Time) (name string, ok bool) {
	presented, found := bearer.Header(header)
	if !found {
		return "", false
	}
	for _, t := range a.Tokens { // all are looked at, so that the time tells nothing
		if t.secret.Is(presented) {
			name, ok = t.Name, !t.secret.Expired(now)
		}
	}
	return name, ok
}

// certified gives the name that a client's certificate goes by.
func (a Auth) certified(r *http.Request, now time.Time) (name string, ok bool) {
	certificate := bearer.Certificate(r.TLS, now)
	if certificate == nil {
		return "", false
	}
	names := namesOf(certificate)
	if len(a.Clients) == 0 {
		return names[0], true
	}
	for _, name := range names {
		if slices.Contains(a.Clients, name) {
			return name, true
		}
	}
	return "", false
}

// namesOf are the names of a certificate, the most telling first: its SPIFFE ids, its common name, its DNS names, and the hash of the whole,
// which it has in any case.
func namesOf(c *x509.Certificate) (names []string) {
	for _, u := range c.URIs {
		if u.Scheme == "spiffe" {
			names = append(names, u.String())
		}
	}
	if c.Subject.CommonName != "" {
		names = append(names, c.Subject.CommonName)
	}
	names = append(names, c.DNSNames...)
	return append(names, fmt.Sprintf("sha256:%x", sha256.Sum256(c.Raw)))
}
