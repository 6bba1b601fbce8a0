package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"docket/internal/service/bearer"
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
	errExpiredToken  = errors.New("expired_token")
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
		return a.byToken(values[0], now)
	}
	return a.byCertificate(r, now)
}

// byToken finds out whose token a header has. With [errExpiredToken] comes who held it.
func (a Auth) byToken(header string, now time.Time) (caller, error) {
	presented, found := bearer.Header(header)
	if !found {
		return caller{}, errBadHeader
	}
	c, err := caller{}, errBadToken
	// All are looked at, so that the time tells nothing.
	for _, t := range a.Tokens {
		if !t.secret.Is(presented) {
			continue
		}
		if c, err = (caller{t.Name, t.Role, byToken}), nil; t.secret.Expired(now) {
			err = errExpiredToken
		}
	}
	return c, err
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
