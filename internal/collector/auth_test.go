package collector

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

const (
	secret = "0123456789abcdef"
	other  = "fedcba9876543210"
)

func TestAuth_OnlyKnownCredentials(t *testing.T) {
	t.Parallel()
	tokens, err := ParseTokens("opa-1:" + secret + "\n opa-2:" + other)
	if err != nil {
		t.Fatal(err)
	}
	certificate := func(name string, ends time.Time) *tls.ConnectionState {
		c := &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: ends}
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}}}
	}
	later := time.Now().Add(time.Hour)
	unverified := certificate("opa", later)
	unverified.VerifiedChains = nil
	byToken, byCA, byName := Auth{Tokens: tokens}, Auth{ClientCA: true}, Auth{Tokens: tokens, ClientCA: true, Clients: []string{"opa"}}
	for name, c := range map[string]struct {
		auth    Auth
		headers []string
		tls     *tls.ConnectionState
		ok      bool
	}{
		"anybody where nobody is named": {Auth{}, nil, nil, true},
		"a token":                       {byToken, []string{"Bearer " + other}, nil, true},
		"a token, in other letters":     {byToken, []string{"bEARER " + secret}, nil, true},
		"none":                          {byToken, nil, nil, false},
		"another token":                 {byToken, []string{"Bearer " + secret + "0"}, nil, false},
		"the start of one":              {byToken, []string{"Bearer " + secret[:15]}, nil, false},
		"no secret":                     {byToken, []string{"Bearer "}, nil, false},
		"another scheme":                {byToken, []string{"Basic " + secret}, nil, false},
		"two headers":                   {byToken, []string{"Bearer " + secret, "Bearer " + secret}, nil, false},
		"a very long one":               {byToken, []string{"Bearer " + strings.Repeat("a", 1000)}, nil, false},
		"a certificate where tokens are asked for": {byToken, nil, certificate("opa", later), false},
		"a certificate":             {byCA, nil, certificate("anybody", later), true},
		"one that was not verified": {byCA, nil, unverified, false},
		"one that has ended":        {byCA, nil, certificate("opa", time.Now().Add(-time.Second)), false},
		"no TLS":                    {byCA, nil, nil, false},
		"a certificate of a name":   {byName, nil, certificate("opa", later), true},
		"of another name":           {byName, nil, certificate("opa2", later), false},
		"a wrong token with it":     {byName, []string{"Bearer wrong"}, certificate("opa", later), false},
		"names without a CA":        {Auth{Clients: []string{"opa"}}, nil, certificate("opa", later), false},
	} {
		w := newWorld(t, func(cfg *Config) { cfg.Auth = c.auth })
		r := posted(t.Context(), "/logs", strings.NewReader(good("a")))
		r.Header["Authorization"] = c.headers
		r.TLS = c.tls
		a := httptest.NewRecorder()
		w.ServeHTTP(a, r)
		if (a.Code == 200) != c.ok || (a.Code == 401) == c.ok || (len(w.kafka.kept) == 1) != c.ok {
			t.Errorf("%s: %d, %d kept", name, a.Code, len(w.kafka.kept))
		}
		if c.ok {
			continue
		}
		if p := problem(t, a); p.Detail != "" || p.Reason != "" || a.Header().Get("Www-Authenticate") == "" {
			t.Errorf("%s: the answer gives details: %s", name, a.Body)
		}
		if strings.Contains(w.log.String(), secret) || w.metric(t, "docket_collector_refused_total", "credentials") != 1 {
			t.Errorf("%s: %s", name, w.log)
		}
	}
}

