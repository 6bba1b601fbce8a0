package api

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// A certificate cannot be guessed. So its owner need not wait because of guessed tokens from the same address.
func TestThrottle_NotForCertificates(t *testing.T) {
	t.Parallel()
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	g := &guard{throttle: newThrottle(10), log: zerolog.Nop(), metrics: m, now: time.Now}
	g.auth.Store(&Auth{Clients: []Client{{"mara", Operator}}})
	ask := func(change func(*http.Request)) *Problem {
		r := httptest.NewRequest(http.MethodGet, Prefix+"/jobs", http.NoBody)
		r.RemoteAddr = "192.0.2.1:1234" // a proxy's
		change(r)
		_, refused := g.admit(r)
		return refused
	}
	for range 10 * failuresAtOnce {
		if ask(func(r *http.Request) { r.Header.Set("Authorization", "Bearer 0123456789abcdef") }) == nil {
			t.Fatal("a guess was let in")
		}
	}
	certificate := &x509.Certificate{Subject: pkix.Name{CommonName: "mara"}, NotAfter: time.Now().Add(time.Hour)}
	if p := ask(func(r *http.Request) {
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate}}}
	}); p != nil {
		t.Errorf("refused with %d: %s", p.Status, p.Detail)
	}
}
