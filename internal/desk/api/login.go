package api

import (
	"net/http"

	"docket/internal/service/bearer"
)

// Caller is who a request comes from.
type Caller = caller

// Login admits the owner of a token, as a request with that token would be: by the same throttle, counters and log.
// Bound is an HMAC of the token for [Handler.Standing]; without the key it reveals nothing.
func (h *Handler) Login(remote, token string, key []byte) (c Caller, bound []byte, refused *Problem) {
	header := "Bearer " + token
	c, refused = h.guard.admit(&http.Request{RemoteAddr: remote, Header: http.Header{"Authorization": {header}}})
	if refused != nil {
		return Caller{}, nil, refused
	}
	presented, _ := bearer.Header(header) // it was read a moment ago
	for _, t := range h.guard.auth.Load().Tokens {
		if t.secret.Is(presented) {
			return c, t.secret.Bind(key), nil
		}
	}
	return Caller{}, nil, unknown() // the tokens changed in between
}

// Standing returns the owner of a token with the role of now, if the token that was bound is still one of that name.
func (h *Handler) Standing(name string, key, bound []byte) (Caller, bool) {
	for _, t := range h.guard.auth.Load().Tokens {
		if t.Name == name && t.secret.Bound(key, bound) && !t.secret.Expired(h.guard.now()) {
			return caller{t.Name, t.Role, byToken}, true
		}
	}
	return Caller{}, false
}

// Certified returns the owner of the client certificate of a request.
func (h *Handler) Certified(r *http.Request) (Caller, bool) {
	c, err := h.guard.auth.Load().byCertificate(r, h.guard.now())
	return c, err == nil
}

// LoginFailed counts a login at an OpenID provider that failed. It delays nobody: there is nothing to guess.
func (h *Handler) LoginFailed() { h.guard.metrics.failed(errOpenID) }

// Used reports whether somebody can use the API now: a token or a client certificate is known.
func (h *Handler) Used() bool {
	a := h.guard.auth.Load()
	return len(a.Tokens)+len(a.Clients) > 0
}

// Occupy takes one of the places for running requests. Others share them with the API, so that both together stay
// within [Config].MaxInFlight.
func (h *Handler) Occupy() (leave func(), ok bool) {
	if h.guard.occupy() != nil {
		return nil, false
	}
	return h.guard.leave, true
}

// MaxInFlight is the number of requests that may run at once.
func (h *Handler) MaxInFlight() int { return h.api.MaxInFlight }
