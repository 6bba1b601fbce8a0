package openid

import (
	"errors"
	"net"
	"net/url"
	"strconv"

	"golang.org/x/oauth2"
)

// Kind is how a login failed.
type Kind uint8

// The kinds.
const (
	// Away: the provider does not answer.
	Away Kind = iota + 1
	// Busy: too many requests wait for the provider.
	Busy
	// Unknown: this browser did not begin this login, or too long ago.
	Unknown
	// Refused: the provider says no. Text is its explanation.
	Refused
	// Wrong: the provider's answer cannot be trusted, or the settings do not fit it.
	Wrong
	// Unnamed: the ID token has no usable name.
	Unnamed
)

// Error is a login that failed. Its text has no code, no token and no secret.
type Error struct {
	Kind   Kind
	Reason string
	Text   string // of the provider, for the person
	err    error
}

func (e *Error) Error() string {
	if e.err == nil {
		return e.Reason
	}
	return e.Reason + ": " + e.err.Error()
}

// Unwrap returns the cause, if it has no secret.
func (e *Error) Unwrap() error { return e.err }

// awayOr is the error of a request that brought nothing. The body of an answer may repeat what was sent, so it is left
// out.
func awayOr(err error, reason string) *Error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		status := 0
		if refused.Response != nil {
			status = refused.Response.StatusCode
		}
		out := &Error{Kind: Refused, Reason: reason + ": status " + strconv.Itoa(status)}
		if code := codeOf(refused.ErrorCode); code != "" {
			out.Reason += ", " + code
			out.Text = code
		}
		if status >= 500 {
			out.Kind = Away
		}
		return out
	}
	var failed *url.Error
	var network net.Error
	switch {
	case errors.As(err, &failed):
		return &Error{Kind: Away, Reason: reason, err: failed.Err} // its URL may have a query
	case errors.As(err, &network):
		return &Error{Kind: Away, Reason: reason, err: network}
	}
	return &Error{Kind: Wrong, Reason: reason + ": the answer cannot be used"}
}

// codeOf returns an error code of OAuth, empty for any other text.
func codeOf(text string) string {
	if len(text) == 0 || len(text) > 40 {
		return ""
	}
	for _, c := range text {
		if (c < 'a' || c > 'z') && c != '_' {
			return ""
		}
	}
	return text
}
