package openid

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Prefix is before the name of a person who logged in by OpenID Connect. No token and no certificate has a colon in its
// name, so the audit tells them apart.
const Prefix = "oidc:"

// Person is somebody whom the provider vouches for.
type Person struct {
	Name    string // with [Prefix]
	Subject string // at the provider, which never gives it to somebody else
	Session string // of the provider; empty if it does not say
	Groups  []string
	// IssuedAt is when the provider vouched for the person, to the second.
	IssuedAt time.Time
}

// Origin says which sessions a logout at the provider ends: those of Session, or without one those of Subject.
type Origin struct {
	Subject, Session string
	// IssuedAt is when the provider sent it, to the second.
	IssuedAt time.Time
}

// names are what a person may be called: nothing special for a terminal or a log line.
var names = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 ._@+-]{0,62}[A-Za-z0-9])?$`)

// claims are what the desk reads besides what go-oidc checks.
type claims struct {
	AuthorizedParty *string `json:"azp"`
	Session         string  `json:"sid"`
}

// person verifies an ID token.
func (p *Provider) person(ctx context.Context, f *found, raw, nonce string) (Person, error) {
	if raw == "" {
		return Person{}, &Error{Kind: Wrong, Reason: "the provider sent no ID token"}
	}
	token, err := f.verifier.Verify(ctx, raw)
	if err != nil {
		return Person{}, unverified(err)
	}
	var read claims
	all := map[string]json.RawMessage{}
	if errors.Join(token.Claims(&read), token.Claims(&all)) != nil {
		return Person{}, &Error{Kind: Wrong, Reason: "the claims of the ID token cannot be read"}
	}
	switch {
	case nonce == "" || token.Nonce != nonce:
		return Person{}, &Error{Kind: Wrong, Reason: "the ID token belongs to another login"}
	case len(token.Audience) > 1 && read.AuthorizedParty == nil, read.AuthorizedParty != nil && *read.AuthorizedParty != p.ClientID:
		return Person{}, &Error{Kind: Wrong, Reason: "the ID token was issued to another client"}
	case token.Subject == "" || len(token.Subject) > 255:
		return Person{}, &Error{Kind: Wrong, Reason: "the ID token has no subject"}
	}
	var name string
	// Anybody could have written an address that is not verified. It gives way to no other claim: one person would have two
	// names, and could approve what the other one proposed.
	if verified := string(all["email_verified"]); p.NameClaim == "email" && verified != `true` && verified != `"true"` { // some providers send text
		return Person{}, &Error{Kind: Unnamed, Reason: "the provider does not say that it verified the email address (email_verified); choose another claim in DOCKET_DESK_OIDC_NAME"}
	}
	if json.Unmarshal(all[p.NameClaim], &name) != nil || !names.MatchString(name) {
		return Person{}, &Error{Kind: Unnamed, Reason: "the claim " + p.NameClaim + " is not a name for the audit"}
	}
	return Person{Name: Prefix + name, Subject: token.Subject, Session: read.Session, Groups: groupsOf(all[p.GroupsClaim]), IssuedAt: token.IssuedAt}, nil
}

// groupsOf reads a list of groups, or one group.
func groupsOf(raw json.RawMessage) (all []string) {
	var one string
	switch {
	case raw == nil:
	case json.Unmarshal(raw, &all) == nil:
	case json.Unmarshal(raw, &one) == nil:
		return []string{one}
	default:
		return nil
	}
	return all
}

func unverified(err error) *Error {
	var old *oidc.TokenExpiredError
	if errors.As(err, &old) {
		return &Error{Kind: Wrong, Reason: "the ID token has expired; compare the clocks of desk and provider"}
	}
	return &Error{Kind: Wrong, Reason: "the ID token cannot be trusted", err: err}
}

// maxLogoutAge is how old a logout may be. An older one would end sessions that began after it.
const maxLogoutAge = 5 * time.Minute

// Ended verifies a logout that the provider sends by itself, and says which sessions it ends.
func (p *Provider) Ended(ctx context.Context, raw string) (Origin, error) {
	ctx, leave, err := p.enter(ctx, p.ending)
	if err != nil {
		return Origin{}, err
	}
	defer leave()
	found, err := p.discover(ctx)
	if err != nil {
		return Origin{}, err
	}
	before := found.keys.failed.Load()
	token, err := found.verifier.VerifyLogout(ctx, raw)
	if err != nil && found.keys.failed.Load() != before { // the token may be fine
		return Origin{}, &Error{Kind: Away, Reason: "the provider's keys cannot be read"}
	}
	if err != nil {
		return Origin{}, unverified(err)
	}
	if p.Now().Sub(token.IssuedAt) > maxLogoutAge {
		return Origin{}, &Error{Kind: Wrong, Reason: "the logout is too old"}
	}
	return Origin{Subject: token.Subject, Session: token.SessionID, IssuedAt: token.IssuedAt}, nil
}
