package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/console/openid"
	"docket/internal/desk/console/session"
)

// OpenID is the login by OpenID Connect.
type OpenID struct {
	Provider *openid.Provider
	Groups   api.GroupRoles
	Label    string        // of the provider, for people
	Lasts    time.Duration // of a session at most, up to [session.Lasts]
}

// Names of the cookie of a login that is at the provider. It is Lax: the provider's redirect has to send it.
const (
	secureFlow = "__Host-docket-login"
	plainFlow  = "docket-login"
)

// CallbackPath is where the provider sends the browser back.
const CallbackPath = "/login/callback"

// signing are the screens of the login by OpenID Connect.
func (c *Console) signing() []screen {
	if c.OpenID == nil {
		return nil
	}
	return []screen{
		{pattern: "GET /login/oidc", public: true, handle: (*Console).beginOpenID},
		{pattern: "GET " + CallbackPath, public: true, handle: (*Console).callback},
		{pattern: "POST /logout/back-channel", public: true, handle: (*Console).backChannel},
	}
}

// beginURL is the link that begins a login. It is a link and no form: form-action would stop the redirect.
func beginURL(next string, other bool) string {
	q := url.Values{}
	if next != "/" && next != "" {
		q.Set("next", next)
	}
	if other {
		q.Set("other", "1")
	}
	if len(q) == 0 {
		return "/login/oidc"
	}
	return "/login/oidc?" + q.Encode()
}

func (c *Console) flowCookie(r *http.Request, value string, age int) *http.Cookie {
	name := secureFlow
	if c.plain(r) {
		name = plainFlow
	}
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: !c.plain(r), SameSite: http.SameSiteLaxMode}
}

// maxNext limits the address in the cookie of a login, in bytes. A browser takes 4 kB of a cookie.
const maxNext = 1500

// beginOpenID sends the browser to the provider.
func (c *Console) beginOpenID(in *request) (page, error) {
	q := in.URL.Query()
	next := localPath(q.Get("next"))
	if len(next) > maxNext {
		next = "/"
	}
	var before []byte
	if secret, is := c.presented(in); is {
		id := secret.ID()
		before = id[:]
	}
	to, sealed, err := c.OpenID.Provider.Begin(in.ctx(), next, before, q.Has("other"))
	if err != nil {
		return c.unsigned(in, err, next), nil
	}
	return page{to: to, cookie: c.flowCookie(in.Request, sealed, int(openid.Lasts.Seconds()))}, nil
}

// callback ends a login at the provider. The redirect brings no cookie of a session, as that is strict. So the answer is
// a page, and the browser continues from there.
func (c *Console) callback(in *request) (page, error) {
	q := in.URL.Query()
	sealed := ""
	if cookie, err := in.Cookie(c.flowCookie(in.Request, "", 0).Name); err == nil {
		sealed = cookie.Value
	}
	flow, err := c.OpenID.Provider.Read(sealed, q.Get("state"))
	if err != nil { // the cookie may belong to a login that somebody wants to disturb, so it stays
		return c.unsigned(in, err, "/"), nil
	}
	next := localPath(flow.Next)
	out, err := c.finish(in, flow, next)
	out.also = c.flowCookie(in.Request, "", -1)
	return out, err
}

// finish makes the session of a person whom the provider vouches for. It is always a new one.
func (c *Console) finish(in *request, flow openid.Flow, next string) (page, error) {
	person, err := c.OpenID.Provider.Finish(in.ctx(), flow, in.URL.Query())
	if err != nil {
		return c.unsigned(in, err, next), nil
	}
	role := c.OpenID.Groups.Role(person.Groups)
	if role == api.Nobody {
		c.api.LoginFailed()
		c.log.Warn().Str("operator", person.Name).Str("subject", person.Subject).Int("groups", len(person.Groups)).
			Str("hint", "give one of this person's groups a role in DOCKET_DESK_OIDC_GROUPS").Msg("login without a role")
		return page{name: "signin", title: "No role here", status: http.StatusForbidden, body: signinPage{Heading: "You have no role at this desk",
			Detail: "You are logged in as " + person.Name + ", and none of your groups has a role here.", Hint: "Ask the operator of this desk, or for another group.", OtherURL: beginURL(next, true)}}, nil
	}
	secret := session.NewSecret()
	bound, err := c.OpenID.Provider.Bind(secret[:], person.Name, c.OpenID.Groups.Known(person.Groups))
	if err != nil {
		return page{}, err
	}
	s := session.Begin(secret, person.Name, role.String(), session.OpenID, bound, in.now)
	s.Origin = session.Origin{Subject: person.Subject, Session: person.Session, Login: flow.ID()}
	if ends := s.CreatedAt.Add(c.OpenID.Lasts); c.OpenID.Lasts > 0 && ends.Before(s.EndsAt) {
		s.EndsAt = ends
	}
	switch err := c.sessions.Create(in.ctx(), s); {
	case errors.Is(err, session.ErrUsed):
		return c.unsigned(in, &openid.Error{Kind: openid.Unknown, Reason: "the login was used already"}, next), nil
	case err != nil:
		return page{}, away(err)
	}
	switch over, err := c.sessions.Ended(in.ctx(), s.Origin, person.IssuedAt, in.now); {
	case err != nil: // nobody has the cookie of the session
		return page{}, away(err)
	case over: // the logout came before the session was there
		if err := c.sessions.End(in.ctx(), s.ID); err != nil {
			return page{}, away(err)
		}
		return c.unsigned(in, &openid.Error{Kind: openid.Refused, Reason: "the provider ended the session during the login", Text: "Your session there ended meanwhile."}, next), nil
	}
	if len(flow.Before) == len(session.ID{}) {
		if err := c.sessions.End(in.ctx(), session.ID(flow.Before)); err != nil {
			return page{}, away(err)
		}
	}
	c.log.Info().Str("operator", person.Name).Str("subject", person.Subject).Str("role", role.String()).Str("remote", in.RemoteAddr).Msg("logged in to console")
	return page{name: "signin", title: "Logged in", refresh: ascii(next), body: signinPage{Heading: "You are logged in", Detail: "The page continues by itself.", NextURL: next},
		cookie: c.cookie(in.Request, secret.Text(), int(s.EndsAt.Sub(s.CreatedAt).Seconds()))}, nil
}

