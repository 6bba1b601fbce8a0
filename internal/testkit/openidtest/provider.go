// Package openidtest is an OpenID provider in the process of a test. It does what a test asks, also what no provider
// should do.
package openidtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"
)

// The client that the provider knows.
const (
	Client = "docket"
	Secret = "planted-client-secret-0123456789"
)

// Key signs tokens.
type Key struct {
	ID      string
	private *ecdsa.PrivateKey
}

// NewKey makes a key.
func NewKey(t testing.TB, id string) Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, private}
}

// Claims are those of a token.
type Claims map[string]any

// Provider is the provider. Its fields may be changed under [Provider.Set] alone.
type Provider struct {
	URL string
	// Person has the claims of whoever logs in.
	Person Claims
	// Change alters the claims of an ID token before it is signed.
	Change func(Claims)
	// Sign replaces the signing of an ID token.
	Sign func(Claims) string
	// Refuse has the provider send this error back, with its explanation.
	Refuse, Because string
	// Reuse lets a code be used twice, which no provider may do.
	Reuse bool
	// Status replaces the answer of every endpoint, if it is not 0.
	Status int
	// Meta alters the metadata.
	Meta func(map[string]any)
	// Answer replaces the answer of the token endpoint.
	Answer func(http.ResponseWriter, url.Values)
	// Issuer replaces the name that the provider gives along with a code; "-": none.
	Issuer string

	t      testing.TB
	now    func() time.Time
	server *httptest.Server

	mu    sync.Mutex
	keys  []Key // the last one signs
	codes map[string]*granted
	said  []string // codes and tokens
	looks int
}

type granted struct {
	query url.Values
	used  bool
}

// New starts a provider. It ends with the test.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	p := &Provider{t: t, now: now, codes: map[string]*granted{}, keys: []Key{NewKey(t, "k1")}, Person: Claims{"sub": "subject-1", "preferred_username": "mara", "groups": []string{"staff", "docket-operators"}, "sid": "p-1"}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.metadata)
	mux.HandleFunc("GET /keys", p.serveKeys)
	mux.HandleFunc("POST /token", p.token)
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.Status != 0 {
			http.Error(w, `{"planted":"body"}`, p.Status)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	p.URL = p.server.URL
	t.Cleanup(p.server.Close)
	return p
}

// Set changes the provider.
func (p *Provider) Set(change func(*Provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// Rotate replaces all keys.
func (p *Provider) Rotate(k Key) { p.Set(func(p *Provider) { p.keys = []Key{k} }) }

// Said are all codes and tokens that the provider gave.
func (p *Provider) Said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.said...)
}

// Looks is how often the metadata was asked for.
func (p *Provider) Looks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.looks
}

func (p *Provider) metadata(w http.ResponseWriter, _ *http.Request) {
	p.looks++
	all := map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"end_session_endpoint": p.URL + "/logout", "id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"}, "authorization_response_iss_parameter_supported": true}
	if p.Meta != nil {
		p.Meta(all)
	}
	writeJSON(w, http.StatusOK, all)
}

func (p *Provider) serveKeys(w http.ResponseWriter, _ *http.Request) {
	all := []map[string]string{}
	for _, k := range p.keys {
		bits, err := k.private.PublicKey.Bytes()
		if err != nil {
			panic(err)
		}
		all = append(all, map[string]string{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": k.ID, "x": encode(bits[1:33]), "y": encode(bits[33:])})
	}
	writeJSON(w, http.StatusOK, map[string]any{"keys": all})
}

// Log has somebody log in at the address of an authorization request. It returns where the provider sends the browser.
func (p *Provider) Log(t testing.TB, to string) *url.URL {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{"response_type": "code", "client_id": Client, "code_challenge_method": "S256"} {
		if q.Get(name) != want {
			t.Fatalf("the request has %s=%q in %s", name, q.Get(name), to)
		}
	}
	if len(q.Get("state")) < 43 || len(q.Get("nonce")) < 43 || len(q.Get("code_challenge")) != 43 {
		t.Fatalf("the request has a short secret: %s", to)
	}
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		t.Fatal(err)
	}
	out := url.Values{"state": {q.Get("state")}, "iss": {p.URL}}
	switch p.Issuer {
	case "":
	case "-":
		out.Del("iss")
	default:
		out.Set("iss", p.Issuer)
	}
	if p.Refuse != "" {
		out.Set("error", p.Refuse)
		out.Set("error_description", p.Because)
	} else {
		code := "planted-code-" + encode(random(12))
		p.codes[code] = &granted{query: q}
		p.said = append(p.said, code)
		out.Set("code", code)
	}
	back.RawQuery = out.Encode()
	return back
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
		return
	}
	form := r.PostForm
	if p.Answer != nil {
		p.Answer(w, form)
		return
	}
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = form.Get("client_id"), form.Get("client_secret")
	}
	g := p.codes[form.Get("code")]
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	switch {
	case id != Client || secret != Secret && secret != "":
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	case g == nil, g.used && !p.Reuse, encode(sum[:]) != g.query.Get("code_challenge"), form.Get("redirect_uri") != g.query.Get("redirect_uri"), form.Get("grant_type") != "authorization_code":
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "code " + form.Get("code") + " is not good"})
		return
	}
	g.used = true
	now := p.now()
	claims := Claims{"iss": p.URL, "aud": Client, "azp": Client, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": g.query.Get("nonce")}
	for name, value := range p.Person {
		claims[name] = value
	}
	if p.Change != nil {
		p.Change(claims)
	}
	var token string
	if p.Sign != nil {
		token = p.Sign(claims)
	} else {
		token = p.keys[len(p.keys)-1].Token(claims)
	}
	access := "planted-access-" + encode(random(12))
	p.said = append(p.said, token, access)
	writeJSON(w, http.StatusOK, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": token})
}

// Logout is a token that ends sessions at the provider's word.
func (p *Provider) Logout(change func(Claims)) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	claims := Claims{"iss": p.URL, "aud": Client, "sub": p.Person["sub"], "sid": p.Person["sid"], "jti": encode(random(8)), "iat": p.now().Unix(), "exp": p.now().Add(2 * time.Minute).Unix(),
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}}
	if change != nil {
		change(claims)
	}
	return p.keys[len(p.keys)-1].Token(claims)
}

// Token signs claims.
func (k Key) Token(c Claims) string {
	head := part(map[string]string{"alg": "ES256", "typ": "JWT", "kid": k.ID}) + "." + part(c)
	sum := sha256.Sum256([]byte(head))
	r, s, err := ecdsa.Sign(rand.Reader, k.private, sum[:])
	if err != nil {
		panic(err)
	}
	var bits [64]byte
	r.FillBytes(bits[:32])
	s.FillBytes(bits[32:])
	return head + "." + encode(bits[:])
}

// Unsigned is a token without a signature.
func Unsigned(c Claims) string {
	return part(map[string]string{"alg": "none", "typ": "JWT"}) + "." + part(c) + "."
}

// Symmetric is a token that is signed with a secret, here one that everybody knows.
func Symmetric(c Claims, kid, secret string) string {
	head := part(map[string]string{"alg": "HS256", "typ": "JWT", "kid": kid}) + "." + part(c)
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(head))
	return head + "." + encode(m.Sum(nil))
}

func part(content any) string {
	text, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return encode(text)
}

func encode(bits []byte) string { return base64.RawURLEncoding.EncodeToString(bits) }

func random(n int) []byte {
	bits := make([]byte, n)
	_, _ = rand.Read(bits) // it never fails
	return bits
}

func writeJSON(w http.ResponseWriter, status int, content any) {
	text, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client is gone
}
