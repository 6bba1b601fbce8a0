package desk

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/desk/console/openid"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/service/buildinfo"
	"docket/internal/service/config"
)

// groupsVariable is the setting with the groups of the OpenID provider.
const groupsVariable = "DOCKET_DESK_OIDC_GROUPS"

// openConsole puts the console beside the API. Where it is switched off, the API is alone. Without a login by OpenID
// Connect it is there while somebody can use the API, which a file of tokens may change. Without TLS the settings allow
// loopback alone.
func (p *Program) openConsole(handler *api.Handler, tls bool) (http.Handler, error) {
	if !p.settings.DeskConsole {
		return handler, nil
	}
	sign, err := openID(p.settings)
	if err != nil {
		return nil, err
	}
	// Browsers of a console with https have a proxy between, if the listener has no TLS.
	plain := !tls && !strings.HasPrefix(p.settings.DeskOIDCRedirectURL, "https:")
	pages, err := console.New(console.Config{Version: buildinfo.String(), Plain: plain, OpenID: sign, Sight: p.sight(), Views: ledgerdb.NewViews(p.parts.asked.DB)}, handler, ledgerdb.NewSessions(p.parts.sessions.DB), p.log)
	if err != nil {
		return nil, fmt.Errorf("make the console: %w", err)
	}
	if sign != nil {
		p.signing = sign.Provider
		p.log.Info().Str("issuer", p.settings.DeskOIDCIssuer).Bool("public", p.settings.DeskOIDCClientSecret == "").Msg("login by OpenID Connect offered")
	}
	return beside(handler, pages, func() bool { return sign != nil || handler.Used() }), nil
}

// openID makes the login by OpenID Connect, nil where it is not set. It asks the provider nothing.
func openID(s config.Settings) (*console.OpenID, error) {
	if s.DeskOIDCIssuer == "" {
		return nil, nil
	}
	groups, err := api.ParseGroups(s.DeskOIDCGroups)
	if err != nil {
		return nil, config.Complaint{Variable: groupsVariable, Text: err.Error()}
	}
	roots, err := s.OIDCRoots()
	if err != nil {
		return nil, err
	}
	provider, err := openid.New(openid.Config{Issuer: s.DeskOIDCIssuer, ClientID: s.DeskOIDCClientID, Secret: clientSecret(s), RedirectURL: s.DeskOIDCRedirectURL,
		Scopes: s.DeskOIDCScopes, GroupsClaim: s.DeskOIDCClaim, NameClaim: s.DeskOIDCName, Roots: roots})
	if err != nil {
		return nil, fmt.Errorf("make the login by OpenID Connect: %w", err)
	}
	return &console.OpenID{Provider: provider, Groups: groups, Label: s.DeskOIDCLabel, Lasts: s.DeskOIDCSession}, nil
}

// secretEvery is how often the file of the client's secret is read again.
const secretEvery = 5 * time.Second

// clientSecret is the secret of the client now. A file that cannot be read leaves the last one in use.
func clientSecret(s config.Settings) func() string {
	var mu sync.Mutex
	var at time.Time
	now := s.DeskOIDCClientSecret
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(at) >= secretEvery {
			at = time.Now()
			if fresh, err := s.Fresh("DOCKET_DESK_OIDC_CLIENT_SECRET", now); err == nil {
				now = fresh
			}
		}
		return now.Reveal()
	}
}

// apiRoot is above the prefix of every version of the API.
const apiRoot = "/api/"

// beside serves the API below its root, and the console elsewhere while it is open.
func beside(handler, pages http.Handler, open func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path+"/" == apiRoot || strings.HasPrefix(r.URL.Path, apiRoot) || !open() {
			handler.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}
