// Package openid logs people in by OpenID Connect: authorization code with PKCE, and back-channel logout.
//
// It keeps no state of a login. The browser holds it in a sealed cookie until the provider sends the browser back.
package openid

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Defaults and limits.
const (
	// Lasts is how long a person may take to log in at the provider.
	Lasts = 10 * time.Minute
	// Leeway is how far the clock of the provider may be off.
	Leeway = time.Minute
	// fresh is how long the provider's metadata is used before it is asked for again.
	fresh = time.Hour
	// again is how long a failed look for the provider answers for the ones that follow.
	again = 2 * time.Second
	// most is how many requests may wait for the provider at once.
	most = 8
	// mostEnding is how many logouts of the provider may be verified at once. Anybody can send one, and a forged one has
	// the keys fetched, so they take no place of a login.
	mostEnding = 2
)

// Config says which provider, and how to read what it says.
type Config struct {
	Issuer, ClientID string
	// Secret is the client's secret now; nil or empty: a public client. It is asked at each use.
	Secret func() string
	// RedirectURL is where the provider sends the browser back, as it is registered there.
	RedirectURL string
	Scopes      []string // besides openid
	// GroupsClaim and NameClaim are claims of the ID token. Defaults: groups and preferred_username.
	GroupsClaim, NameClaim string
	Roots                  *x509.CertPool // nil: those of the system
	// Timeout is for each request to the provider. Default: 8 s.
	Timeout time.Duration
	Now     func() time.Time // time.Now
	// Rounds is the work to make keys from the secret, which a person may have chosen. Default: 600,000.
	Rounds int
}

// Provider is a client of one provider. It looks for the provider when it is needed for the first time, so that it can
// be made while the provider is away. It is safe for concurrent use.
type Provider struct {
	Config
	client *http.Client
	places chan struct{}
	ending chan struct{} // the places of logouts of the provider
	keys   keys

	looking sync.Mutex // held by the one who looks
	mu      sync.Mutex
	found   *found
	failed  error
	at      time.Time // of the last look
}

// found is the metadata of the provider.
type found struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	keys     *keyRequests // of the verifier
	facts    facts
}

// facts are the fields of the metadata that go-oidc does not show.
type facts struct {
	EndSession  string `json:"end_session_endpoint"`
	NamesItself bool   `json:"authorization_response_iss_parameter_supported"`
}

// New makes a client. It asks nothing.
func New(c Config) (*Provider, error) {
	if c.Issuer == "" || c.ClientID == "" || c.RedirectURL == "" {
		return nil, errors.New("the provider has no issuer, no client or no redirect URL")
	}
	if c.Secret == nil {
		c.Secret = func() string { return "" }
	}
	if c.GroupsClaim == "" {
		c.GroupsClaim = "groups"
	}
	if c.NameClaim == "" {
		c.NameClaim = "preferred_username"
	}
	if c.Timeout == 0 {
		c.Timeout = 8 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rounds == 0 {
		c.Rounds = 600_000
	}
	p := &Provider{Config: c, client: newClient(c), places: make(chan struct{}, most), ending: make(chan struct{}, mostEnding)}
	p.keys.init()
	return p, nil
}

// Close closes idle connections.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// enter takes one of the places for requests to the provider, and gives a context for it.
func (p *Provider) enter(ctx context.Context, places chan struct{}) (context.Context, func(), error) {
	select {
	case places <- struct{}{}:
	default:
		return nil, nil, &Error{Kind: Busy, Reason: "too many others wait for the provider"}
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), p.Timeout)
	return ctx, func() { cancel(); <-places }, nil
}

// discover returns the metadata. Old metadata stays in use while the provider does not answer.
func (p *Provider) discover(ctx context.Context) (*found, error) {
	if f, known, err := p.known(); known {
		return f, err
	}
	p.looking.Lock()
	defer p.looking.Unlock()
	if f, known, err := p.known(); known { // the one before has looked
		return f, err
	}
	f, err := p.look(ctx)
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) { // the browser is gone, which says nothing about the provider
		return nil, &Error{Kind: Away, Reason: "discovery", err: ctx.Err()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.failed = p.Now(), err
	if err == nil {
		p.found = f
	}
	if p.found != nil {
		return p.found, nil
	}
	return nil, err
}

// known is what the last look says, if it was a short time ago.
func (p *Provider) known() (f *found, known bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	age := p.Now().Sub(p.at)
	switch {
	case p.at.IsZero():
		return nil, false, nil
	case p.failed != nil && age < again:
		if p.found != nil {
			return p.found, true, nil
		}
		return nil, true, p.failed
	case p.failed == nil && p.found != nil && age < fresh:
		return p.found, true, nil
	}
	return nil, false, nil
}

func (p *Provider) look(ctx context.Context) (*found, error) {
	provider, err := oidc.NewProvider(ctx, p.Issuer)
	if err != nil {
		return nil, undiscovered(err)
	}
	f := &found{provider: provider}
	var all struct {
		facts
		Authorization string `json:"authorization_endpoint"`
		Token         string `json:"token_endpoint"`
		Keys          string `json:"jwks_uri"`
	}
	if err := provider.Claims(&all); err != nil {
		return nil, &Error{Kind: Wrong, Reason: "metadata cannot be read", err: err}
	}
	for _, endpoint := range []string{all.Authorization, all.Token, all.Keys} {
		if !Safe(endpoint) {
			return nil, &Error{Kind: Wrong, Reason: "an endpoint of the metadata is missing, or has neither https nor loopback"}
		}
	}
	if f.facts = all.facts; !Safe(f.facts.EndSession) {
		f.facts.EndSession = ""
	}
	f.keys = &keyRequests{RoundTripper: p.client.Transport}
	client := *p.client
	client.Transport = f.keys
	ctx = oidc.ClientContext(ctx, &client)
	f.verifier = provider.VerifierContext(ctx, &oidc.Config{ClientID: p.ClientID, Now: func() time.Time { return p.Now().Add(-Leeway) }})
	return f, nil
}

// undiscovered is the error of a look. An answer that is not the metadata comes from something in front of the provider.
func undiscovered(err error) *Error {
	var other *oidc.IssuerMismatchError
	if errors.As(err, &other) {
		return &Error{Kind: Wrong, Reason: "the provider calls itself by another issuer", err: other}
	}
	out := awayOr(err, "look for the provider")
	out.Kind = Away
	return out
}

// oauth is the client at the provider's endpoints.
func (p *Provider) oauth(f *found) *oauth2.Config {
	scopes := []string{oidc.ScopeOpenID}
	for _, s := range p.Scopes {
		if s != oidc.ScopeOpenID {
			scopes = append(scopes, s)
		}
	}
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.Secret(), Endpoint: f.provider.Endpoint(), RedirectURL: p.RedirectURL, Scopes: scopes}
}
