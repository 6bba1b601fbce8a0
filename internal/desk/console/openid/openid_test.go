package openid_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/internal/desk/console/openid"
	"docket/internal/testkit/openidtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

type world struct {
	*openid.Provider
	at    *openidtest.Provider
	clock *clock // of the desk
}

func newWorld(t testing.TB, change ...func(*openid.Config)) *world {
	t.Helper()
	w := &world{clock: &clock{now: noon}}
	w.at = openidtest.New(t, func() time.Time { return noon })
	c := openid.Config{Issuer: w.at.URL, ClientID: openidtest.Client, Secret: func() string { return openidtest.Secret }, RedirectURL: "https://desk.example/login/callback", Now: w.clock.Now, Rounds: 1}
	for _, f := range change {
		f(&c)
	}
	var err error
	if w.Provider, err = openid.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// log has somebody log in.
func (w *world) log(t testing.TB) (openid.Person, error) {
	t.Helper()
	to, sealed, err := w.Begin(t.Context(), "/", nil, false)
	if err != nil {
		return openid.Person{}, err
	}
	return w.back(t, sealed, w.at.Log(t, to))
}

func (w *world) back(t testing.TB, sealed string, back *url.URL) (openid.Person, error) {
	t.Helper()
	f, err := w.Read(sealed, back.Query().Get("state"))
	if err != nil {
		return openid.Person{}, err
	}
	return w.Finish(t.Context(), f, back.Query())
}

func kindOf(err error) openid.Kind {
	var failed *openid.Error
	if errors.As(err, &failed) {
		return failed.Kind
	}
	return 0
}

func (w *world) refuses(t testing.TB, want openid.Kind, reason string) {
	t.Helper()
	got, err := w.log(t)
	if kindOf(err) != want || !strings.Contains(err.Error(), reason) {
		t.Errorf("%+v, %v; want kind %d: %s", got, err, want, reason)
	}
	if err != nil {
		for _, secret := range append(w.at.Said(), openidtest.Secret) {
			if secret != "" && strings.Contains(err.Error(), secret) {
				t.Errorf("the error has %.20s…", secret)
			}
		}
	}
}

func TestPerson_Known(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *openid.Config) { c.GroupsClaim, c.NameClaim = "https://acme.example/teams", "email" })
	w.at.Set(func(p *openidtest.Provider) {
		p.Person = openidtest.Claims{"sub": "s", "email": "a.b+c@acme.example", "email_verified": true, "https://acme.example/teams": []string{"x", "y"}, "sid": "p"}
	})
	got, err := w.log(t)
	if err != nil || got.Name != "oidc:a.b+c@acme.example" || got.Subject != "s" || got.Session != "p" || strings.Join(got.Groups, " ") != "x y" {
		t.Fatalf("%+v, %v", got, err)
	}
}

// TestPerson_UnverifiedEmail: an address that the provider has not verified, or says nothing of, names nobody.
func TestPerson_UnverifiedEmail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *openid.Config) { c.NameClaim = "email" })
	for _, c := range []struct {
		verified any
		want     openid.Kind
	}{{true, 0}, {"true", 0}, {false, openid.Unnamed}, {"false", openid.Unnamed}, {"yes", openid.Unnamed}, {1, openid.Unnamed}, {nil, openid.Unnamed}, {missing{}, openid.Unnamed}} {
		w.at.Set(func(p *openidtest.Provider) {
			p.Person = openidtest.Claims{"sub": "s", "email": "a@acme.example", "email_verified": c.verified}
			if c.verified == (missing{}) {
				delete(p.Person, "email_verified")
			}
		})
		if _, err := w.log(t); kindOf(err) != c.want || err != nil && !strings.Contains(err.Error(), "DOCKET_DESK_OIDC_NAME") {
			t.Errorf("email_verified %v: %v", c.verified, err)
		}
	}
}

// missing replaces a claim that is not sent.
type missing struct{}

func TestBegin_AsksForWhatIsNeeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *openid.Config) { c.Scopes = []string{"openid", "profile", "groups"} })
	seen := map[string]bool{}
	for _, other := range []bool{false, true} {
		to, sealed, err := w.Begin(t.Context(), "/rates", nil, other)
		if err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse(to)
		q := u.Query()
		if q.Get("scope") != "openid profile groups" || q.Get("redirect_uri") != "https://desk.example/login/callback" || (q.Get("prompt") == "login") != other {
			t.Errorf("%s", to)
		}
		for _, name := range []string{"state", "nonce", "code_challenge"} {
			if seen[q.Get(name)] || strings.Contains(sealed, q.Get(name)) {
				t.Errorf("%s is there twice, or not sealed", name)
			}
			seen[q.Get(name)] = true
		}
	}
}