// ascii escapes what a header cannot hold.
func ascii(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; c > ' ' && c < 0x7f {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// signinPage says how a login at the provider ended.
type signinPage struct {
	Heading, Detail, Hint string
	Said                  string // by the provider
	NextURL               string // where the person wanted to go
	LoginURL, OtherURL    string // again, and as somebody else
}

// unsigned says why nobody is logged in. The log has no code and no token.
func (c *Console) unsigned(in *request, err error, next string) page {
	c.api.LoginFailed()
	out, status := signinPage{Heading: "The login failed", LoginURL: loginURL(next)}, http.StatusBadRequest
	var failed *openid.Error
	if !errors.As(err, &failed) {
		failed = &openid.Error{Kind: openid.Wrong, Reason: "unknown"}
	}
	switch failed.Kind {
	case openid.Away:
		status, out.Heading, out.Detail = http.StatusServiceUnavailable, c.OpenID.Label+" does not answer", "Nobody can log in there just now."
		out.Hint = "Try again in a moment. A token of this desk still works."
	case openid.Busy:
		status, out.Heading, out.Detail, out.Hint = http.StatusServiceUnavailable, "The desk is busy", "Too many logins wait for "+c.OpenID.Label+".", "Try again in a moment."
	case openid.Unknown:
		out.Detail, out.Hint = "It was not begun in this browser, took longer than 10 minutes, or was used already.", "Log in again from the start."
	case openid.Refused:
		status, out.Detail, out.Said = http.StatusForbidden, c.OpenID.Label+" did not log you in.", failed.Text
		out.Hint, out.OtherURL = "Log in again, or as somebody else.", beginURL(next, true)
	case openid.Unnamed:
		status, out.Detail = http.StatusForbidden, c.OpenID.Label+" sent no name that the audit can hold: letters, digits, spaces and . _ @ + - alone, 64 at most. An email address counts only if it is verified."
		out.Hint = "Ask the operator of this desk to choose another claim in DOCKET_DESK_OIDC_NAME."
	default:
		status, out.Detail = http.StatusBadGateway, "The answer of "+c.OpenID.Label+" cannot be trusted."
		out.Hint = "The desk's log says why. Ask its operator."
	}
	c.log.Warn().Err(failed).Str("remote", in.RemoteAddr).Str("hint", "see docs/console.md, Log in by OpenID Connect").Msg("login by OpenID Connect failed")
	return page{name: "signin", title: out.Heading, status: status, body: out}
}

// loginURL is the login page that leads to a path.
func loginURL(next string) string {
	if next == "/" || next == "" {
		return "/login"
	}
	return "/login?" + url.Values{"next": {next}}.Encode()
}

// retryLogout is when a provider may send a logout again, in seconds.
const retryLogout = "5"

// backChannel ends sessions that the provider has ended. The token in the form proves that the provider sent it.
func (c *Console) backChannel(in *request) (page, error) {
	from, err := c.OpenID.Provider.Ended(in.ctx(), in.PostForm.Get("logout_token"))
	if err != nil {
		c.log.Warn().Err(err).Str("remote", in.RemoteAddr).Str("hint", "see docs/console.md, Log in by OpenID Connect").Msg("logout of provider refused")
		var failed *openid.Error
		if errors.As(err, &failed) && (failed.Kind == openid.Busy || failed.Kind == openid.Away) { // the token may be fine
			return page{silent: true, status: http.StatusServiceUnavailable, after: retryLogout}, nil
		}
		return page{silent: true, status: http.StatusBadRequest}, nil
	}
	n, err := c.sessions.EndFrom(in.ctx(), session.Origin{Subject: from.Subject, Session: from.Session}, from.IssuedAt, in.now)
	if err != nil {
		return page{}, away(err)
	}
	in.ended = n > 0
	c.log.Info().Str("subject", from.Subject).Int64("sessions", n).Msg("console sessions ended by provider")
	return page{silent: true}, nil
}

// standing is who a session belongs to, with the role that the groups have now. Without one, or without the provider
// that vouched, it belongs to nobody.
func (o *OpenID) standing(s session.Session, secret session.Secret) (api.Caller, bool) {
	if o == nil {
		return api.Caller{}, false
	}
	groups, err := o.Provider.Bound(secret[:], s.Name, s.Credential)
	if err != nil {
		return api.Caller{}, false
	}
	role := o.Groups.Role(groups)
	return api.Caller{Name: s.Name, Role: role, By: api.ByOpenID}, role != api.Nobody
}