func TestAuth_Changes(t *testing.T) {
	t.Parallel()
	tokens, err := ParseTokens("opa:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *Config) { c.Auth = Auth{Tokens: tokens} })
	if a := w.post(t, good("a"), "Authorization", "Bearer "+other); a.Code != 401 {
		t.Errorf("before: %d", a.Code)
	}
	if tokens, err = ParseTokens("opa:" + other); err != nil {
		t.Fatal(err)
	}
	w.Admit(Auth{Tokens: tokens})
	if a := w.post(t, good("a"), "Authorization", "Bearer "+other); a.Code != 200 {
		t.Errorf("after: %d", a.Code)
	}
	if a := w.post(t, good("a"), "Authorization", "Bearer "+secret); a.Code != 401 {
		t.Errorf("the old one: %d", a.Code)
	}
}

func TestExpiredToken_Refused(t *testing.T) {
	t.Parallel()
	tokens, err := ParseTokens(fmt.Sprintf("opa-1:sha256:%x:until=2027-01-31 opa-2:%s", sha256.Sum256([]byte(secret)), other))
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	w := newWorld(t, func(c *Config) { c.Auth = Auth{Tokens: tokens} })
	w.now = func() time.Time { return end.Add(-1) }
	if a := w.post(t, good("a"), "Authorization", "Bearer "+secret); a.Code != 200 {
		t.Errorf("before its end: %d", a.Code)
	}
	w.now = func() time.Time { return end }
	expired, unknown := w.post(t, good("a"), "Authorization", "Bearer "+secret), w.post(t, good("a"), "Authorization", "Bearer "+secret+"0")
	if expired.Code != 401 || expired.Body.String() != unknown.Body.String() {
		t.Errorf("an expired token: %d %s, an unknown one: %s", expired.Code, expired.Body, unknown.Body)
	}
	if a := w.post(t, good("a"), "Authorization", "Bearer "+other); a.Code != 200 {
		t.Errorf("the one without an end: %d", a.Code)
	}
	if log := w.log.String(); strings.Count(log, "upload token expired") != 1 || !strings.Contains(log, `"name":"opa-1"`) || strings.Count(log, "upload authentication failed") != 1 {
		t.Error(log)
	}
}

func TestParseTokens_AllFaultsAtOnceUnquoted(t *testing.T) {
	t.Parallel()
	_, err := ParseTokens("plain one:short -x:" + secret + " a:" + secret + " b:" + secret + " c:" + secret + "!! d:" + strings.Repeat("x", 513))
	if err == nil {
		t.Fatal("no complaint")
	}
	for _, want := range []string{"entry 1 ", "entry 2 ", "entry 3 ", "entry 5 ", "entry 6 ", "entry 7 "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing of %s: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "entry 4") {
		t.Error(err)
	}
	if tokens, err := ParseTokens(""); err != nil || len(tokens) != 0 {
		t.Error(tokens, err)
	}
}

// TestCertificate_Names: a certificate goes by the most telling of its names, or by the one that is allowed.
func TestCertificate_Names(t *testing.T) {
	t.Parallel()
	spiffe, other := &url.URL{Scheme: "spiffe", Host: "shop", Path: "/opa"}, &url.URL{Scheme: "https", Host: "shop"}
	bare := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("whole")))
	for name, c := range map[string]struct {
		certificate x509.Certificate
		clients     []string
		want        string
		ok          bool
	}{
		"all names":           {x509.Certificate{URIs: []*url.URL{other, spiffe}, Subject: pkix.Name{CommonName: "cn"}, DNSNames: []string{"dns"}}, nil, "spiffe://shop/opa", true},
		"a common name":       {x509.Certificate{URIs: []*url.URL{other}, Subject: pkix.Name{CommonName: "cn"}, DNSNames: []string{"dns"}}, nil, "cn", true},
		"a DNS name":          {x509.Certificate{DNSNames: []string{"dns", "dns2"}}, nil, "dns", true},
		"none":                {x509.Certificate{}, nil, bare, true},
		"an allowed DNS name": {x509.Certificate{URIs: []*url.URL{spiffe}, Subject: pkix.Name{CommonName: "cn"}, DNSNames: []string{"dns", "dns2"}}, []string{"dns2"}, "dns2", true},
		"an allowed SPIFFE":   {x509.Certificate{URIs: []*url.URL{spiffe}}, []string{"cn", "spiffe://shop/opa"}, "spiffe://shop/opa", true},
		"an allowed hash":     {x509.Certificate{}, []string{bare}, bare, true},
		"another URI":         {x509.Certificate{URIs: []*url.URL{other}}, []string{"https://shop"}, "", false},
		"no allowed name":     {x509.Certificate{Subject: pkix.Name{CommonName: "cn"}}, []string{"cn2"}, "", false},
	} {
		c.certificate.Raw, c.certificate.NotAfter = []byte("whole"), time.Now().Add(time.Hour)
		r := httptest.NewRequest("POST", "/logs", nil)
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{&c.certificate}}}
		if got, ok := (Auth{ClientCA: true, Clients: c.clients}).admits(r, time.Now()); got != c.want || ok != c.ok {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}

