package openid

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"
)

// maxAnswer limits an answer of the provider, in bytes.
const maxAnswer = 1 << 20

var errRedirect = errors.New("the provider redirects a request of the desk")

// newClient makes a client that follows no redirect and reads no endless answer.
func newClient(c Config) *http.Client {
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
		MaxIdleConns:    2, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: c.Timeout, ForceAttemptHTTP2: true,
	}
	return &http.Client{Timeout: c.Timeout, Transport: &limited{transport}, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect }}
}

type limited struct{ *http.Transport }

// RoundTrip cuts long answers, so that they cannot be read as JSON.
func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.Transport.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}

// keyRequests counts the requests for the provider's keys that brought none. go-oidc tells them from a wrong signature by
// text alone.
type keyRequests struct {
	http.RoundTripper
	failed atomic.Int64
}

// RoundTrip asks for the keys.
func (k *keyRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := k.RoundTripper.RoundTrip(r)
	if err != nil || answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests {
		k.failed.Add(1)
	}
	return answer, err
}

// Safe reports whether a URL is absolute and has https, or http to a loopback address.
func Safe(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" {
		return false
	}
	if u.Scheme == "https" {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.IsLoopback())
}
