package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/client/address"
)

// Config says which desk is asked, and how.
type Config struct {
	Server string // https://host:port, with a path where the API is below one
	Token  string // empty: none is sent
	CA     string // PEM file with the authorities for the desk's certificate; empty: those of the system
	// Cert and Key are PEM files of a client certificate; empty: none.
	Cert, Key string
	// Plain allows http:// to hosts beyond loopback.
	Plain bool
	Agent string // of the header User-Agent
	// Older is called once when a desk answers that is older than this program, as its answers may lack parts; nil: nobody is
	// told.
	Older func(server string)
	// Timeout limits a request, and LongTimeout one that reads topics. Zero: 60 s and 5.5 min, as long as a desk takes.
	Timeout, LongTimeout time.Duration
}

// ConfigError says why a desk cannot be asked with these settings. Its text quotes no secret.
type ConfigError struct{ text string }

func (e *ConfigError) Error() string { return e.text }

func wrong(format string, args ...any) error { return &ConfigError{fmt.Sprintf(format, args...)} }

// Client asks one desk. It is safe for concurrent use.
type Client struct {
	config Config
	base   *url.URL
	http   *http.Client
	told   sync.Once
}

// The limits of a desk, and some time for the way.
const (
	timeout     = time.Minute
	longTimeout = 5*time.Minute + 30*time.Second
)

// mostAnswer limits an answer in bytes. A page with payloads has 8 MiB and one decision more.
const mostAnswer = 512 << 20

// New makes a client. It sends nothing. The error is a [*ConfigError].
func New(c Config) (*Client, error) {
	base, err := Address(c.Server, c.Plain)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, wrong("the token has spaces or characters that no token has; the file must hold the token alone")
	}
	if c.Timeout == 0 {
		c.Timeout = timeout
	}
	if c.LongTimeout == 0 {
		c.LongTimeout = longTimeout
	}
	secure, err := c.tls()
	if err != nil {
		return nil, err
	}
	return &Client{config: c, base: base, http: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: secure, TLSHandshakeTimeout: 15 * time.Second, MaxIdleConnsPerHost: 4,
			DialContext: (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
		},
		// A redirect could take the token to another host, so none is followed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Address reads the URL of a desk. Without plain, http is allowed to loopback alone.
func Address(text string, plain bool) (*url.URL, error) {
	u, err := address.Parse(text, plain)
	if err != nil {
		return nil, wrong("%v", err)
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), api.Prefix)
	return u, nil
}

func (c Config) tls() (*tls.Config, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, wrong("the CA file cannot be read: %v", bare(err))
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(text) {
			return nil, wrong("the CA file holds no certificate in PEM")
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, wrong("a client certificate needs both files: the certificate and its key")
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, wrong("the client certificate and its key cannot be used: %v", bare(err))
		}
		secure.Certificates = []tls.Certificate{pair}
	}
	return secure, nil
}

// bare takes the path off an error of a file.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Server returns the URL of the desk.
func (c *Client) Server() string { return c.base.String() }

// request is one request of a route below [api.Prefix].
type request struct {
	method, path string
	query        url.Values
	body         any  // nil: none
	long         bool // it reads topics
}

// ask sends a request and decodes the answer into out.
func (c *Client) ask(ctx context.Context, r request, out any) error {
	limit := c.config.Timeout
	if r.long {
		limit = c.config.LongTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sent, err := c.compose(ctx, r)
	if err != nil {
		return err
	}
	var begun atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { begun.Store(true) }}
	answer, err := c.http.Do(sent.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		return c.unanswered(ctx, err, begun.Load())
	}
	defer func() { _ = answer.Body.Close() }() // nothing was written
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return c.refused(answer)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return c.unanswered(ctx, err, true)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return &ProblemError{Server: c.base.Host, foreign: true, Problem: api.Problem{Status: answer.StatusCode, Detail: "the answer is not that of a desk", Hint: "check the URL of the server, and the versions of both"}}
	}
	c.judge(answer.Header)
	return nil
}

// judge tells once that a desk is older than this program.
func (c *Client) judge(h http.Header) {
	level, err := strconv.Atoi(h.Get(api.LevelHeader))
	if c.config.Older != nil && (err != nil || level < api.Level) {
		c.told.Do(func() { c.config.Older(c.base.Host) })
	}
}

func (c *Client) compose(ctx context.Context, r request) (*http.Request, error) {
	to := *c.base
	// The path is escaped already: an id may hold a slash.
	to.RawPath = to.EscapedPath() + api.Prefix + r.path
	path, err := url.PathUnescape(to.RawPath)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	to.Path, to.RawQuery = path, r.query.Encode()
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("make the request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, to.String(), body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	sent.Header.Set("Accept", "application/json, application/problem+json")
	if c.config.Agent != "" {
		sent.Header.Set("User-Agent", c.config.Agent)
	}
	if r.body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	if c.config.Token != "" {
		sent.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	return sent, nil
}

// segment is a name in a path. The names . and .. are ways in it, unless they are escaped.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

func get(path string, query url.Values) request {
	return request{method: http.MethodGet, path: path, query: query}
}

func post(path string, body any) request {
	return request{method: http.MethodPost, path: path, body: body}
}

// Whoami says who the desk takes the caller for.
func (c *Client) Whoami(ctx context.Context) (api.Me, error) {
	var me api.Me
	return me, c.ask(ctx, get("/whoami", nil), &me)
}
