package desk

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/testkit/openidtest"
)

// provided is the environment of a desk with a login by OpenID Connect.
func provided(issuer string, more ...string) []string {
	return nowhere(append([]string{"DOCKET_DESK_OIDC_ISSUER=" + issuer, "DOCKET_DESK_OIDC_CLIENT_ID=" + openidtest.Client, "DOCKET_DESK_OIDC_CLIENT_SECRET=" + openidtest.Secret,
		"DOCKET_DESK_OIDC_REDIRECT_URL=http://127.0.0.1:8083/login/callback", "DOCKET_DESK_OIDC_GROUPS=a:b:viewer,ops:operator", "DOCKET_DESK_OIDC_LABEL=Acme"}, more...)...)
}

// page asks a running desk for a page.
func page(t *testing.T, p *Program, path string) (status int, to, body string) {
	t.Helper()
	c := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.apiAddr()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Accept", "text/html")
	resp, err := c.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Location"), string(text)
}

func runs(t *testing.T, environ []string) (*Program, *buffer) {
	t.Helper()
	log := &buffer{}
	p, err := New(settings(t, environ), zerolog.New(log), prometheus.NewRegistry(), Options{TokensEvery: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		p.Close()
	})
	return p, log
}

// TestConsole_OpenIDWithoutTokens: the desk starts while the provider is away, and finds it later.
func TestConsole_OpenIDWithoutTokens(t *testing.T) {
	t.Parallel()
	provider := openidtest.New(t, time.Now)
	provider.Set(func(p *openidtest.Provider) { p.Status = http.StatusServiceUnavailable })
	p, log := runs(t, provided(provider.URL))
	if status, _, body := page(t, p, "/login"); status != http.StatusOK || !strings.Contains(body, "Log in with Acme") {
		t.Fatalf("%d %s", status, body)
	}
	if status, _, body := page(t, p, "/login/oidc"); status != http.StatusServiceUnavailable || !strings.Contains(body, "Acme does not answer") {
		t.Errorf("%d %s", status, body)
	}
	provider.Set(func(p *openidtest.Provider) { p.Status = 0 })
	eventually(t, "the provider is found", func() bool {
		status, to, _ := page(t, p, "/login/oidc")
		return status == http.StatusSeeOther && strings.HasPrefix(to, provider.URL+"/authorize?")
	})
	if strings.Contains(log.String(), openidtest.Secret) || strings.Contains(log.String(), "no API users") || !strings.Contains(log.String(), "login by OpenID Connect offered") {
		t.Error(log)
	}
}

// TestConsole_OpensWithTheFirstUser: it needs no restart.
func TestConsole_OpensWithTheFirstUser(t *testing.T) {
	t.Parallel()
	open := false
	say := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	h := beside(say("api"), say("pages"), func() bool { return open })
	ask := func(path string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return w.Body.String()
	}
	if got := ask("/") + ask("/api/v1/whoami") + ask("/api"); got != "apiapiapi" {
		t.Error(got)
	}
	open = true
	if got := ask("/") + ask("/api/v1/whoami") + ask("/api"); got != "pagesapiapi" {
		t.Error(got)
	}
	p, _ := runs(t, nowhere())
	if status, _, _ := page(t, p, "/login"); status == http.StatusOK {
		t.Error("a console without users is open")
	}
	if err := p.admit("vera:viewer:planted-token-of-vera"); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := page(t, p, "/login"); status != http.StatusOK {
		t.Errorf("with a user the console is closed: %d", status)
	}
}

func TestConsole_WrongGroupsStopTheDesk(t *testing.T) {
	t.Parallel()
	for groups, want := range map[string]string{"ops": "entry 1 is not group:role", "ops:boss": "entry 1 has a role", "a:viewer,a:admin": "entry 2 has the group", "a:viewer,,b:viewer": ""} {
		said := Judges()[groupsVariable](groups)
		if want != "" && !strings.Contains(said, want) {
			t.Errorf("%q: %q", groups, said)
		}
	}
}