// TestToken_Attacks: each is refused, and the reason is in the error.
func TestToken_Attacks(t *testing.T) {
	t.Parallel()
	change := func(f func(openidtest.Claims)) func(*openidtest.Provider) {
		return func(p *openidtest.Provider) { p.Change = f }
	}
	sign := func(f func(openidtest.Claims) string) func(*openidtest.Provider) {
		return func(p *openidtest.Provider) { p.Sign = f }
	}
	const untrusted, another = "cannot be trusted", "another client"
	for name, c := range map[string]struct {
		change func(*openidtest.Provider)
		reason string
	}{
		"forged":             {sign(openidtest.NewKey(t, "k1").Token), untrusted},
		"unknown key":        {sign(openidtest.NewKey(t, "k9").Token), untrusted},
		"no algorithm":       {sign(openidtest.Unsigned), untrusted},
		"known secret":       {sign(func(c openidtest.Claims) string { return openidtest.Symmetric(c, "k1", openidtest.Secret) }), untrusted},
		"no token":           {sign(func(openidtest.Claims) string { return "" }), "no ID token"},
		"junk":               {sign(func(openidtest.Claims) string { return "a.b.c" }), untrusted},
		"encrypted":          {sign(func(openidtest.Claims) string { return "a.b.c.d.e" }), untrusted},
		"wrong audience":     {change(func(c openidtest.Claims) { c["aud"] = "other" }), untrusted},
		"no audience":        {change(func(c openidtest.Claims) { delete(c, "aud") }), untrusted},
		"wrong issuer":       {change(func(c openidtest.Claims) { c["iss"] = "https://evil.example" }), untrusted},
		"issuer with slash":  {change(func(c openidtest.Claims) { c["iss"] = c["iss"].(string) + "/" }), untrusted},
		"expired":            {change(func(c openidtest.Claims) { c["exp"] = noon.Add(-61 * time.Second).Unix() }), "has expired"},
		"no expiry":          {change(func(c openidtest.Claims) { delete(c, "exp") }), "has expired"},
		"not yet":            {change(func(c openidtest.Claims) { c["nbf"] = noon.Add(time.Hour).Unix() }), untrusted},
		"wrong nonce":        {change(func(c openidtest.Claims) { c["nonce"] = "x" }), "another login"},
		"no nonce":           {change(func(c openidtest.Claims) { delete(c, "nonce") }), "another login"},
		"other party":        {change(func(c openidtest.Claims) { c["azp"] = "other" }), another},
		"empty party":        {change(func(c openidtest.Claims) { c["azp"] = "" }), another},
		"audiences no party": {change(func(c openidtest.Claims) { c["aud"] = []string{"docket", "other"}; delete(c, "azp") }), another},
		"no subject":         {change(func(c openidtest.Claims) { delete(c, "sub") }), "no subject"},
		"mix-up":             {func(p *openidtest.Provider) { p.Issuer = "https://evil.example" }, "another provider"},
		"nameless":           {func(p *openidtest.Provider) { p.Issuer = "-" }, "another provider"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.at.Set(c.change)
			w.refuses(t, openid.Wrong, c.reason)
			w.at.Set(func(p *openidtest.Provider) { p.Change, p.Sign, p.Issuer = nil, nil, "" })
			if _, err := w.log(t); err != nil {
				t.Errorf("after the attack nobody can log in: %v", err)
			}
		})
	}
}

func TestToken_AudiencesWithParty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.at.Set(func(p *openidtest.Provider) {
		p.Change = func(c openidtest.Claims) { c["aud"] = []string{"other", "docket"} }
	})
	if _, err := w.log(t); err != nil {
		t.Error(err)
	}
}

// TestToken_OfAnotherLogin: a token that was caught elsewhere does not fit this login.
func TestToken_OfAnotherLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.log(t); err != nil {
		t.Fatal(err)
	}
	caught := w.at.Said()[1]
	w.at.Set(func(p *openidtest.Provider) { p.Sign = func(openidtest.Claims) string { return caught } })
	w.refuses(t, openid.Wrong, "another login")
}

func TestCode_NeedsTheVerifierAndOneUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to, sealed, err := w.Begin(t.Context(), "/", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	back := w.at.Log(t, to)
	f, err := w.Read(sealed, back.Query().Get("state"))
	if err != nil {
		t.Fatal(err)
	}
	stolen := f
	stolen.Verifier = strings.Repeat("x", 43)
	if _, err := w.Finish(t.Context(), stolen, back.Query()); kindOf(err) != openid.Refused || !strings.Contains(err.Error(), "status 400, invalid_grant") {
		t.Errorf("another verifier: %v", err)
	}
	if _, err := w.Finish(t.Context(), f, back.Query()); err != nil {
		t.Error(err)
	}
	_, err = w.Finish(t.Context(), f, back.Query())
	if kindOf(err) != openid.Refused || strings.Contains(err.Error(), back.Query().Get("code")) {
		t.Errorf("a second use: %v", err)
	}
	for name, change := range map[string]func(url.Values){"no code": func(q url.Values) { q.Del("code") }, "two codes": func(q url.Values) { q.Add("code", "x") }, "two states": func(q url.Values) { q.Add("state", "x") }} {
		q := back.Query()
		change(q)
		if _, err := w.Finish(t.Context(), f, q); kindOf(err) != openid.Wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClock_MayBeOff(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-30 * time.Second, 30 * time.Second} {
		w := newWorld(t)
		w.clock.pass(off)
		w.at.Set(func(p *openidtest.Provider) {
			p.Change = func(c openidtest.Claims) { c["exp"], c["nbf"] = noon.Unix(), noon.Unix() }
		})
		if _, err := w.log(t); err != nil {
			t.Errorf("off by %v: %v", off, err)
		}
	}
}

func TestKeys_AreRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"k2", "k3"} {
		if _, err := w.log(t); err != nil {
			t.Fatal(err)
		}
		w.at.Rotate(openidtest.NewKey(t, id))
	}
	if _, err := w.log(t); err != nil {
		t.Error(err)
	}
	if n := w.at.Looks(); n != 1 {
		t.Errorf("the metadata was asked for %d times", n)
	}
}

func TestDiscovery_IsLazyAndLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if w.at.Looks() != 0 {
		t.Fatal("it looked before it was needed")
	}
	w.at.Set(func(p *openidtest.Provider) { p.Meta = func(m map[string]any) { m["issuer"] = "https://evil.example" } })
	for range 10 {
		w.refuses(t, openid.Wrong, "another issuer")
	}
	if n := w.at.Looks(); n != 1 {
		t.Errorf("10 logins looked %d times", n)
	}
	w.at.Set(func(p *openidtest.Provider) { p.Meta = nil })
	w.clock.pass(2 * time.Second)
	if _, err := w.log(t); err != nil {
		t.Fatal(err)
	}
	w.at.Set(func(p *openidtest.Provider) { p.Meta = func(m map[string]any) { delete(m, "issuer") } })
	w.clock.pass(59 * time.Minute)
	for range 3 { // it is known for an hour, and kept beyond it while no better is to be had
		if _, _, err := w.Begin(t.Context(), "/", nil, false); err != nil {
			t.Error(err)
		}
		w.clock.pass(time.Minute)
	}
	if n := w.at.Looks(); n != 4 {
		t.Errorf("it looked %d times in all", n)
	}
}

func TestDiscovery_RefusesUnsafeEndpoints(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"authorization_endpoint", "token_endpoint", "jwks_uri"} {
		for _, value := range []any{"http://evil.example/x", "javascript:alert(1)", "/x", "", "https://a@b/x"} {
			w := newWorld(t)
			w.at.Set(func(p *openidtest.Provider) { p.Meta = func(m map[string]any) { m[name] = value } })
			w.refuses(t, openid.Wrong, "endpoint")
		}
	}
	w := newWorld(t)
	w.at.Set(func(p *openidtest.Provider) {
		p.Meta = func(m map[string]any) { m["end_session_endpoint"] = "javascript:alert(1)" }
	})
	if _, err := w.log(t); err != nil || w.LogoutURL() != "" {
		t.Error(err, w.LogoutURL())
	}
}

