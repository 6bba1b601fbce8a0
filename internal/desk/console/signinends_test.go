package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/console"
	"docket/internal/desk/console/openid"
	"docket/internal/desk/console/session"
	"docket/internal/testkit/openidtest"
)

func TestOpenID_SessionDiesWithItsGroup(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	b := s.sign(t)
	kept := b.cookies["__Host-docket"]
	s.rebuild(t, s.openID(t, s.provider, "docket-operators:viewer"))
	if a := b.get(t, "/compare"); a.code != http.StatusForbidden {
		t.Errorf("the role of the login holds: %d", a.code)
	}
	s.rebuild(t, s.openID(t, s.provider, "docket-viewers:viewer"))
	if b.in(t) {
		t.Error("a session outlives the role of its group")
	}
	s.rebuild(t, s.openID(t, s.provider, groups...))
	if b.cookies[kept.Name] = kept; b.in(t) {
		t.Error("a session revives with its group")
	}
	b = s.sign(t)
	s.rebuild(t, nil)
	if b.in(t) {
		t.Error("a session outlives the provider")
	}
}

// TestOpenID_TableAloneMakesNoSession: a row needs a key that the table does not have.
func TestOpenID_TableAloneMakesNoSession(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	other := s.openID(t, s.provider, groups...)
	other.Provider.ClientID = "another"
	for name, forge := range map[string]func(session.Secret) ([]byte, string){
		"plain": func(session.Secret) ([]byte, string) { return []byte(`["cn=admins"]`), "oidc:eve" },
		"other client": func(x session.Secret) ([]byte, string) {
			b, _ := other.Provider.Bind(x[:], "oidc:eve", []string{"cn=admins"})
			return b, "oidc:eve"
		},
		"other name": func(x session.Secret) ([]byte, string) {
			b, _ := s.openIDOf(t).Bind(x[:], "oidc:mara", []string{"cn=admins"})
			return b, "oidc:eve"
		},
		"other cookie": func(session.Secret) ([]byte, string) {
			x := session.NewSecret()
			b, _ := s.openIDOf(t).Bind(x[:], "oidc:eve", []string{"cn=admins"})
			return b, "oidc:eve"
		},
	} {
		secret := session.NewSecret()
		credential, who := forge(secret)
		if err := s.sessions.Create(t.Context(), session.Begin(secret, who, "admin", session.OpenID, credential, s.clock.Now())); err != nil {
			t.Fatal(err)
		}
		b := s.browser()
		b.cookies["__Host-docket"] = &http.Cookie{Name: "__Host-docket", Value: secret.Text()}
		if b.in(t) {
			t.Errorf("%s: a row made a session", name)
		}
	}
}

func (s *signed) openIDOf(t testing.TB) *openid.Provider {
	t.Helper()
	return s.openID(t, s.provider, groups...).Provider
}

func TestOpenID_AnyDeskWithTheSecret(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	b := s.browser()
	back := s.provider.Log(t, b.depart(t, "/login/oidc"))
	s.rebuild(t, s.openID(t, s.provider, groups...))
	if a := b.arrive(t, back); a.code != http.StatusOK || !b.in(t) {
		t.Errorf("another desk does not know the login: %d", a.code)
	}
	s.rebuild(t, s.openID(t, s.provider, groups...))
	if !b.in(t) {
		t.Error("another desk does not know the session")
	}
}

func TestOpenID_SessionLastsAsSet(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	b := s.sign(t)
	for range 15 {
		if s.clock.pass(16 * time.Minute); !b.in(t) && s.clock.Now().Before(noon.Add(4*time.Hour)) {
			t.Fatal("a session in use ended early")
		}
	}
	if b.in(t) {
		t.Error("a session lasts more than 4 hours")
	}
}

func TestOpenID_Logout(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	one, two, token := s.sign(t), s.sign(t), s.as(t, "admin")
	a := one.post(t, "/logout", nil)
	if to := a.header.Get("Location"); to != "/login?ended=oidc" || one.in(t) || !two.in(t) {
		t.Fatal(to)
	}
	if a := one.get(t, "/login?ended=oidc"); !strings.Contains(a.body, `href="`+s.provider.URL+`/logout?client_id=docket"`) {
		t.Error(a.body)
	}
	two.post(t, "/logout-all", nil)
	if two.in(t) || !token.in(t) {
		t.Error("a session lives on, or that of another person ended")
	}
	if a := token.post(t, "/logout", nil); a.header.Get("Location") != "/login?ended" {
		t.Error(a.header)
	}
}

