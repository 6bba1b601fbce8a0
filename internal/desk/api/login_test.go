package api_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/api"
)

func from(remote string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = remote } }

func bearing(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", value) }
}

func TestLogin_WholeTokenOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := "Bearer " + tokenOf("viewer")
	for i, value := range []string{"", "Bearer", "Bearer ", "Bearer  " + tokenOf("viewer"), good + " ", good + "x", good[:len(good)-1], tokenOf("viewer"),
		"Basic " + tokenOf("viewer"), "Bearer " + strings.Repeat("a", 600), "Bearer " + strings.ToUpper(tokenOf("viewer"))} {
		a := w.ask(t, "", "GET", "/whoami", "", bearing(value), from(fmt.Sprintf("10.0.0.%d:1", i)))
		if a.code != http.StatusUnauthorized {
			t.Errorf("%q gave %d", value, a.code)
		}
	}
	two := func(r *http.Request) { r.Header["Authorization"] = []string{good, good} }
	if a := w.ask(t, "", "GET", "/whoami", "", two); a.code != http.StatusUnauthorized {
		t.Error("two headers gave", a.code)
	}
	a := w.ask(t, "", "GET", "/whoami", "", bearing("bearer "+tokenOf("viewer")))
	var me api.Me
	a.into(t, &me)
	if me.Name != "vera" || me.Role != "viewer" || me.By != "token" {
		t.Errorf("%+v", me)
	}
}

func TestLogin_NobodyWithoutSettings(t *testing.T) {
	t.Parallel()
	h, err := api.New(api.Config{Lease: time.Minute}, api.Ports{Book: newBook(1)}, api.Auth{}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{handler: h}
	for _, value := range []string{"", "Bearer ", "Bearer 0123456789abcdef", "Bearer " + tokenOf("admin")} {
		if a := w.ask(t, "", "GET", "/whoami", "", bearing(value)); a.code != http.StatusUnauthorized {
			t.Errorf("%q gave %d", value, a.code)
		}
	}
}

func TestAuth_OneRoleForAName(t *testing.T) {
	t.Parallel()
	tokens, err := api.ParseTokens(everybody)
	if err != nil {
		t.Fatal(err)
	}
	auth := api.Auth{Tokens: tokens, Clients: []api.Client{{Name: "vera", Role: api.Admin}}}
	if _, err := api.New(api.Config{Lease: time.Minute}, api.Ports{Book: newBook(1)}, auth, zerolog.Nop()); err == nil {
		t.Error("vera is a viewer by token and an admin by certificate")
	}
}

func TestLogin_FailuresAreThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const wrong = "Bearer wrong-guess-of-a-token"
	// olga logged in before the guessing began.
	if a := w.ask(t, "operator", "GET", "/whoami", "", from("192.0.2.7:1")); a.code != http.StatusOK {
		t.Fatal(a)
	}
	refused := map[int]int{}
	for i := range 100 {
		a := w.ask(t, "", "GET", "/whoami", "", bearing(wrong), from(fmt.Sprintf("192.0.2.7:%d", 1000+i)))
		refused[a.code]++
		if a.code == http.StatusTooManyRequests && a.header.Get("Retry-After") == "" {
			t.Fatal("it is not said when to come again")
		}
	}
	if refused[401] != 10 || refused[429] != 90 {
		t.Errorf("100 guesses at once gave %v", refused)
	}
	if a := w.ask(t, "admin", "GET", "/whoami", "", from("192.0.2.7:1")); a.code != http.StatusTooManyRequests {
		t.Error("whoever guesses right from there is not slowed down:", a.code)
	}
	if a := w.ask(t, "operator", "GET", "/whoami", "", from("192.0.2.7:2")); a.code != http.StatusOK {
		t.Error("olga is locked out by another's guesses:", a.code)
	}
	if a := w.ask(t, "admin", "GET", "/whoami", "", from("192.0.2.8:1")); a.code != http.StatusOK {
		t.Error("another address is slowed down:", a.code)
	}
	w.now = w.now.Add(3 * time.Second)
	if a := w.ask(t, "admin", "GET", "/whoami", "", from("192.0.2.7:1")); a.code != http.StatusOK {
		t.Error("it does not end:", a.code)
	}
	if n := w.count(t, "docket_desk_api_failed_logins_total", map[string]string{"reason": "bad_token"}); n != 10 {
		t.Error(n, "are counted as failed")
	}
	if n := w.count(t, "docket_desk_api_failed_logins_total", map[string]string{"reason": "throttled"}); n != 91 {
		t.Error(n, "are counted as slowed down")
	}
	if log := w.log.String(); strings.Count(log, "login to API failed") != 10 || !strings.Contains(log, "192.0.2.7:1009") || strings.Contains(log, "wrong-guess") {
		t.Error(log)
	}
}

