package console_test

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/desk/console/openid"
	"docket/internal/desk/console/session"
	"docket/internal/testkit/openidtest"
)

const desk = "https://desk.example"

// signed is a console beside a provider.
type signed struct {
	*world
	provider *openidtest.Provider
}

func (w *world) openID(t testing.TB, p *openidtest.Provider, groups ...string) *console.OpenID {
	t.Helper()
	client, err := openid.New(openid.Config{Issuer: p.URL, ClientID: openidtest.Client, Secret: func() string { return openidtest.Secret }, RedirectURL: desk + console.CallbackPath, Now: w.clock.Now, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	roles, err := api.ParseGroups(groups)
	if err != nil {
		t.Fatal(err)
	}
	return &console.OpenID{Provider: client, Groups: roles, Label: "Acme", Lasts: 4 * time.Hour}
}

var groups = []string{"docket-viewers:viewer", "docket-auditors:auditor", "docket-operators:operator", "cn=admins:admin"}

func newSigned(t testing.TB, change ...func(*console.OpenID)) *signed {
	t.Helper()
	w := newWorld(t)
	s := &signed{world: w, provider: openidtest.New(t, w.clock.Now)}
	s.rebuild(t, s.openID(t, s.provider, groups...), change...)
	return s
}

// rebuild restarts the console with the same sessions.
func (s *signed) rebuild(t testing.TB, o *console.OpenID, change ...func(*console.OpenID)) {
	t.Helper()
	for _, f := range change {
		f(o)
	}
	c := s.config
	c.OpenID = o
	s.console = newConsole(t, s.world, c)
}

// depart begins a login, and returns the address at the provider.
func (b *browser) depart(t testing.TB, path string) string {
	t.Helper()
	a := b.get(t, path)
	if a.code != http.StatusSeeOther {
		t.Fatalf("%s: %d %s", path, a.code, a.body)
	}
	return a.header.Get("Location")
}

// arrive brings the browser back from the provider: a strict cookie stays at home.
func (b *browser) arrive(t testing.TB, to *url.URL) answer {
	t.Helper()
	return b.get(t, to.RequestURI(), func(r *http.Request) {
		r.Header.Del("Cookie")
		for _, c := range b.cookies {
			if c.SameSite != http.SameSiteStrictMode {
				r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
			}
		}
		r.Header.Set("Sec-Fetch-Site", "cross-site")
	})
}

// sign logs in at the provider.
func (s *signed) sign(t testing.TB) *browser {
	t.Helper()
	b := s.browser()
	if a := b.arrive(t, s.provider.Log(t, b.depart(t, "/login/oidc"))); a.code != http.StatusOK || b.cookies["__Host-docket"] == nil {
		t.Fatalf("login: %d %s\n%s", a.code, a.body, s.log)
	}
	return b
}

func (s *signed) person(claims openidtest.Claims) {
	s.provider.Set(func(p *openidtest.Provider) {
		for name, value := range claims {
			p.Person[name] = value
		}
	})
}

// secrets fails if the log or a page has a secret.
func (s *signed) secrets(t testing.TB, pages ...answer) {
	t.Helper()
	for _, secret := range append(s.provider.Said(), openidtest.Secret) {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log has %.20s…", secret)
		}
		for _, p := range pages {
			if strings.Contains(p.body, secret) {
				t.Errorf("a page has %.20s…", secret)
			}
		}
	}
}

func TestOpenID_LogsIn(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	b := s.browser()
	a := b.get(t, "/login?next=/decisions?verdict%3Ddenied")
	if !strings.Contains(a.body, `href="/login/oidc?next=%2Fdecisions%3Fverdict%3Ddenied">Log in with Acme</a>`) || !strings.Contains(a.body, `name="token"`) {
		t.Fatal(a.body)
	}
	to := b.depart(t, "/login/oidc?next=%2Fdecisions%3Fverdict%3Ddenied")
	c := b.cookies["__Host-docket-login"]
	if c == nil || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.MaxAge != 600 || len(c.Value) > 3800 {
		t.Fatalf("the cookie of the login is %v", c)
	}
	a = b.arrive(t, s.provider.Log(t, to))
	if a.code != http.StatusOK || a.header.Get("Refresh") != "0; url=/decisions?verdict=denied" || !strings.Contains(a.body, `href="/decisions?verdict=denied"`) || strings.Contains(a.body, "<script>") {
		t.Fatalf("%d %v %s", a.code, a.header, a.body)
	}
	c = b.cookies["__Host-docket"]
	if c == nil || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.MaxAge != 4*60*60 || b.cookies["__Host-docket-login"] != nil {
		t.Fatalf("the cookies are %v", b.cookies)
	}
	if a := b.get(t, "/"); a.code != http.StatusOK || !strings.Contains(a.body, "<div>oidc:mara</div><div class=\"dim\">operator</div>") {
		t.Errorf("%d %s", a.code, a.body)
	}
	if log := s.log.String(); !strings.Contains(log, `"operator":"oidc:mara","subject":"subject-1","role":"operator"`) {
		t.Error(log)
	}
	s.secrets(t, a)
}

func TestOpenID_NoRoleNoSession(t *testing.T) {
	t.Parallel()
	for name, groups := range map[string]any{"others": []string{"staff", "docket-viewers "}, "none": nil, "number": 7, "object": map[string]string{"docket-viewers": "docket-viewers"}, "mixed": []any{"docket-viewers", 7}, "empty": []string{}, "role": "viewer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSigned(t)
			s.person(openidtest.Claims{"groups": groups})
			b := s.browser()
			a := b.arrive(t, s.provider.Log(t, b.depart(t, "/login/oidc")))
			if a.code != http.StatusForbidden || !strings.Contains(a.body, "You have no role at this desk") || !strings.Contains(a.body, "oidc:mara") || len(b.cookies) != 0 || !strings.Contains(a.body, `href="/login/oidc?other=1"`) {
				t.Errorf("%d %v %s", a.code, b.cookies, a.body)
			}
		})
	}
}

