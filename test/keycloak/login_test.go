//go:build integration

package keycloak

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestKeycloak runs all cases against one Keycloak, which takes half a minute to start.
func TestKeycloak(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for name, run := range map[string]func(*testing.T, *server){
		"LogsIn": logsIn, "NoRole": noRole, "Disabled": disabled, "ConsentRefused": consentRefused, "PublicClient": publicClient, "WrongSecret": wrongSecret,
		"KeyRotation": keyRotation, "Logout": logout, "LogoutByAdmin": logoutByAdmin, "Restart": restart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, s)
		})
	}
}

func logsIn(t *testing.T, s *server) {
	o := s.open(t)
	b := o.browser(t)
	a := b.submit(b.form("/dead-letters?state=PENDING"), map[string]string{"username": "mara", "password": "wrong"})
	if a.url.Host == o.front.Listener.Addr().String() || !strings.Contains(a.body, "Invalid username or password") {
		t.Fatalf("a wrong password: %s\n%s", a.url, a.body)
	}
	a = b.submit(a, map[string]string{"username": "mara", "password": "password-of-mara"})
	if a.status != http.StatusOK || a.url.RequestURI() != "/dead-letters?state=PENDING" || !strings.Contains(a.body, "<div>oidc:mara</div><div class=\"dim\">operator</div>") {
		t.Fatalf("%d at %s\n%s\n%s", a.status, a.url, a.body, o.log.String())
	}
	c := b.session()
	if c == nil || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %v", c)
	}
	if a := o.browser(t).log("vera"); !strings.Contains(a.body, "<div>oidc:vera</div><div class=\"dim\">viewer</div>") {
		t.Errorf("vera: %d %s", a.status, a.body)
	}
	// The way back, once more: by the same browser, and by another with the same cookie.
	for _, asked := range b.asked {
		if u, _ := url.Parse(asked); u.Path == "/login/callback" {
			if a := b.get(asked); a.status != http.StatusBadRequest {
				t.Errorf("a second callback: %d", a.status)
			}
			if code := u.Query().Get("code"); code == "" || strings.Contains(o.log.String(), code) {
				t.Error("the log has the code, or there was none")
			}
		}
	}
	if strings.Contains(o.log.String(), secret) || !b.in() {
		t.Error("the log has the secret, or the session ended")
	}
}

func noRole(t *testing.T, s *server) {
	b := s.open(t).browser(t)
	a := b.log("nora")
	if a.status != http.StatusForbidden || !strings.Contains(a.body, "You have no role at this desk") || !strings.Contains(a.body, "oidc:nora") || b.session() != nil {
		t.Fatalf("%d at %s\n%s", a.status, a.url, a.body)
	}
	if a := b.follow(a, "Log in as somebody else"); a.status != http.StatusOK || !strings.Contains(a.body, `name="password"`) {
		t.Errorf("Keycloak does not ask again: %d at %s\n%s", a.status, a.url, a.body)
	}
}

func disabled(t *testing.T, s *server) {
	b := s.open(t).browser(t)
	if a := b.log("dora"); !strings.Contains(a.body, "Account is disabled") || b.session() != nil {
		t.Errorf("%d at %s\n%s", a.status, a.url, a.body)
	}
}

func consentRefused(t *testing.T, s *server) {
	o := s.open(t, func(_ *office, c map[string]any) { c["consentRequired"] = true })
	b := o.browser(t)
	a := b.submit(b.log("mara"), map[string]string{"cancel": "No"})
	if a.status != http.StatusForbidden || !strings.Contains(a.body, "Keycloak did not log you in") || !strings.Contains(o.log.String(), "access_denied") || b.session() != nil {
		t.Errorf("%d at %s\n%s", a.status, a.url, a.body)
	}
}

func publicClient(t *testing.T, s *server) {
	o := s.open(t, func(o *office, c map[string]any) {
		o.public, c["publicClient"] = true, true
		delete(c, "secret")
	})
	b := o.browser(t)
	if a := b.log("mara"); a.status != http.StatusOK || !b.in() {
		t.Fatalf("%d at %s\n%s", a.status, a.url, a.body)
	}
	o.stop()
	o.start(t)
	if b.in() {
		t.Error("the session of a public client outlives the desk")
	}
}