func TestAdmit_RevokesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admit := func(text string, clients ...api.Client) error {
		tokens, err := api.ParseTokens(text)
		if err != nil {
			t.Fatal(err)
		}
		return w.handler.Admit(api.Auth{Tokens: tokens, Clients: clients})
	}
	status := func(role string) int { return w.ask(t, role, "GET", "/whoami", "").code }
	if err := admit("vera:viewer:"+tokenOf("viewer"), api.Client{Name: "vera", Role: api.Admin}); err == nil || status("operator") != http.StatusOK {
		t.Errorf("vera has two roles: %v", err)
	}
	if err := admit("vera:viewer:" + tokenOf("viewer")); err != nil {
		t.Fatal(err)
	}
	if a, b := status("operator"), status("viewer"); a != http.StatusUnauthorized || b != http.StatusOK {
		t.Errorf("the revoked token gave %d, the other %d", a, b)
	}
}

func TestExpiredToken_Refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	end := w.now.Add(time.Hour)
	tokens, err := api.ParseTokens(fmt.Sprintf("vera:viewer:sha256:%x:until=%s adam:admin:%s",
		sha256.Sum256([]byte(tokenOf("viewer"))), end.Format(time.RFC3339), tokenOf("admin")))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.handler.Admit(api.Auth{Tokens: tokens}); err != nil {
		t.Fatal(err)
	}
	if a := w.ask(t, "viewer", "GET", "/whoami", ""); a.code != http.StatusOK || !strings.Contains(a.body, "vera") {
		t.Errorf("before its end: %d %s", a.code, a.body)
	}
	w.now = end
	expired, unknown := w.ask(t, "viewer", "GET", "/whoami", ""), w.ask(t, "operator", "GET", "/whoami", "")
	if expired.code != http.StatusUnauthorized || expired.body != unknown.body {
		t.Errorf("an expired token gave %d %s, an unknown one %s", expired.code, expired.body, unknown.body)
	}
	if a := w.ask(t, "admin", "GET", "/whoami", ""); a.code != http.StatusOK {
		t.Errorf("the one without an end: %d", a.code)
	}
	if n := w.count(t, "docket_desk_api_failed_logins_total", map[string]string{"reason": "expired_token"}); n != 1 {
		t.Error(n, "are counted as expired")
	}
	if log := w.log.String(); strings.Count(log, "desk token expired") != 1 || !strings.Contains(log, `"operator":"vera"`) || strings.Count(log, "login to API failed") != 1 {
		t.Error(log)
	}
}

func TestThrottle_IPv6NetworkIsOneAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slowed := 0
	for i := range 30 {
		if w.ask(t, "", "GET", "/whoami", "", bearing("Bearer wrong"), from(fmt.Sprintf("[2001:db8::%x]:1", i+1))).code == http.StatusTooManyRequests {
			slowed++
		}
	}
	if slowed != 20 {
		t.Error(slowed, "of 30 guesses from one network were slowed down")
	}
}

// certified makes a request over a connection with a verified certificate of that name.
func certified(name string, until time.Time) func(*http.Request) {
	return func(r *http.Request) {
		c := &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: until}
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}}}
	}
}

