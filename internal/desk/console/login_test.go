package console_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/desk/console/session"
)

func (b *browser) in(t *testing.T) bool {
	t.Helper()
	return b.get(t, "/decisions").code == http.StatusOK
}

func TestLogin_CookieIsStrict(t *testing.T) {
	t.Parallel()
	b := newWorld(t).as(t, "viewer")
	c := b.cookies["__Host-docket"]
	if c == nil || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || len(c.Value) != 43 {
		t.Fatalf("the cookie is %v", c)
	}
	if strings.Contains(b.w.log.String(), c.Value) || strings.Contains(b.w.log.String(), tokenOf("viewer")) {
		t.Error("the log has a secret")
	}
}

func TestLogin_PlainCookieOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{"localhost:8083": "docket", "127.0.0.1:8083": "docket", "[::1]:8083": "docket", "desk.example": "__Host-docket", "127.0.0.1.evil.example": "__Host-docket", "10.0.0.1:8083": "__Host-docket"} {
		w := newWorld(t, func(c *console.Config, _ *api.Config, _ *api.Ports) { c.Plain = true })
		b := w.browser()
		b.post(t, "/login", url.Values{"token": {tokenOf("viewer")}}, func(r *http.Request) { r.Host, r.TLS, r.RemoteAddr = host, nil, "127.0.0.1:4711" })
		if b.cookies[want] == nil || b.cookies[want].Secure != (want != "docket") {
			t.Errorf("%s: %v", host, b.cookies)
		}
	}
	w := newWorld(t)
	b := w.browser()
	b.post(t, "/login", url.Values{"token": {tokenOf("viewer")}}, func(r *http.Request) { r.Host, r.TLS = "localhost", nil })
	if b.cookies["__Host-docket"] == nil {
		t.Errorf("a listener with TLS gave %v", b.cookies)
	}
}

func TestLogin_WrongTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, token := range []string{"", "x", tokenOf("viewer") + "x", "Bearer " + tokenOf("viewer"), strings.Repeat("x", 60<<10), "\x00\n"} {
		b := w.browser()
		a := b.post(t, "/login", url.Values{"token": {token}, "next": {"/rates"}})
		if a.code != http.StatusUnauthorized && a.code != http.StatusTooManyRequests || len(b.cookies) > 0 || !strings.Contains(a.body, `value="/rates"`) {
			t.Errorf("%.30q: %d", token, a.code)
		}
		if token != "" && len(token) > 5 && strings.Contains(a.body, token) {
			t.Error("the page repeats a token")
		}
	}
	for range 12 {
		w.browser().post(t, "/login", url.Values{"token": {"guess"}})
	}
	if a := w.browser().post(t, "/login", url.Values{"token": {"guess"}}); a.code != http.StatusTooManyRequests || !strings.Contains(a.body, "Too many logins") {
		t.Errorf("guessing goes on: %d", a.code)
	}
}

func TestLogin_LeadsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	a := b.get(t, "/decisions?verdict=denied&since=2h")
	to := a.header.Get("Location")
	if to != "/login?next=%2Fdecisions%3Fverdict%3Ddenied%26since%3D2h" {
		t.Fatal(to)
	}
	if a := b.get(t, to); !strings.Contains(a.body, `value="/decisions?verdict=denied&amp;since=2h"`) {
		t.Error(a.body)
	}
	if a := b.post(t, "/login", url.Values{"token": {tokenOf("viewer")}, "next": {"/decisions?verdict=denied&since=2h"}}); a.header.Get("Location") != "/decisions?verdict=denied&since=2h" {
		t.Error(a.header)
	}
}

func TestLogin_NextIsLocal(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "javascript:alert(1)", "evil", "", "/%", "//", "/login", "http:/evil", "/.//evil\\x", " //evil.example", "/x\\..\\\\evil"} {
		if got := console.LocalPath(next); got != "/" {
			t.Errorf("%q leads to %q", next, got)
		}
		b := newWorld(t).browser()
		if a := b.post(t, "/login", url.Values{"token": {tokenOf("viewer")}, "next": {next}}); a.header.Get("Location") != "/" {
			t.Errorf("%q leads to %q", next, a.header.Get("Location"))
		}
	}
	if got := console.LocalPath("/decisions/a%2Fb?x=1"); got != "/decisions/a%2Fb?x=1" {
		t.Error(got)
	}
}

func FuzzLocalPath(f *testing.F) {
	for _, seed := range []string{"/decisions?q=1", "//x", "/\\x", "https://x", "/a/../..//x", "/%2f/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := console.LocalPath(text)
		here, _ := url.Parse("https://desk.example/login")
		to, err := here.Parse(got)
		if err != nil || to.Host != "desk.example" || to.Scheme != "https" || !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\t\r\n") {
			t.Fatalf("%q leads to %q", text, got)
		}
	})
}

func TestLogin_MakesANewSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	victim := w.browser()
	planted := session.NewSecret()
	victim.cookies["__Host-docket"] = &http.Cookie{Name: "__Host-docket", Value: planted.Text()}
	victim.post(t, "/login", url.Values{"token": {tokenOf("admin")}})
	if victim.cookies["__Host-docket"].Value == planted.Text() || !victim.in(t) {
		t.Fatal("a login took over a planted cookie")
	}
	before := victim.cookies["__Host-docket"]
	victim.post(t, "/login", url.Values{"token": {tokenOf("viewer")}})
	old := w.browser()
	old.cookies[before.Name] = before
	if victim.cookies[before.Name].Value == before.Value || old.in(t) {
		t.Error("the session of before still works")
	}
}