func wrongSecret(t *testing.T, s *server) {
	o := s.open(t, func(_ *office, c map[string]any) { c["secret"] = "another" })
	b := o.browser(t)
	a := b.log("mara")
	if a.status != http.StatusForbidden || b.session() != nil || !strings.Contains(o.log.String(), "status 401, unauthorized_client") || strings.Contains(o.log.String(), secret) {
		t.Errorf("%d at %s\n%s\n%s", a.status, a.url, a.body, o.log.String())
	}
}

// keyRotation gives Keycloak a new key, which it prefers from then on.
func keyRotation(t *testing.T, s *server) {
	o := s.open(t)
	if a := o.browser(t).log("mara"); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.admin(t, http.MethodPost, "/admin/realms/docket/components", map[string]any{"name": "rotated", "providerId": "rsa-generated", "providerType": "org.keycloak.keys.KeyProvider",
		"config": map[string][]string{"priority": {"200"}, "enabled": {"true"}, "active": {"true"}, "algorithm": {"RS256"}, "keySize": {"2048"}}}, nil)
	b := o.browser(t)
	if a := b.log("mara"); a.status != http.StatusOK || !b.in() {
		t.Errorf("after the rotation: %d at %s\n%s\n%s", a.status, a.url, a.body, o.log.String())
	}
}

// logout ends the session here, and then at Keycloak, which tells the desk about the other browser's session of that login.
func logout(t *testing.T, s *server) {
	o := s.open(t)
	b := o.browser(t)
	b.log("otto")
	a := b.visit(http.MethodPost, "/logout", nil, nil)
	if a.url.RequestURI() != "/login?ended=oidc" || b.session() != nil || b.in() {
		t.Fatalf("%d at %s\n%s", a.status, a.url, a.body)
	}
	if a := b.form("/dead-letters"); a.url.Path != "/dead-letters" { // Keycloak still knows the person
		t.Fatalf("%d at %s\n%s", a.status, a.url, a.body)
	}
	again := *b.session()
	if a = b.get("/login?ended=oidc"); a.status != http.StatusOK {
		t.Fatal(a.status)
	}
	a = b.follow(a, "Log out of Keycloak too")
	a = b.submit(a, map[string]string{"confirmLogout": "Logout"})
	if !strings.Contains(a.body, "You are logged out") {
		t.Fatalf("%d at %s\n%s", a.status, a.url, a.body)
	}
	eventually(t, 30*time.Second, "the desk is told", func() bool {
		return strings.Contains(o.log.String(), `"sessions":1,"message":"console sessions ended by provider"`)
	})
	if b.cookies[strings.TrimPrefix(o.front.URL, "https://")]["__Host-docket"] = &again; b.in() {
		t.Error("the session outlives the logout at Keycloak")
	}
	if a := b.form("/dead-letters"); !strings.Contains(a.body, `name="password"`) {
		t.Errorf("Keycloak logs in without a password: %s\n%s", a.url, a.body)
	}
}

// logoutByAdmin revokes somebody's sessions at Keycloak.
func logoutByAdmin(t *testing.T, s *server) {
	o := s.open(t)
	one, two := o.browser(t), o.browser(t)
	one.log("ida")
	two.log("ida")
	if !one.in() || !two.in() {
		t.Fatal("the logins failed")
	}
	ida := s.idOf(t, "/admin/realms/docket/users?exact=true&username=ida")
	s.admin(t, http.MethodPost, "/admin/realms/docket/users/"+ida+"/logout", nil, nil)
	eventually(t, 30*time.Second, "both sessions end", func() bool { return !one.in() && !two.in() })
}

func restart(t *testing.T, s *server) {
	o := s.open(t)
	b := o.browser(t)
	b.log("mara")
	o.stop()
	o.start(t)
	if !b.in() {
		t.Error("the session ended with the desk")
	}
}
