package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"docket/internal/service/bearer"
)

// caller is the authenticated author of a request.
type caller struct {
	Name string
	Role Role
	By   string // byToken, byCertificate or ByOpenID
}

// Ways of authentication.
const (
	byToken       = "token"
	byCertificate = "certificate"
	// ByOpenID is a login at an OpenID provider. The console alone has it.
	ByOpenID = "oidc"
)

type callerKey struct{}

// callerOf returns the caller of a request, zero if there is none.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// Reasons of failed logins. They are also labels of a metric.
var (
	errNoCredentials = errors.New("no_credentials")
	errBadToken      = errors.New("bad_token")
	errExpiredToken  = errors.New("expired_token")
	errBadHeader     = errors.New("bad_header")
	errUnknownClient = errors.New("unknown_client")
	errThrottled     = errors.New("throttled")
	errOpenID        = errors.New("oidc")
)

// authenticate returns the sender of r. A token counts before a certificate, and a wrong token is refused even with a
// valid certificate.
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

// byToken returns the owner of a token. With [errExpiredToken] it also returns the owner.
func (a Auth) byToken(header string, now time.Time) (caller, error) {
	presented, found := bearer.Header(header)
	if !found {
		return caller{}, errBadHeader
	}
	c, err := caller{}, errBadToken
	// Compare with all tokens, so that the time reveals nothing.
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

// byCertificate returns the caller by the common name of the verified certificate.
func (a Auth) byCertificate(r *http.Request, now time.Time) (caller, error) {
	certificate := bearer.Certificate(r.TLS, now)
	if certificate == nil {
		return caller{}, errNoCredentials
	}
	name := certificate.Subject.CommonName
	for _, c := range a.Clients {
		if c.Name == name {
			return caller{c.Name, c.Role, byCertificate}, nil
		}
	}
	return caller{}, errUnknownClient
}
