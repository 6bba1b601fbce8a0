package desk

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/desk/api"
)

// besideTokens has one user of the API.
const besideTokens = "DOCKET_DESK_API_TOKENS=vera:viewer:" + planted + planted

// handlerOf is what a desk with these settings serves, without its listener.
func handlerOf(t *testing.T, environ ...string) http.Handler {
	t.Helper()
	p, err := New(settings(t, nowhere(environ...)), zerolog.Nop(), prometheus.NewRegistry(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p.api.server.Handler
}

func answerOf(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The header of the API says which of the two answers.
func TestBeside_APIBelowItsRoot(t *testing.T) {
	t.Parallel()
	h := handlerOf(t, besideTokens)
	for path, ofAPI := range map[string]bool{
		"/api": true, "/api/": true, "/api/v1": true, "/api/v1/whoami": true, "/api/v2/x": true, "/api//x": true, "/api/v1/../../login": true, "/api/v1%2Fwhoami": true, "/%61pi/v1": true,
		"/": false, "/login": false, "/apis": false, "/apidocs/": false, "/API/v1": false, "//api/v1": false, "/x/api/v1": false, "/decisions/api": false, "/?to=/api/v1": false,
	} {
		if a := answerOf(t, h, path); (a.Header().Get(api.LevelHeader) != "") != ofAPI {
			t.Errorf("%s: %d %v", path, a.Code, a.Header())
		}
	}
}

func TestBeside_ServesBoth(t *testing.T) {
	t.Parallel()
	h := handlerOf(t, besideTokens)
	if a := answerOf(t, h, "/login"); a.Code != http.StatusOK || !strings.Contains(a.Body.String(), "<form") {
		t.Errorf("the login: %d %v", a.Code, a.Header())
	}
	if a := answerOf(t, h, api.Prefix+"/whoami"); a.Code != http.StatusUnauthorized || a.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("the API: %d %v", a.Code, a.Header())
	}
}

func TestBeside_APIAlone(t *testing.T) {
	t.Parallel()
	for name, environ := range map[string][]string{"switched off": {besideTokens, "DOCKET_DESK_CONSOLE=false"}, "no users": nil} {
		h := handlerOf(t, environ...)
		for _, path := range []string{"/", "/login", "/decisions"} {
			if a := answerOf(t, h, path); a.Header().Get(api.LevelHeader) == "" || a.Code < http.StatusBadRequest || strings.Contains(a.Body.String(), "<form") {
				t.Errorf("%s: %s: %d", name, path, a.Code)
			}
		}
	}
}