func TestSession_EndsWhenIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "viewer")
	for range 5 {
		w.clock.pass(25 * time.Minute)
		if !b.in(t) {
			t.Fatal("a session in use ended")
		}
	}
	refresh := func(r *http.Request) { r.Header.Set("HX-Request", "true") }
	w.clock.pass(25 * time.Minute)
	if a := b.get(t, "/", refresh); a.code != http.StatusOK {
		t.Fatal(a.code)
	}
	w.clock.pass(6 * time.Minute)
	a := b.get(t, "/", refresh)
	if a.code != http.StatusUnauthorized || !strings.HasPrefix(a.header.Get("HX-Redirect"), "/login") {
		t.Errorf("refreshes keep a session alive: %d %v", a.code, a.header)
	}
	if b.in(t) {
		t.Error("an idle session works")
	}
}

func TestSession_EndsAfter12Hours(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "viewer")
	for range 47 {
		w.clock.pass(15 * time.Minute)
		if !b.in(t) {
			t.Fatal("a session in use ended early")
		}
	}
	if w.clock.pass(15 * time.Minute); b.in(t) {
		t.Error("a session lasts more than 12 hours")
	}
}

func (w *world) admit(t *testing.T, tokens string) {
	t.Helper()
	all, err := api.ParseTokens(tokens)
	if err == nil {
		err = w.api.Admit(api.Auth{Tokens: all})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSession_DiesWithItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, other := w.as(t, "operator"), w.as(t, "viewer")
	kept := b.cookies["__Host-docket"]
	w.admit(t, "olga:operator:another-token-of-olga vera:viewer:planted-token-of-viewer")
	if b.in(t) || !other.in(t) {
		t.Error("a session outlives its token, or another one died")
	}
	w.admit(t, everybody)
	if b.cookies[kept.Name] = kept; b.in(t) {
		t.Error("a session revives with its token")
	}
}

func TestSession_FollowsTheRoleOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "admin")
	w.admit(t, strings.Replace(everybody, "adam:admin:", "adam:viewer:", 1))
	if a := b.get(t, "/compare"); a.code != http.StatusForbidden {
		t.Errorf("the role of the login holds: %d", a.code)
	}
	w.admit(t, strings.Replace(everybody, "adam:admin:", "eve:admin:", 1))
	if b.in(t) {
		t.Error("a session follows its token to another name")
	}
}

func TestSession_DiesAsItsTokenExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit(t, everybody+" tim:viewer:planted-token-of-tim-x:until=2026-03-01T12:10:00Z")
	b := w.browser()
	b.post(t, "/login", url.Values{"token": {"planted-token-of-tim-x"}})
	if !b.in(t) {
		t.Fatal("it did not begin")
	}
	if w.clock.pass(11 * time.Minute); b.in(t) {
		t.Error("it outlives its token")
	}
}

func TestLogout_EndsSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two, other := w.as(t, "viewer"), w.as(t, "viewer"), w.as(t, "admin")
	kept := one.cookies["__Host-docket"]
	if a := one.post(t, "/logout", nil); a.code != http.StatusSeeOther || len(one.cookies) != 0 {
		t.Fatalf("%d %v", a.code, one.cookies)
	}
	if one.cookies[kept.Name] = kept; one.in(t) || !two.in(t) {
		t.Error("the session lives on, or another ended")
	}
	three := w.as(t, "viewer")
	three.post(t, "/logout-all", nil)
	if two.in(t) || !other.in(t) {
		t.Error("a session lives on, or that of another person ended")
	}
}

func TestSession_StoreAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "viewer")
	w.sessions.Fail(errors.New("away"))
	if a := b.get(t, "/decisions"); a.code != http.StatusServiceUnavailable || !strings.Contains(a.body, "You stay logged in") || len(b.cookies) != 1 {
		t.Errorf("%d", a.code)
	}
	if a := w.browser().post(t, "/login", url.Values{"token": {tokenOf("viewer")}}); a.code != http.StatusServiceUnavailable {
		t.Errorf("a login without a store: %d", a.code)
	}
	w.sessions.Fail(nil)
	if !b.in(t) {
		t.Error("the session was lost")
	}
}

func TestCertificate_NeedsNoLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.api.Admit(api.Auth{Clients: []api.Client{{Name: "Carla Cert", Role: api.Operator}}}); err != nil {
		t.Fatal(err)
	}
	with := func(name string, verified bool) func(*http.Request) {
		return func(r *http.Request) { r.TLS = certified(name, verified) }
	}
	b := w.browser()
	a := b.get(t, "/", with("Carla Cert", true))
	if a.code != http.StatusOK || !strings.Contains(a.body, "by certificate") || len(b.cookies) != 0 {
		t.Errorf("%d", a.code)
	}
	for _, change := range []func(*http.Request){with("Carla Cert", false), with("Other", true)} {
		if a := b.get(t, "/", change); a.code != http.StatusSeeOther {
			t.Errorf("%d", a.code)
		}
	}
	group := "/dead-letters/groups/" + w.book.letters[0].Fingerprint
	a = b.post(t, group+"/dry-run", nil, with("Carla Cert", true))
	sealed := sealedIn(t, a.body)
	if a := b.post(t, group+"/retry", url.Values{"dry_run": {sealed}, "reason": {"r"}}, with("Carla Cert", true)); a.code != http.StatusSeeOther {
		t.Errorf("a retry by certificate: %d %s", a.code, a.body)
	}
}
