package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

// slack replaces hooks.slack.com and slack.com: the library's addresses lead here.
var slack = &hook{answer: "ok"}

func TestMain(m *testing.M) {
	server := httptest.NewTLSServer(slack)
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	transport := http.DefaultTransport.(*http.Transport)
	transport.Proxy = nil
	transport.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !strings.HasSuffix(addr, "slack.com:443") {
			return nil, errors.New("a test dialled " + addr)
		}
		d := tls.Dialer{Config: &tls.Config{RootCAs: trusted, ServerName: "example.com"}}
		return d.DialContext(ctx, network, server.Listener.Addr().String())
	}
	code := m.Run()
	transport.CloseIdleConnections()
	server.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

// hook records its requests.
type hook struct {
	answer string
	turn   sync.Mutex // of tests that share it

	mu     sync.Mutex
	status []int // of the next answers; none left: 200
	posts  []post
}

type post struct {
	url    string
	header http.Header
	body   []byte
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	_, _ = b.ReadFrom(r.Body)
	h.mu.Lock()
	h.posts = append(h.posts, post{r.URL.String(), r.Header, b.Bytes()})
	status := 200
	if len(h.status) > 0 {
		status, h.status = h.status[0], h.status[1:]
	}
	h.mu.Unlock()
	w.WriteHeader(status)
	_, _ = w.Write([]byte(h.answer))
}

func (h *hook) got() []post {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]post(nil), h.posts...)
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start makes channels with short waits.
func start(t *testing.T, urls string) (*Channels, *lines) {
	t.Helper()
	log := &lines{}
	c, err := New(urls, zerolog.New(log), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range c.channels {
		ch.limit, ch.pauses = 2*time.Second, []time.Duration{time.Millisecond, time.Millisecond}
	}
	return c, log
}

// running delivers until stop is called, or the test ends.
func running(t *testing.T, c *Channels) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func (c *Channels) count(name, result string) int {
	return int(testutil.ToFloat64(c.results.WithLabelValues(name, result)))
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("did not happen: " + what)
		}
	}
}

var example = Message{Kind: Alert, Key: "unresolved", Title: "12 dead letters are unresolved", Severity: Warning,
	Lines: []string{"10 pending, 2 failed", "data 23514 http/authz"}}
