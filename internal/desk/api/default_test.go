package api

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rs/zerolog"
)

// TestRoute_WithoutARoleIsClosed: a route whose role was forgotten is closed, not open.
func TestRoute_WithoutARoleIsClosed(t *testing.T) {
	t.Parallel()
	const pattern = "GET /forgotten"
	mux := http.NewServeMux()
	mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
	g := &guard{rules: map[string]rule{pattern: {}}, mux: mux, log: zerolog.Nop(), crossSite: http.NewCrossOriginProtection()}
	for _, role := range []Role{Nobody, Viewer, Auditor, Operator, Admin} {
		_, refused := g.check(httptest.NewRequest(http.MethodGet, "/forgotten", http.NoBody), caller{Name: "ann", Role: role})
		if refused == nil || refused.Status != http.StatusForbidden {
			t.Errorf("%s: %+v", role, refused)
		}
	}
}
