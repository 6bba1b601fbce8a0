package console

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"docket/internal/desk/api"
	"docket/internal/desk/console/session"
)

// Names of the cookie. A browser takes the first only with Secure, over TLS or from its own machine, and only for
// this very host.
const (
	secureCookie = "__Host-docket"
	plainCookie  = "docket"
)

// forwarding are headers that a proxy adds.
var forwarding = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// plain reports whether a browser could not keep a cookie with Secure: it is on this machine, and no proxy is between.
// A proxy may have TLS, and may write a loopback address into Host. No browser speaks HTTP/1.0, but proxies do.
func (c *Console) plain(r *http.Request) bool {
	if !c.Plain || r.TLS != nil || !r.ProtoAtLeast(1, 1) {
		return false
	}
	for _, name := range forwarding {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	return loopback(r.Host) && loopback(r.RemoteAddr)
}

// loopback reports whether an address with or without a port is on this machine.
func loopback(addr string) bool {
	host := addr
	if h, _, err := net.SplitHostPort(addr); err == nil {
		host = h
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}

func (c *Console) cookieName(r *http.Request) string {
	if c.plain(r) {
		return plainCookie
	}
	return secureCookie
}

func (c *Console) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{Name: c.cookieName(r), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: !c.plain(r), SameSite: http.SameSiteStrictMode}
}

// loginFor is the login page that leads back to a request.
func loginFor(r *http.Request) string {
	if r.Method != http.MethodGet || r.URL.Path == "/" {
		return "/login"
	}
	return "/login?" + url.Values{"next": {r.URL.RequestURI()}}.Encode()
}

// backFor is the login page for a person who may be logged in: see [Console.strict]. It leads on then, so nobody goes in circles.
func backFor(r *http.Request) string {
	return "/login?" + url.Values{"next": {r.URL.RequestURI()}, "back": {"1"}}.Encode()
}

// localPath returns a path of this server, and / for everything else. A browser reads // and /\ as another host.
func localPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.User != nil || !strings.HasPrefix(text, "/") ||
		strings.HasPrefix(text, "//") || strings.ContainsRune(text, '\\') || strings.HasPrefix(u.Path, "//") || u.Path == "/login" {
		return "/"
	}
	return u.RequestURI()
}

// loginPage is the content of the login page.
type loginPage struct {
	Next, Wrong, Hint string
	Ended             bool
	Insecure          bool
	OpenID            string // the label of the other login; empty: there is none
	OpenIDURL         string
	ElsewhereURL      string // where a person who is logged out here can log out of the provider
}

// loginPage makes the page. Every login page has the same ways in.
func (c *Console) loginPage(in *request, out loginPage) page {
	out.Insecure = c.insecure(in.Request)
	if c.OpenID != nil {
		out.OpenID, out.OpenIDURL = c.OpenID.Label, beginURL(out.Next, false)
		if out.Ended && in.URL.Query().Get("ended") == string(session.OpenID) {
			out.ElsewhereURL = c.OpenID.Provider.LogoutURL()
		}
	}
	return page{name: "login", title: "Log in", body: out}
}

func (c *Console) loginForm(in *request) (page, error) {
	q := in.URL.Query()
	next := localPath(q.Get("next"))
	if secret, is := c.presented(in); is && q.Has("back") {
		if found, err := c.find(in, secret); err == nil {
			if _, stands := c.standing(found, secret); stands {
				return page{to: next}, nil
			}
		}
	}
	return c.loginPage(in, loginPage{Next: next, Ended: q.Has("ended")}), nil
}

// insecure reports whether the browser seems to ask without TLS from another machine, so that it keeps no cookie.
func (c *Console) insecure(r *http.Request) bool {
	return r.TLS == nil && !c.plain(r) && r.Header.Get("X-Forwarded-Proto") != "https" && strings.HasPrefix(r.Header.Get("Origin"), "http://")
}

// login takes a token once. It always makes a new session, and ends the one of before.
func (c *Console) login(in *request) (page, error) {
	next := localPath(in.PostForm.Get("next"))
	secret := session.NewSecret()
	who, bound, refused := c.api.Login(in.RemoteAddr, strings.TrimSpace(in.PostForm.Get("token")), secret[:])
	if refused != nil {
		out := loginPage{Next: next, Wrong: "This token is not known here.", Hint: "Check that it is complete and has not expired."}
		if refused.Status == http.StatusTooManyRequests {
			out.Wrong, out.Hint = "Too many logins failed from this address.", "Wait a moment, then try again."
		}
		p := c.loginPage(in, out)
		p.status = refused.Status
		return p, nil
	}
	if before, is := c.presented(in); is {
		if err := c.sessions.End(in.ctx(), before.ID()); err != nil {
			return page{}, away(err)
		}
	}
	s := session.Begin(secret, who.Name, who.Role.String(), session.Token, bound, in.now)
	if err := c.sessions.Create(in.ctx(), s); err != nil {
		return page{}, away(err)
	}
	c.log.Info().Str("operator", who.Name).Str("role", who.Role.String()).Str("remote", in.RemoteAddr).Msg("logged in to console")
	return page{to: next, cookie: c.cookie(in.Request, secret.Text(), int(session.Lasts.Seconds()))}, nil
}

// presented is the secret in the cookie of a request.
func (c *Console) presented(in *request) (session.Secret, bool) {
	cookie, err := in.Cookie(c.cookieName(in.Request))
	if err != nil {
		return session.Secret{}, false
	}
	secret, err := session.ParseSecret(cookie.Value)
	return secret, err == nil
}

// endedURL is the login page after a logout.
func endedURL(who api.Caller) string {
	if who.By == api.ByOpenID {
		return "/login?ended=" + string(session.OpenID)
	}
	return "/login?ended"
}

func (c *Console) logout(in *request) (page, error) {
	if in.logged {
		if err := c.sessions.End(in.ctx(), in.secret.ID()); err != nil {
			return page{}, away(err)
		}
		in.ended = true
		c.log.Info().Str("operator", in.who.Name).Msg("logged out of console")
	}
	return page{to: endedURL(in.who), cookie: c.cookie(in.Request, "", -1)}, nil
}

// logoutAll ends every session of the caller, also those of other browsers.
func (c *Console) logoutAll(in *request) (page, error) {
	n, err := c.sessions.EndAll(in.ctx(), in.who.Name)
	if err != nil {
		return page{}, away(err)
	}
	in.ended = n > 0
	c.log.Info().Str("operator", in.who.Name).Int64("sessions", n).Msg("all console sessions ended")
	return page{to: endedURL(in.who), cookie: c.cookie(in.Request, "", -1)}, nil
}