func TestOpenID_HighestRoleWins(t *testing.T) {
	t.Parallel()
	for role, groups := range map[string]any{"admin": []string{"docket-viewers", "cn=admins", "docket-operators"}, "auditor": []string{"docket-auditors", "docket-viewers"}, "viewer": "docket-viewers"} {
		s := newSigned(t)
		s.person(openidtest.Claims{"groups": groups})
		if a := s.sign(t).get(t, "/"); !strings.Contains(a.body, `<div class="dim">`+role+`</div>`) {
			t.Errorf("%v is not %s", groups, role)
		}
	}
}

// TestOpenID_EachRoleMayDoWhatItMay: a session of a provider has the rights of its role and no more.
func TestOpenID_EachRoleMayDoWhatItMay(t *testing.T) {
	t.Parallel()
	group := map[string]string{"viewer": "docket-viewers", "auditor": "docket-auditors", "operator": "docket-operators", "admin": "cn=admins"}
	for _, role := range roles {
		s := newSigned(t)
		s.person(openidtest.Claims{"groups": []string{group[role]}})
		for _, r := range routes(s.world) {
			want := r.fine
			if rank(role) < rank(r.role) {
				want = http.StatusForbidden
			}
			if a := s.sign(t).ask(t, r.method, r.path); a.code != want {
				t.Errorf("%s %s as %s: %d, want %d", r.method, r.path, role, a.code, want)
			}
		}
	}
}

func TestOpenID_TheTableIsComplete(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	if n := len(console.Patterns(s.console)) - console.PublicRoutes - console.OpenIDRoutes; n != len(routes(s.world)) {
		t.Errorf("%d routes need a login", n)
	}
	w := newWorld(t)
	for _, path := range []string{"/login/oidc", console.CallbackPath} {
		if a := w.as(t, "admin").get(t, path); a.code != http.StatusNotFound {
			t.Errorf("without a provider %s is %d", path, a.code)
		}
	}
}

// TestOpenID_CallbackOfAnother: the callback belongs to the browser that began.
func TestOpenID_CallbackOfAnother(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	attacker, victim := s.browser(), s.browser()
	back := s.provider.Log(t, attacker.depart(t, "/login/oidc"))
	if a := victim.arrive(t, back); a.code != http.StatusBadRequest || len(victim.cookies) != 0 || !strings.Contains(a.body, "not begun in this browser") {
		t.Errorf("a callback without a cookie: %d %v", a.code, victim.cookies)
	}
	victim.depart(t, "/login/oidc")
	if a := victim.arrive(t, back); a.code != http.StatusBadRequest || victim.cookies["__Host-docket"] != nil || victim.cookies["__Host-docket-login"] == nil {
		t.Fatalf("a callback of another login: %d %v", a.code, victim.cookies)
	}
	forged := *victim.cookies["__Host-docket-login"]
	forged.Value = forged.Value[:len(forged.Value)-4] + "AAAA"
	victim.cookies[forged.Name] = &forged
	if a := victim.arrive(t, back); a.code != http.StatusBadRequest {
		t.Errorf("a forged cookie: %d", a.code)
	}
	for _, query := range []string{"", "?state=", "?code=x", "?state=x&code=y", "?error=access_denied&error_description=planted-phishing&state="} {
		if a := victim.get(t, console.CallbackPath+query); a.code != http.StatusBadRequest || strings.Contains(a.body, "planted-phishing") {
			t.Errorf("%s: %d", query, a.code)
		}
	}
	if a := attacker.arrive(t, back); a.code != http.StatusOK {
		t.Errorf("the one who began: %d", a.code)
	}
}

