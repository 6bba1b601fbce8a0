package desk

import (
	"fmt"
	"net/http"
	"strings"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/service/buildinfo"
)

// openConsole puts the console beside the API. Where it is switched off, or nobody may use the API, the API is alone.
// Without TLS the settings allow loopback alone.
func (p *Program) openConsole(handler *api.Handler, used, tls bool) (http.Handler, error) {
	if !p.settings.DeskConsole || !used {
		return handler, nil
	}
	pages, err := console.New(console.Config{Version: buildinfo.String(), Plain: !tls, Sight: p.sight()}, handler, ledgerdb.NewSessions(p.parts.asked.DB), p.log)
	if err != nil {
		return nil, fmt.Errorf("make the console: %w", err)
	}
	return beside(handler, pages), nil
}

// apiRoot is above the prefix of every version of the API.
const apiRoot = "/api/"

// beside serves the API below its root, and the console elsewhere.
func beside(handler, pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path+"/" == apiRoot || strings.HasPrefix(r.URL.Path, apiRoot) {
			handler.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}