func TestProvider_Away(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.at.Set(func(p *openidtest.Provider) { p.Status = http.StatusServiceUnavailable })
	w.refuses(t, openid.Away, "look for the provider")
	w = newWorld(t, func(c *openid.Config) { c.Issuer = "http://127.0.0.1:1" })
	w.refuses(t, openid.Away, "connection refused")
	w = newWorld(t)
	to, sealed, err := w.Begin(t.Context(), "/", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	back := w.at.Log(t, to)
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, url.Values)
		want   openid.Kind
	}{
		"fails": {func(w http.ResponseWriter, q url.Values) {
			http.Error(w, q.Get("code"), http.StatusInternalServerError)
		}, openid.Away},
		"no JSON":   {func(w http.ResponseWriter, q url.Values) { _, _ = w.Write([]byte(q.Get("code"))) }, openid.Wrong},
		"redirects": {func(w http.ResponseWriter, _ url.Values) { http.Error(w, "", http.StatusTemporaryRedirect) }, openid.Refused},
		"echoes":    {func(w http.ResponseWriter, q url.Values) { tell(w, map[string]string{"error": q.Get("code")}) }, openid.Refused},
		"endless": {func(w http.ResponseWriter, _ url.Values) {
			_, _ = w.Write([]byte(`{"access_token":"` + strings.Repeat("x", 2<<20) + `"}`))
		}, openid.Wrong},
		"no ID token": {func(w http.ResponseWriter, _ url.Values) {
			tell(w, map[string]string{"access_token": "x", "token_type": "Bearer"})
		}, openid.Wrong},
		"other object": {func(w http.ResponseWriter, _ url.Values) { tell(w, map[string]any{"access_token": "x", "id_token": 7}) }, openid.Wrong},
	} {
		w.at.Set(func(p *openidtest.Provider) { p.Answer = c.answer })
		_, err := w.back(t, sealed, back)
		if kindOf(err) != c.want || strings.Contains(err.Error(), back.Query().Get("code")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func tell(w http.ResponseWriter, content any) {
	w.Header().Set("Content-Type", "application/json")
	if text, err := json.Marshal(content); err == nil {
		_, _ = w.Write(text)
	}
}

// TestProvider_HangingHoldsFewRequests: the desk answers others meanwhile.
func TestProvider_HangingHoldsFewRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *openid.Config) { c.Timeout = time.Minute })
	leave := openid.Fill(w.Provider)
	if _, _, err := w.Begin(t.Context(), "/", nil, false); kindOf(err) != openid.Busy {
		t.Error(err)
	}
	if _, err := w.Ended(t.Context(), "x"); kindOf(err) != openid.Wrong {
		t.Errorf("a logout of the provider needs a place of logins: %v", err)
	}
	leave()
	leave = openid.FillEnding(w.Provider)
	if _, err := w.Ended(t.Context(), "x"); kindOf(err) != openid.Busy {
		t.Error(err)
	}
	if _, err := w.log(t); err != nil {
		t.Errorf("logouts of the provider take the places of logins: %v", err)
	}
	leave()
	if _, err := w.log(t); err != nil {
		t.Error(err)
	}
	if n := openid.InUse(w.Provider); n != 0 {
		t.Errorf("%d places are kept", n)
	}
}

func TestSeal_OfAPublicClientIsOfThisProcess(t *testing.T) {
	t.Parallel()
	public := func(c *openid.Config) { c.Secret = nil }
	one, two := newWorld(t, public), newWorld(t, public)
	two.Issuer = one.Issuer
	if _, err := one.log(t); err != nil {
		t.Fatal(err)
	}
	secret := []byte("cookie")
	sealed, err := one.Bind(secret, "oidc:a", []string{"g"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := one.Bound(secret, "oidc:a", sealed); err != nil || len(got) != 1 || got[0] != "g" {
		t.Error(got, err)
	}
	if _, err := two.Bound(secret, "oidc:a", sealed); err == nil {
		t.Error("another process opens it")
	}
	if _, err := one.Bound([]byte("other"), "oidc:a", sealed); err == nil {
		t.Error("another cookie opens it")
	}
	if _, err := one.Bound(secret, "oidc:b", sealed); err == nil {
		t.Error("another name opens it")
	}
}

func TestSeal_DiesWithTheSecret(t *testing.T) {
	t.Parallel()
	now := openidtest.Secret
	w := newWorld(t, func(c *openid.Config) { c.Secret = func() string { return now } })
	sealed, err := w.Bind([]byte("x"), "oidc:a", nil)
	if err != nil {
		t.Fatal(err)
	}
	now = "another-secret"
	if _, err := w.Bound([]byte("x"), "oidc:a", sealed); err == nil {
		t.Error("a session outlives the secret of the client")
	}
	w.refuses(t, openid.Refused, "invalid_client")
}

func TestSafe_URLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"https://idp.example/x": true, "http://127.0.0.1:8080": true, "http://[::1]/": true, "http://localhost:1/x": true,
		"http://idp.example": false, "http://127.0.0.1.evil.example": false, "http://localhost.evil": false, "https:///x": false, "https://u:p@idp": false, "ftp://127.0.0.1": false, "": false, "%": false, "idp": false} {
		if openid.Safe(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