func TestLogin_CertificateMustBeValid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if a := w.ask(t, "", "GET", "/whoami", "", certified("Carla Cert", noon.Add(time.Hour))); a.code != http.StatusOK || !strings.Contains(a.body, `"Carla Cert"`) {
		t.Error(a)
	}
	unverified := func(r *http.Request) {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: "Carla Cert"}, NotAfter: noon.Add(time.Hour)}}}
	}
	if a := w.ask(t, "", "GET", "/whoami", "", unverified); a.code != http.StatusUnauthorized {
		t.Error("a certificate that nobody verified gave", a.code)
	}
	if a := w.ask(t, "", "GET", "/whoami", "", certified("Carla Cert", noon.Add(-time.Second))); a.code != http.StatusUnauthorized {
		t.Error("a connection outlived its certificate:", a.code)
	}
	if a := w.ask(t, "", "GET", "/whoami", "", certified("Mallory", noon.Add(time.Hour))); a.code != http.StatusForbidden {
		t.Error("a name without a role gave", a.code)
	}
	if a := w.ask(t, "", "GET", "/whoami", "", certified("Carla Cert", noon.Add(time.Hour)), bearing("Bearer wrong-token-wrong-token")); a.code != http.StatusUnauthorized {
		t.Error("a certificate makes up for a wrong token:", a.code)
	}
	if a := w.ask(t, "", "GET", "/dead-letters/"+id(0)+"/payload", "", certified("vic", noon.Add(time.Hour))); a.code != http.StatusForbidden {
		t.Error("a viewer by certificate saw a payload:", a.code)
	}
}

// A certificate can be known by two authorities: an old one that was renewed, and its new one. A client whose certificate is
// refused loses its connection, as it can show another one only over a new one.
func TestLogin_CertificateOfRenewedAuthority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	chained := func(ends ...time.Time) func(*http.Request) {
		return func(r *http.Request) {
			certified("Carla Cert", noon.Add(time.Hour))(r)
			leaf := r.TLS.PeerCertificates[0]
			r.TLS.VerifiedChains = nil
			for _, end := range ends {
				r.TLS.VerifiedChains = append(r.TLS.VerifiedChains, []*x509.Certificate{leaf, {NotAfter: end}})
			}
		}
	}
	past, later := noon.Add(-time.Second), noon.Add(time.Hour)
	for _, c := range []struct {
		ends   []time.Time
		code   int
		closes string
	}{{[]time.Time{past, later}, 200, ""}, {[]time.Time{later, past}, 200, ""}, {[]time.Time{past, past}, 401, "close"}, {nil, 401, "close"}} {
		a := w.ask(t, "", "GET", "/whoami", "", chained(c.ends...))
		if got := a.header.Get("Connection"); a.code != c.code || got != c.closes {
			t.Errorf("%v: %d, Connection %q", c.ends, a.code, got)
		}
	}
	if a := w.ask(t, "", "GET", "/whoami", "", certified("Mallory", later)); a.code != 403 || a.header.Get("Connection") != "close" {
		t.Errorf("%d, %v", a.code, a.header)
	}
	if a := w.ask(t, "", "GET", "/whoami", ""); a.code != 401 || a.header.Get("Connection") != "" {
		t.Errorf("%d, %v", a.code, a.header)
	}
}

func TestGuard_RefusesOtherSites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	site := func(headers ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
		}
	}
	path, body := "/dead-letters/"+id(0)+"/retry", `{"reason":"r"}`
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		a := w.ask(t, "operator", "POST", path, body, site(headers...))
		if a.problem(t).Status != http.StatusForbidden || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Error(headers, a)
		}
	}
	if w.book.letters[id(0)].State != "PENDING" {
		t.Error("it was moved all the same")
	}
	if a := w.ask(t, "operator", "POST", path, body, site("Sec-Fetch-Site", "same-origin")); a.code != http.StatusOK {
		t.Error(a)
	}
}

func BenchmarkLogin(b *testing.B) {
	tokens, err := api.ParseTokens(everybody)
	if err != nil {
		b.Fatal(err)
	}
	h, err := api.New(api.Config{Lease: time.Minute}, api.Ports{Book: newBook(1)}, api.Auth{Tokens: tokens}, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, api.Prefix+"/whoami", nil)
	r.Header.Set("Authorization", "Bearer "+tokenOf("viewer"))
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}