// TestUploadedBy: with a key each decision says who uploaded it, a dead letter too, and nobody can say it in its place.
func TestUploadedBy(t *testing.T) {
	t.Parallel()
	tokens, err := ParseTokens("opa-1:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := envelope.ParseKeys(strings.Repeat("a key of 8", 4))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		keys envelope.Keys
		auth Auth
		want string
	}{"a token": {keys, Auth{Tokens: tokens}, "opa-1"}, "without a key": {envelope.Keys{}, Auth{Tokens: tokens}, ""}, "anybody": {keys, Auth{}, ""}} {
		for _, tooLarge := range []bool{false, true} {
			w := newWorld(t, func(cfg *Config) { cfg.Keys, cfg.Auth = c.keys, c.auth })
			w.kafka.answer = func(r *kgo.Record) error {
				if tooLarge && !decision.IsGzip(r.Value) {
					return kerr.MessageTooLarge
				}
				return nil
			}
			a := w.post(t, "["+good("a")+","+unnamed+"]", "Authorization", "Bearer "+secret, envelope.UploadedBy, "somebody")
			if a.Code != 200 || len(w.kafka.kept) != 2 {
				t.Fatalf("%s: %d, %d kept", name, a.Code, len(w.kafka.kept))
			}
			for _, r := range w.kafka.kept {
				if got := header(r, envelope.UploadedBy); got != c.want || !c.keys.Prove(r) {
					t.Errorf("%s, %v: %s is uploaded by %q: %v", name, tooLarge, r.Topic, got, r.Headers)
				}
			}
		}
	}
}

// A certificate can be known by two authorities: an old one that was renewed, and its new one.
func TestCertificate_AnyChain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "cn"}, NotAfter: now.Add(time.Hour)}
	renewed, ended := &x509.Certificate{NotAfter: now.Add(time.Hour)}, &x509.Certificate{NotAfter: now.Add(-time.Second)}
	past := &x509.Certificate{Subject: pkix.Name{CommonName: "cn"}, NotAfter: now.Add(-time.Second)}
	for name, c := range map[string]struct {
		chains [][]*x509.Certificate
		ok     bool
	}{
		"the first ended":  {[][]*x509.Certificate{{leaf, ended}, {leaf, renewed}}, true},
		"the second ended": {[][]*x509.Certificate{{leaf, renewed}, {leaf, ended}}, true},
		"both ended":       {[][]*x509.Certificate{{leaf, ended}, {leaf, ended}}, false},
		"its own ended":    {[][]*x509.Certificate{{past, renewed}}, false},
		"an empty one":     {[][]*x509.Certificate{{}}, false},
		"none":             {nil, false},
	} {
		r := httptest.NewRequest("POST", "/logs", nil)
		r.TLS = &tls.ConnectionState{VerifiedChains: c.chains}
		got, ok := (Auth{ClientCA: true}).admits(r, now)
		if ok != c.ok || ok && got != "cn" {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}

// A client that showed a certificate and is refused makes a new connection, and can show another one there.
func TestCertificate_RefusalEndsTheConnection(t *testing.T) {
	t.Parallel()
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "cn"}, NotAfter: time.Now().Add(time.Hour)}
	for name, c := range map[string]struct {
		auth   Auth
		shown  []*x509.Certificate
		status int
		header string
	}{
		"another name":   {Auth{ClientCA: true, Clients: []string{"other"}}, []*x509.Certificate{leaf}, 401, "close"},
		"no rights":      {Auth{ClientCA: true, Rights: Rights{"other": {}}}, []*x509.Certificate{leaf}, 403, "close"},
		"no certificate": {Auth{ClientCA: true}, nil, 401, ""},
		"it may":         {Auth{ClientCA: true}, []*x509.Certificate{leaf}, 200, ""},
	} {
		w := newWorld(t, func(cfg *Config) { cfg.Auth = c.auth })
		r := posted(t.Context(), "/logs", strings.NewReader(good("a")))
		r.TLS = &tls.ConnectionState{PeerCertificates: c.shown}
		if c.shown != nil {
			r.TLS.VerifiedChains = [][]*x509.Certificate{c.shown}
		}
		a := httptest.NewRecorder()
		w.ServeHTTP(a, r)
		if got := a.Header().Get("Connection"); a.Code != c.status || got != c.header {
			t.Errorf("%s: %d, Connection %q", name, a.Code, got)
		}
	}
}
