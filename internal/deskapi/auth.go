package deskapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"
)

// caller is who asks.
type caller struct {
	Name string
	Role Role
	By   string // byToken or byCertificate
}

// How somebody shows who they are.
const (
	byToken       = "token"
	byCertificate = "certificate"
)

type callerKey struct{}

// who is the caller whom the guard let in; nobody elsewhere.
func who(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// Why nobody was let in. The words are labels of a metric, too.
var (
	errNoCredentials = errors.New("no_credentials")
	errBadToken      = errors.New("bad_token")
	errBadHeader     = errors.New("bad_header")
	errUnknownClient = errors.New("unknown_client")
	errThrottled     = errors.New("throttled")
)

// authenticate finds out who sent r. A token goes before a certificate, and one that is wrong is not made up for by a
// certificate that is right.
func (a Auth) authenticate(r *http.Request, now time.Time) (caller, error) {
	values := r.Header.Values("Authorization")
	switch {
	case len(values) > 1:
		return caller{}, errBadHeader
	case len(values) == 1:
		return a.byToken(values[0])
	}
	return a.byCertificate(r, now)
}

func (a Auth) byToken(header string) (caller, error) {
	scheme, secret, found := strings.Cut(header, " ")
	if !found || !strings.EqualFold(scheme, "Bearer") || len(secret) > maxToken {
		return caller{}, errBadHeader
	}
	hash := sha256.Sum256([]byte(secret))
	found = false
	var c caller
	// All are looked at, so that the time tells nothing.
	for _, t := range a.Tokens {
		if subtle.ConstantTimeCompare(hash[:], t.hash[:]) == 1 {
			c, found = caller{t.Name, t.Role, byToken}, true
		}
	}
	if !found {
		return caller{}, errBadToken
	}
	return c, nil
}

// byCertificate trusts only what the handshake has verified, and looks again at the dates: a connection can outlive them.
func (a Auth) byCertificate(r *http.Request, now time.Time) (caller, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return caller{}, errNoCredentials
	}
	for _, certificate := range r.TLS.VerifiedChains[0] {
		if now.After(certificate.NotAfter) {
			return caller{}, errNoCredentials
		}
	}
	name := r.TLS.VerifiedChains[0][0].Subject.CommonName
	for _, c := range a.Clients {
		if c.Name == name {
			return caller{c.Name, c.Role, byCertificate}, nil
		}
	}
	return caller{}, errUnknownClient
}
