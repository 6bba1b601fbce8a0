package desk

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/desk/api"
)

// saying answers with its name.
func saying(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
}

func answerOf(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestBeside_APIBelowItsRoot(t *testing.T) {
	t.Parallel()
	h := beside(saying("api"), saying("pages"), func() bool { return true })
	for path, want := range map[string]string{
		"/api": "api", "/api/": "api", "/api/v1": "api", "/api/v1/whoami": "api", "/api/v2/x": "api", "/api//x": "api", "/api/v1/../../login": "api", "/api/v1%2Fwhoami": "api", "/%61pi/v1": "api",
		"/": "pages", "/login": "pages", "/apis": "pages", "/apidocs/": "pages", "/API/v1": "pages", "//api/v1": "pages", "/x/api/v1": "pages", "/decisions/api": "pages", "/?to=/api/v1": "pages",
	} {
		if got := answerOf(t, h, path).Body.String(); got != want {
			t.Errorf("%s is served by %s", path, got)
		}
	}
}

// opened is the handler of a desk, and the API alone.
func opened(t *testing.T, used bool, environ ...string) (handler http.Handler, alone *api.Handler) {
	t.Helper()
	p, err := New(settings(t, nowhere(environ...)), zerolog.Nop(), prometheus.NewRegistry(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	tokens, err := api.ParseTokens("vera:viewer:" + planted + planted)
	if err != nil {
		t.Fatal(err)
	}
	if !used {
		tokens = nil
	}
	alone, err = api.New(api.Config{Lease: time.Minute}, api.Ports{Book: p.parts.ledger}, api.Auth{Tokens: tokens}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if handler, err = p.openConsole(alone, false); err != nil {
		t.Fatal(err)
	}
	return handler, alone
}

func TestConsole_ServedBesideTheAPI(t *testing.T) {
	t.Parallel()
	h, _ := opened(t, true)
	if a := answerOf(t, h, "/login"); a.Code != http.StatusOK || !strings.Contains(a.Body.String(), "<form") || a.Header().Get(api.LevelHeader) != "" {
		t.Errorf("the login: %d %v", a.Code, a.Header())
	}
	if a := answerOf(t, h, api.Prefix+"/whoami"); a.Code != http.StatusUnauthorized || a.Header().Get(api.LevelHeader) == "" || a.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("the API: %d %v", a.Code, a.Header())
	}
}

func TestConsole_NotServed(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() (http.Handler, *api.Handler){
		"switched off": func() (http.Handler, *api.Handler) { return opened(t, true, "DOCKET_DESK_CONSOLE=false") },
		"no users":     func() (http.Handler, *api.Handler) { return opened(t, false) },
	} {
		h, alone := open()
		if name == "switched off" && h != http.Handler(alone) {
			t.Error("the API is not alone")
		}
		if a := answerOf(t, h, "/login"); a.Code == http.StatusOK || strings.Contains(a.Body.String(), "<form") {
			t.Errorf("%s: %d", name, a.Code)
		}
	}
}