func TestOpenID_BackChannelEndsSessions(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	one := s.sign(t)
	s.person(openidtest.Claims{"sid": "p-2"})
	two := s.sign(t)
	s.person(openidtest.Claims{"sub": "subject-2", "sid": "p-3", "preferred_username": "other"})
	other := s.sign(t)
	tell := func(token string) answer {
		return s.browser().post(t, "/logout/back-channel", url.Values{"logout_token": {token}}, func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") })
	}
	idToken := s.provider.Said()[1]
	for name, token := range map[string]string{
		"none": "", "junk": "a.b.c", "an ID token": idToken, "old": s.provider.Logout(func(c openidtest.Claims) { c["iat"] = noon.Add(-6 * time.Minute).Unix() }),
		"expired": s.provider.Logout(func(c openidtest.Claims) { c["exp"] = noon.Add(-2 * time.Minute).Unix() }), "of another client": s.provider.Logout(func(c openidtest.Claims) { c["aud"] = "x" }),
		"no event": s.provider.Logout(func(c openidtest.Claims) { delete(c, "events") }), "with a nonce": s.provider.Logout(func(c openidtest.Claims) { c["nonce"] = "x" }),
		"unsigned": openidtest.Unsigned(openidtest.Claims{"iss": s.provider.URL, "aud": "docket", "sub": "subject-1", "jti": "1", "exp": noon.Add(time.Hour).Unix(), "iat": noon.Unix(), "events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}}),
		"forged":   openidtest.NewKey(t, "k1").Token(openidtest.Claims{"iss": s.provider.URL, "aud": "docket", "sub": "subject-1", "jti": "1", "exp": noon.Add(time.Hour).Unix(), "iat": noon.Unix(), "events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}}),
	} {
		if a := tell(token); a.code != http.StatusBadRequest || !one.in(t) || !two.in(t) {
			t.Fatalf("%s: %d, or it ended a session", name, a.code)
		}
	}
	if a := tell(s.provider.Logout(func(c openidtest.Claims) { c["sub"], c["sid"] = "subject-1", "p-1" })); a.code != http.StatusOK || a.body != "" || one.in(t) || !two.in(t) {
		t.Errorf("by session: %d %q", a.code, a.body)
	}
	if a := tell(s.provider.Logout(func(c openidtest.Claims) { c["sub"] = "subject-1"; delete(c, "sid") })); a.code != http.StatusOK || two.in(t) || !other.in(t) {
		t.Errorf("by subject: %d", a.code)
	}
	s.secrets(t)
}

// TestOpenID_BackChannelDuringLogin: a logout that overtakes the login it ends is not lost.
func TestOpenID_BackChannelDuringLogin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(openidtest.Claims)
		in     bool
	}{
		"its session":       {func(c openidtest.Claims) { c["sub"], c["sid"] = "subject-1", "p-1" }, false},
		"all of the person": {func(c openidtest.Claims) { c["sub"] = "subject-1"; delete(c, "sid") }, false},
		"another session":   {func(c openidtest.Claims) { c["sub"], c["sid"] = "subject-1", "p-9" }, true},
		"another person":    {func(c openidtest.Claims) { c["sub"] = "subject-9"; delete(c, "sid") }, true},
		"all, but before it began": {func(c openidtest.Claims) {
			c["sub"], c["iat"] = "subject-1", noon.Add(-time.Minute).Unix()
			delete(c, "sid")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSigned(t)
			b := s.browser()
			back := s.provider.Log(t, b.depart(t, "/login/oidc"))
			if a := s.browser().post(t, "/logout/back-channel", url.Values{"logout_token": {s.provider.Logout(c.change)}}); a.code != http.StatusOK {
				t.Fatalf("%d %s", a.code, a.body)
			}
			a := b.arrive(t, back)
			if b.in(t) != c.in || !c.in && (a.code != http.StatusForbidden || !strings.Contains(a.body, "ended")) {
				t.Errorf("%d %s", a.code, a.body)
			}
			s.clock.pass(20 * time.Minute)
			if again := s.sign(t); !again.in(t) {
				t.Error("the logout holds for ever")
			}
		})
	}
}

// TestOpenID_BackChannelBusyOrAway: the provider is to send such a logout again.
func TestOpenID_BackChannelBusyOrAway(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	one := s.sign(t)
	token := s.provider.Logout(func(c openidtest.Claims) { c["sub"], c["sid"] = "subject-1", "p-1" })
	s.provider.Set(func(p *openidtest.Provider) { p.Status = http.StatusServiceUnavailable })
	s.rebuild(t, s.openID(t, s.provider, groups...)) // it does not know the provider yet
	a := s.browser().post(t, "/logout/back-channel", url.Values{"logout_token": {token}})
	if a.code != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || !one.in(t) {
		t.Errorf("away: %d %v", a.code, a.header)
	}
	s.provider.Set(func(p *openidtest.Provider) { p.Status = 0 })
	s.clock.pass(3 * time.Second)
	if a := s.browser().post(t, "/logout/back-channel", url.Values{"logout_token": {token}}); a.code != http.StatusOK || one.in(t) {
		t.Errorf("once more: %d", a.code)
	}
}

// TestOpenID_BackChannelKeysAway: a logout with a new key cannot be judged without the provider's keys.
func TestOpenID_BackChannelKeysAway(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	one := s.sign(t)
	s.provider.Rotate(openidtest.NewKey(t, "k2"))
	token := s.provider.Logout(func(c openidtest.Claims) { c["sub"], c["sid"] = "subject-1", "p-1" })
	for status, want := range map[int]int{http.StatusServiceUnavailable: http.StatusServiceUnavailable, http.StatusNotFound: http.StatusBadRequest} {
		s.provider.Set(func(p *openidtest.Provider) { p.Status = status })
		if a := s.browser().post(t, "/logout/back-channel", url.Values{"logout_token": {token}}); a.code != want || !one.in(t) {
			t.Errorf("keys answer with %d: %d", status, a.code)
		}
	}
	s.provider.Set(func(p *openidtest.Provider) { p.Status = 0 })
	if a := s.browser().post(t, "/logout/back-channel", url.Values{"logout_token": {token}}); a.code != http.StatusOK || one.in(t) {
		t.Errorf("once more: %d", a.code)
	}
	if a := s.browser().post(t, "/logout/back-channel", url.Values{"logout_token": {"a.b.c"}}); a.code != http.StatusBadRequest {
		t.Errorf("junk: %d", a.code)
	}
}

// TestOpenID_BackChannelAsksNoStreams: anybody can send a logout. Only one that ends a session has streams ask.
func TestOpenID_BackChannelAsksNoStreams(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	s.sign(t)
	asked := console.Rechecks(s.console)
	send := func(token string) {
		s.browser().post(t, "/logout/back-channel", url.Values{"logout_token": {token}})
	}
	send("a.b.c")
	send(s.provider.Logout(func(c openidtest.Claims) { c["sub"], c["sid"] = "nobody", "none" }))
	if asked() {
		t.Error("a logout that ends no session has streams ask for theirs")
	}
	send(s.provider.Logout(func(c openidtest.Claims) { c["sub"], c["sid"] = "subject-1", "p-1" }))
	if !asked() {
		t.Error("streams do not ask for their session")
	}
}

// TestOpenID_BackChannelAtAnotherDesk: desks with one database know each other's logouts, also one that overtakes its login.
func TestOpenID_BackChannelAtAnotherDesk(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	late := s.browser()
	back := s.provider.Log(t, late.depart(t, "/login/oidc"))
	early := s.sign(t)
	s.rebuild(t, s.openID(t, s.provider, groups...))
	token := s.provider.Logout(func(c openidtest.Claims) { c["sub"], c["sid"] = "subject-1", "p-1" })
	if a := s.browser().post(t, "/logout/back-channel", url.Values{"logout_token": {token}}); a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.body)
	}
	s.rebuild(t, s.openID(t, s.provider, groups...))
	if early.in(t) {
		t.Error("a session lives on at another desk")
	}
	if a := late.arrive(t, back); late.in(t) || a.code != http.StatusForbidden {
		t.Errorf("another desk does not know the logout that the login came too late for: %d %s", a.code, a.body)
	}
}
