package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	pair := authority{}.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour)})
	return authority{pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)}
}

// sign makes a certificate. Without an authority it signs itself.
func (a authority) sign(t *testing.T, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.certificate)
	return p
}

func (a authority) client(t *testing.T, name string, until time.Duration, usage x509.ExtKeyUsage) tls.Certificate {
	t.Helper()
	return a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(until), ExtKeyUsage: []x509.ExtKeyUsage{usage}})
}

// serve runs s until the test ends or stop is called. stop waits for its end.
func serve(t *testing.T, s *api.Server) (addr string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	stopped := false
	stop = func() error {
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		if !stopped {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
	return l.Addr().String(), stop
}

func TestServer_ClientCertificates(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	w := newWorld(t, func(c *api.Config, _ *api.Ports) { c.Now = time.Now })
	pair := ours.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "desk"}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	addr, _ := serve(t, &api.Server{Handler: w.handler, TLS: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: ours.pool(),
		ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS10}})
	client := x509.ExtKeyUsageClientAuth
	for _, c := range []struct {
		what   string
		bring  []tls.Certificate
		token  string
		method string
		path   string
		code   int // 0: no connection
	}{
		{"the right authority", []tls.Certificate{ours.client(t, "Carla Cert", time.Hour, client)}, "", "GET", "/dead-letters/" + id(0) + "/payload", 200},
		{"a role that is too low", []tls.Certificate{ours.client(t, "vic", time.Hour, client)}, "", "GET", "/dead-letters/" + id(0) + "/payload", 403},
		{"a role that is enough", []tls.Certificate{ours.client(t, "vic", time.Hour, client)}, "", "GET", "/groups", 200},
		{"a name that is not known", []tls.Certificate{ours.client(t, "mallory", time.Hour, client)}, "", "GET", "/groups", 403},
		{"another authority", []tls.Certificate{theirs.client(t, "Carla Cert", time.Hour, client)}, "", "GET", "/groups", 0},
		{"one that has expired", []tls.Certificate{ours.client(t, "Carla Cert", -time.Hour, client)}, "", "GET", "/groups", 0},
		{"one of a server", []tls.Certificate{ours.client(t, "Carla Cert", time.Hour, x509.ExtKeyUsageServerAuth)}, "", "GET", "/groups", 0},
		{"one that signed itself", []tls.Certificate{authority{}.client(t, "Carla Cert", time.Hour, client)}, "", "GET", "/groups", 0},
		{"none", nil, "", "GET", "/groups", 401},
		{"none, but a token", nil, tokenOf("operator"), "GET", "/dead-letters/" + id(0) + "/payload", 200},
		{"a wrong token beside it", []tls.Certificate{ours.client(t, "Carla Cert", time.Hour, client)}, "wrong", "GET", "/groups", 401},
	} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ours.pool(), GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(c.bring) == 0 {
				return &tls.Certificate{}, nil
			}
			return &c.bring[0], nil // even where the server says that it would not take it
		}}}
		code, _, err := call(t, transport, c.method, "https://"+addr+api.Prefix+c.path, c.token, nil)
		transport.CloseIdleConnections()
		if code != c.code || (err != nil) != (c.code == 0) {
			t.Errorf("%s gave %d and not %d: %v", c.what, code, c.code, err)
		}
	}
	old := &tls.Config{RootCAs: ours.pool(), MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	if conn, err := tls.Dial("tcp", addr, old); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is spoken")
	}
	transport := &http.Transport{}
	if code, _, _ := call(t, transport, "GET", "http://"+addr+api.Prefix+"/whoami", tokenOf("viewer"), nil); code == http.StatusOK {
		t.Error("a token was taken without TLS")
	}
	transport.CloseIdleConnections()
}

func call(t *testing.T, transport *http.Transport, method, url, token string, body io.Reader) (int, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	a, err := transport.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(a.Body)
	_ = a.Body.Close()
	return a.StatusCode, string(text), err
}

func TestServer_StopFinishesRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, goOn := make(chan struct{}), make(chan struct{})
	w.book.hook = func() {
		close(at)
		<-goOn
	}
	addr, stop := serve(t, &api.Server{Handler: w.handler, Bye: time.Minute})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answered := make(chan string, 1)
	go func() {
		code, body, err := call(t, transport, "GET", "http://"+addr+api.Prefix+"/dead-letters", tokenOf("viewer"), nil)
		answered <- fmt.Sprint(code, err, len(body) > 100)
	}()
	<-at
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for { // until nobody listens any more
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	select {
	case err := <-stopped:
		t.Fatal("it did not wait for what is worked on:", err)
	default:
	}
	close(goOn)
	if got := <-answered; got != "200 <nil> true" {
		t.Error("what was worked on ended with", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestServer_StopEndsHangingRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *api.Config, p *api.Ports) { p.Trial = waits{} })
	addr, stop := serve(t, &api.Server{Handler: w.handler, Bye: 50 * time.Millisecond})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ended := make(chan error, 1)
	go func() {
		_, _, err := call(t, transport, "POST", "http://"+addr+api.Prefix+"/trials", tokenOf("operator"), strings.NewReader(`{"filter":{}}`))
		ended <- err
	}()
	for w.count(t, "docket_desk_api_requests_total", nil) == 0 { // until it is being worked on, as another is answered beside it
		if _, _, err := call(t, transport, "GET", "http://"+addr+api.Prefix+"/whoami", tokenOf("viewer"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	<-ended
}

func TestServer_LostListenerIsAnError(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := (&api.Server{Handler: newWorld(t).handler}).Run(t.Context(), l); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func TestServer_SlowBodyIsGivenUp(t *testing.T) {
	t.Parallel()
	const slow = 150 * time.Millisecond
	w := newWorld(t, func(c *api.Config, p *api.Ports) {
		c.BodyTimeout, p.Trial = slow, takes(3*slow)
		p.WhereIs = func(ctx context.Context, _ string) (api.Whereabouts, error) {
			_, err := takes(3*slow).Run(ctx, ledger.Filter{}, 0, nil)
			return api.Whereabouts{}, err
		}
	})
	addr, _ := serve(t, &api.Server{Handler: w.handler})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	code, body, err := call(t, transport, "POST", "http://"+addr+api.Prefix+"/trials", tokenOf("operator"), strings.NewReader(`{"filter":{}}`))
	if code != http.StatusOK || err != nil {
		t.Error("the deadline of the body ended the work:", code, body, err)
	}
	if code, body, err := call(t, transport, "GET", "http://"+addr+api.Prefix+"/where-is?q=d", tokenOf("viewer"), nil); code != http.StatusOK || err != nil {
		t.Error("the deadline of a body that there is not ended the work:", code, body, err)
	}
	never, end := io.Pipe()
	defer end.Close()
	code, _, err = call(t, transport, "POST", "http://"+addr+api.Prefix+"/trials", tokenOf("operator"), never)
	if code != http.StatusRequestTimeout && err == nil {
		t.Error("a body that does not come gave", code)
	}
	many := strings.Repeat("x", 32<<10)
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+api.Prefix+"/whoami", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Many", many)
	if a, err := transport.RoundTrip(r); err == nil {
		if a.Body.Close(); a.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Error("headers of 32 KiB gave", a.StatusCode)
		}
	}
}
