//go:build integration

package keycloak

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/programs/desk"
	"docket/internal/service/config"
	"docket/internal/testkit/pgtest"
)

const secret = "planted-secret-of-the-client"

// office is a desk behind a proxy with TLS, as a client of Keycloak.
type office struct {
	*server
	front  *httptest.Server // with TLS, for browsers
	back   *httptest.Server // without, for Keycloak, which does not know the certificate of front
	client string
	public bool
	addr   string
	db     *pgtest.DB
	log    output
	stop   func()
}

// open registers a client at Keycloak, and starts a desk.
func (s *server) open(t *testing.T, change ...func(*office, map[string]any)) *office {
	t.Helper()
	o := &office{server: s, client: "docket-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())), addr: freeAddr(t), db: pgtest.New(t)}
	target := &url.URL{Scheme: "http", Host: o.addr}
	proxy := &httputil.ReverseProxy{Transport: &http.Transport{DisableKeepAlives: true}, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target) // Host is then that of the desk
		r.SetXForwarded()
	}}
	o.front, o.back = httptest.NewTLSServer(proxy), httptest.NewServer(proxy)
	t.Cleanup(o.front.Close)
	t.Cleanup(o.back.Close)
	mapper := map[string]any{"name": "groups", "protocol": "openid-connect", "protocolMapper": "oidc-group-membership-mapper",
		"config": map[string]string{"claim.name": "groups", "full.path": "false", "id.token.claim": "true", "access.token.claim": "false", "userinfo.token.claim": "false"}}
	client := map[string]any{"clientId": o.client, "enabled": true, "protocol": "openid-connect", "publicClient": false, "secret": secret, "standardFlowEnabled": true,
		"redirectUris": []string{o.front.URL + "/login/callback"}, "protocolMappers": []any{mapper},
		"attributes": map[string]string{"pkce.code.challenge.method": "S256", "backchannel.logout.url": o.back.URL + "/logout/back-channel", "backchannel.logout.session.required": "true"}}
	for _, f := range change {
		f(o, client)
	}
	s.admin(t, http.MethodPost, "/admin/realms/docket/clients", client, nil)
	o.start(t)
	return o
}

// start starts the desk, also after a stop.
func (o *office) start(t *testing.T) {
	t.Helper()
	environ := []string{"DOCKET_DATABASE_URL=" + o.db.URL, "DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_HTTP_ADDR=127.0.0.1:0", "DOCKET_DESK_API_ADDR=" + o.addr,
		"DOCKET_DESK_OIDC_ISSUER=" + o.url + "/realms/docket", "DOCKET_DESK_OIDC_CLIENT_ID=" + o.client, "DOCKET_DESK_OIDC_REDIRECT_URL=" + o.front.URL + "/login/callback",
		"DOCKET_DESK_OIDC_GROUPS=docket-viewers:viewer,docket-operators:operator", "DOCKET_DESK_OIDC_LABEL=Keycloak"}
	if !o.public {
		environ = append(environ, "DOCKET_DESK_OIDC_CLIENT_SECRET="+secret)
	}
	s, _, err := config.LoadWith(config.Desk, environ, desk.Judges())
	if err != nil {
		t.Fatal(err)
	}
	p, err := desk.New(s, zerolog.New(&o.log), prometheus.NewRegistry(), desk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stopped := false
	o.stop = func() {
		if stopped {
			return
		}
		stopped = true
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		p.Close()
	}
	t.Cleanup(o.stop)
	b := o.browser(t)
	eventually(t, time.Minute, "the desk serves", func() bool { return b.get("/login").status == http.StatusOK })
}