func TestOpenID_CallbackOnce(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	s.provider.Set(func(p *openidtest.Provider) { p.Reuse = true })
	b := s.browser()
	back := s.provider.Log(t, b.depart(t, "/login/oidc"))
	flow := b.cookies["__Host-docket-login"]
	b.arrive(t, back)
	first := b.cookies["__Host-docket"]
	if a := b.arrive(t, back); a.code != http.StatusBadRequest {
		t.Errorf("a reload of the callback: %d", a.code)
	}
	b.cookies[flow.Name] = flow
	a := b.arrive(t, back)
	if a.code != http.StatusBadRequest || b.cookies["__Host-docket"].Value != first.Value || !b.in(t) {
		t.Errorf("a replay with the cookie: %d", a.code)
	}
}

func TestOpenID_LoginExpires(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	b := s.browser()
	back := s.provider.Log(t, b.depart(t, "/login/oidc"))
	s.clock.pass(10 * time.Minute)
	if a := b.arrive(t, back); a.code != http.StatusBadRequest || !strings.Contains(a.body, "longer than 10 minutes") {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestOpenID_MakesANewSession(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	b := s.as(t, "viewer")
	before := b.cookies["__Host-docket"]
	b.arrive(t, s.provider.Log(t, b.depart(t, "/login/oidc")))
	old := s.browser()
	old.cookies[before.Name] = before
	if b.cookies[before.Name].Value == before.Value || old.in(t) || !b.in(t) {
		t.Error("the session of before still works, or the login took it over")
	}
	planted := session.NewSecret()
	victim := s.browser()
	victim.cookies[before.Name] = &http.Cookie{Name: before.Name, Value: planted.Text(), SameSite: http.SameSiteStrictMode}
	victim.arrive(t, s.provider.Log(t, victim.depart(t, "/login/oidc")))
	if victim.cookies[before.Name].Value == planted.Text() || !victim.in(t) {
		t.Error("a login took over a planted cookie")
	}
}

func TestOpenID_NextIsLocal(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	for next, want := range map[string]string{"https://evil.example": "/", "//evil.example": "/", "/\\evil": "/", "/rates?x=é y": "/rates?x=%C3%A9%20y", "/" + strings.Repeat("x", 3000): "/", "/login": "/"} {
		b := s.browser()
		a := b.arrive(t, s.provider.Log(t, b.depart(t, "/login/oidc?"+url.Values{"next": {next}}.Encode())))
		if got := a.header.Get("Refresh"); got != "0; url="+want {
			t.Errorf("%.40q leads to %q", next, got)
		}
	}
}

// TestOpenID_ProviderRefuses: its words are text, and only for the login that waits.
func TestOpenID_ProviderRefuses(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	s.provider.Set(func(p *openidtest.Provider) {
		p.Refuse, p.Because = "access_denied", "<b>planted</b>\u202e"+strings.Repeat("é", 500)
	})
	b := s.browser()
	a := b.arrive(t, s.provider.Log(t, b.depart(t, "/login/oidc")))
	if a.code != http.StatusForbidden || !strings.Contains(a.body, "&lt;b&gt;planted&lt;/b&gt;⟨U+202E⟩é") || strings.Count(a.body, "é") > 160 || len(b.cookies) != 0 {
		t.Errorf("%d %s", a.code, a.body)
	}
	if !strings.Contains(s.log.String(), "access_denied") || strings.Contains(s.log.String(), "planted") {
		t.Error(s.log)
	}
}

// TestOpenID_ProviderAway: tokens work, and a provider that comes back is found.
func TestOpenID_ProviderAway(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	s.provider.Set(func(p *openidtest.Provider) { p.Status = http.StatusServiceUnavailable })
	b := s.browser()
	for range 5 {
		if a := b.get(t, "/login/oidc"); a.code != http.StatusServiceUnavailable || !strings.Contains(a.body, "Acme does not answer") || !strings.Contains(a.body, "A token of this desk still works") {
			t.Fatalf("%d %s", a.code, a.body)
		}
	}
	if !s.as(t, "viewer").in(t) {
		t.Error("a token does not work")
	}
	s.provider.Set(func(p *openidtest.Provider) { p.Status = 0 })
	s.clock.pass(3 * time.Second)
	back := s.provider.Log(t, b.depart(t, "/login/oidc"))
	s.provider.Set(func(p *openidtest.Provider) { p.Status = http.StatusBadGateway })
	if a := b.arrive(t, back); a.code != http.StatusServiceUnavailable || b.cookies["__Host-docket"] != nil {
		t.Errorf("away in between: %d", a.code)
	}
	if s.secrets(t); strings.Contains(s.log.String(), "planted") {
		t.Error("the log has the body of an answer")
	}
}

// TestOpenID_NameIsNoToken: the audit tells a person of the provider from a token of the same name.
func TestOpenID_NameIsNoToken(t *testing.T) {
	t.Parallel()
	if _, err := api.ParseTokens("oidc:mara:operator:planted-token-of-mara"); err == nil {
		t.Error("a token may have the name of a person of the provider")
	}
	s := newSigned(t)
	for _, name := range []any{"", nil, 7, "a\nb", "mara\u202e", strings.Repeat("x", 65), "<b>", "oidc:adam", []string{"mara"}} {
		s.person(openidtest.Claims{"preferred_username": name})
		b := s.browser()
		if a := b.arrive(t, s.provider.Log(t, b.depart(t, "/login/oidc"))); a.code != http.StatusForbidden || b.cookies["__Host-docket"] != nil || !strings.Contains(a.body, "no name that the audit can hold") {
			t.Errorf("%q: %d", name, a.code)
		}
	}
	s.person(openidtest.Claims{"preferred_username": "vera"})
	b, token := s.sign(t), s.as(t, "viewer")
	if token.post(t, "/logout-all", nil); !b.in(t) {
		t.Error("logging out a token logs out a person of the provider")
	}
}

func TestOpenID_StoreAway(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	b := s.browser()
	back := s.provider.Log(t, b.depart(t, "/login/oidc"))
	s.sessions.Fail(errors.New("away"))
	if a := b.arrive(t, back); a.code != http.StatusServiceUnavailable || b.cookies["__Host-docket"] != nil {
		t.Errorf("%d %v", a.code, b.cookies)
	}
}

func TestOpenID_Golden(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	b := s.browser()
	provider := regexp.MustCompile(regexp.QuoteMeta(s.provider.URL))
	back := s.provider.Log(t, b.depart(t, "/login/oidc"))
	golden(t, "openid-login", b.get(t, "/login").body)
	golden(t, "openid-done", b.arrive(t, back).body)
	golden(t, "openid-ended", provider.ReplaceAllString(b.get(t, "/login?ended=oidc").body, "PROVIDER"))
	s.person(openidtest.Claims{"groups": nil})
	golden(t, "openid-norole", b.arrive(t, s.provider.Log(t, b.depart(t, "/login/oidc?next=/rates"))).body)
	golden(t, "openid-expired", b.get(t, console.CallbackPath+"?state=x").body)
}

func TestSession_ReadOnlyStoreStillReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "viewer")
	w.sessions.FailWrites(errors.New("read-only"))
	for range 5 {
		if w.clock.pass(5 * time.Minute); !b.in(t) {
			t.Fatal("a read needs a write")
		}
	}
	if n := strings.Count(w.log.String(), "console session use not noted"); n != 5 {
		t.Errorf("%d lines about it", n)
	}
	b.in(t)
	if n := strings.Count(w.log.String(), "console session use not noted"); n != 5 {
		t.Errorf("%d lines within a minute", n)
	}
	if w.clock.pass(6 * time.Minute); b.in(t) {
		t.Error("an idle session works")
	}
}

func TestLogin_ProxyGetsTheSecureCookie(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*http.Request){
		"forwarded":     func(r *http.Request) { r.Header.Set("X-Forwarded-For", "10.0.0.9") },
		"proto":         func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") },
		"standard":      func(r *http.Request) { r.Header.Set("Forwarded", "for=10.0.0.9") },
		"via":           func(r *http.Request) { r.Header.Set("Via", "1.1 proxy") },
		"real ip":       func(r *http.Request) { r.Header.Set("X-Real-IP", "10.0.0.9") },
		"old protocol":  func(r *http.Request) { r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.0", 1, 0 },
		"other machine": func(r *http.Request) { r.RemoteAddr = "10.0.0.9:1" },
	} {
		w := newWorld(t, func(c *console.Config, _ *api.Config, _ *api.Ports) { c.Plain = true })
		b := w.browser()
		b.post(t, "/login", url.Values{"token": {tokenOf("viewer")}}, func(r *http.Request) {
			r.Host, r.TLS, r.RemoteAddr = "127.0.0.1:8083", nil, "127.0.0.1:4711"
			change(r)
		})
		if c := b.cookies["__Host-docket"]; c == nil || !c.Secure {
			t.Errorf("%s: %v", name, b.cookies)
		}
	}
}
