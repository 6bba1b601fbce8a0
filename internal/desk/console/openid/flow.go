package openid

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Flow is a login between the way to the provider and the way back. The browser holds it sealed.
type Flow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Next     string    `json:"next"`             // where the person wanted to go
	Before   []byte    `json:"before,omitempty"` // the id of the session that the login replaces
	Until    time.Time `json:"until"`
}

// ID names the login. A login makes one session at most.
func (f Flow) ID() []byte {
	sum := sha256.Sum256([]byte(f.State))
	return sum[:]
}

// random is 256 random bits as text.
func random() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(bits[:])
}

// Begin makes a login. It returns the address at the provider, and the content of the cookie. With other the provider
// asks who it is, even if the person is logged in there.
func (p *Provider) Begin(ctx context.Context, next string, before []byte, other bool) (to, sealed string, err error) {
	ctx, leave, err := p.enter(ctx, p.places)
	if err != nil {
		return "", "", err
	}
	defer leave()
	found, err := p.discover(ctx)
	if err != nil {
		return "", "", err
	}
	f := Flow{State: random(), Nonce: random(), Verifier: oauth2.GenerateVerifier(), Next: next, Before: before, Until: p.Now().Add(Lasts)}
	bits, err := p.seal("login", nil, nil, f)
	if err != nil {
		return "", "", &Error{Kind: Wrong, Reason: "seal a login", err: err}
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(f.Verifier), oidc.Nonce(f.Nonce)}
	if other {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
	}
	return p.oauth(found).AuthCodeURL(f.State, options...), base64.RawURLEncoding.EncodeToString(bits), nil
}

// Read opens the cookie of a login that the state belongs to. Its error is of the kind [Unknown].
func (p *Provider) Read(sealed, state string) (f Flow, err error) {
	bits, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || sealed == "" {
		return Flow{}, &Error{Kind: Unknown, Reason: "the browser has no login that waits"}
	}
	if err := p.open("login", nil, nil, bits, &f); err != nil {
		return Flow{}, &Error{Kind: Unknown, Reason: "the login was not begun here", err: err}
	}
	if subtle.ConstantTimeCompare([]byte(f.State), []byte(state)) != 1 {
		return Flow{}, &Error{Kind: Unknown, Reason: "the state belongs to another login"}
	}
	if !p.Now().Before(f.Until) {
		return Flow{}, &Error{Kind: Unknown, Reason: "the login took too long"}
	}
	return f, nil
}

// maxText limits an explanation of the provider, in bytes.
const maxText = 300

// Finish trades what the provider sent along for a person. The query belongs to the flow, see [Provider.Read].
func (p *Provider) Finish(ctx context.Context, f Flow, query url.Values) (Person, error) {
	ctx, leave, err := p.enter(ctx, p.places)
	if err != nil {
		return Person{}, err
	}
	defer leave()
	found, err := p.discover(ctx)
	if err != nil {
		return Person{}, err
	}
	// A provider that names itself cannot be taken for another (RFC 9207).
	if issuer, named := query.Get("iss"), query.Has("iss"); issuer != p.Issuer && (named || found.facts.NamesItself) {
		return Person{}, &Error{Kind: Wrong, Reason: "another provider sent the browser back"}
	}
	if query.Has("error") {
		return Person{}, refusal(query)
	}
	code := query.Get("code")
	if code == "" || len(query["code"]) > 1 || len(query["state"]) > 1 {
		return Person{}, &Error{Kind: Wrong, Reason: "the provider sent no code, or two"}
	}
	answer, err := p.oauth(found).Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Person{}, awayOr(err, "trade the code")
	}
	raw, _ := answer.Extra("id_token").(string)
	return p.person(ctx, found, raw, f.Nonce)
}

func refusal(query url.Values) *Error {
	text := query.Get("error_description")
	if text == "" {
		text = query.Get("error")
	}
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	out := &Error{Kind: Refused, Reason: "the provider refused", Text: text}
	if code := codeOf(query.Get("error")); code != "" {
		out.Reason += ": " + code
	}
	return out
}

// LogoutURL is where a person logs out of the provider, empty if that is not known.
func (p *Provider) LogoutURL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil || p.found.facts.EndSession == "" {
		return ""
	}
	u, err := url.Parse(p.found.facts.EndSession)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("client_id", p.ClientID)
	u.RawQuery = q.Encode()
	return u.String()
}
