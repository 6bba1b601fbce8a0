package console

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/console/session"
)

// request is an admitted request.
type request struct {
	*http.Request
	who    api.Caller
	secret session.Secret // of the session; zero: there is none
	logged bool           // there is a session
	now    time.Time
	// streaming says that a part of the answer is sent.
	streaming bool
	public    bool // the route needs no login
	// ended says that the request ended sessions, so that streams have to ask for theirs.
	ended bool
}

func (r *request) ctx() context.Context { return r.Context() }

// part reports whether the script asks for a part of a page that is shown already.
func part(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("HX-Request") == "true"
}

// policy lets a page load only files of its own server, and run no script inside the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

func harden(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// maxForm limits a form, in bytes.
const maxForm = 64 << 10

// ServeHTTP answers every request that the API does not.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := &request{Request: r, now: c.Now()}
	pattern := "none"
	defer func() {
		if p := recover(); p != nil {
			c.panicked(w, in, pattern, p)
		}
	}()
	harden(w.Header())
	_, found := c.mux.Handler(r)
	one, known := c.screens[found]
	if known {
		pattern = found
	}
	in.public = one.public
	leave, err := c.occupy(in) // before the look for a session, which asks the database
	if err != nil {
		c.fail(w, in, err)
		return
	}
	defer leave()
	if !one.public {
		refused, err := c.admit(w, in)
		if err != nil {
			c.fail(w, in, err)
			return
		}
		if refused {
			return
		}
	}
	if err := c.check(in, one, known); err != nil {
		c.fail(w, in, err)
		return
	}
	if err := c.form(w, in); err != nil {
		c.fail(w, in, err)
		return
	}
	c.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, in)))
	if in.ended {
		c.streams.recheck()
	}
}

type requestKey struct{}

// serve answers an admitted request. The multiplexer has set its path values.
func (c *Console) serve(one screen) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, admitted := r.Context().Value(requestKey{}).(*request)
		if !admitted {
			panic(errNotAdmitted)
		}
		in.Request = r
		out, err := one.handle(c, in)
		if err != nil {
			c.fail(w, in, err)
			return
		}
		if out.stream != nil {
			err = c.serveStream(w, in, out.stream)
		}
		if err != nil {
			c.fail(w, in, err)
			return
		}
		if out.stream == nil {
			c.write(w, in, out)
		}
	}
}

var errNotAdmitted = errors.New("a request came past the guard")

// check refuses what the table does not allow. Without an entry it is refused.
func (c *Console) check(in *request, one screen, known bool) error {
	if !known {
		return &api.Problem{Status: http.StatusNotFound, Detail: "There is no page at this address.", Hint: "Choose one from the menu."}
	}
	if err := c.crossSite.Check(in.Request); err != nil {
		return &api.Problem{Status: http.StatusForbidden, Detail: "The request comes from a page of another site.", Hint: "Open the console and act there."}
	}
	if one.public {
		return nil
	}
	if one.role == api.Nobody || in.who.Role < one.role {
		c.log.Warn().Str("operator", in.who.Name).Str("role", in.who.Role.String()).Str("route", one.pattern).
			Str("hint", "give this operator a higher role if the request was intended").Msg("request refused by role")
		return &api.Problem{Status: http.StatusForbidden, Detail: "This needs the role " + one.role.String() + "; yours is " + in.who.Role.String() + ".",
			Hint: "Ask somebody with that role, or for that role."}
	}
	return nil
}

// admit finds who asks. If it refuses, it has answered.
func (c *Console) admit(w http.ResponseWriter, in *request) (refused bool, err error) {
	if err := c.bySession(w, in); err != nil {
		return true, err
	}
	if in.logged {
		return false, nil
	}
	if who, ok := c.api.Certified(in.Request); ok {
		in.who = who
		return false, nil
	}
	to := loginFor(in.Request)
	switch {
	case background(in.Request):
		w.Header().Set("HX-Redirect", to)
		http.Error(w, "log in again", http.StatusUnauthorized)
	case !strings.Contains(in.Header.Get("Accept"), "text/html"):
		http.Error(w, "there is no session; log in at /login, or use the API below /api/v1 with a token", http.StatusUnauthorized)
	case in.Method != http.MethodGet:
		c.write(w, in, page{name: "signin", title: "Not logged in", status: http.StatusUnauthorized, body: signinPage{Heading: "You are not logged in",
			Detail: "The session has ended, so nothing was changed.",
			Hint:   "Log in in another tab. Then go back in this one with the button of the browser: it keeps what you typed.", LoginURL: to}})
	case c.strict(in):
		next := backFor(in.Request)
		c.write(w, in, page{name: "signin", title: "One moment", refresh: ascii(next), body: signinPage{Heading: "One moment", Detail: "The page continues by itself.", NextURL: next}})
	default:
		http.Redirect(w, in.Request, to, http.StatusSeeOther)
	}
	return true, nil
}

// strict reports whether the browser may have a cookie that it does not send, because a link of another site led here. It sends
// the cookie with what the page of this site asks for next.
func (c *Console) strict(in *request) bool {
	from := in.Header.Get("Sec-Fetch-Site")
	_, sent := c.presented(in)
	return !sent && (from == "cross-site" || from == "same-site")
}

// bySession finds the session of the cookie. One whose credential is gone is ended.
func (c *Console) bySession(w http.ResponseWriter, in *request) error {
	secret, is := c.presented(in)
	if !is {
		return nil
	}
	found, err := c.find(in, secret)
	if errors.Is(err, session.ErrNone) {
		return nil
	}
	if err != nil {
		return away(err)
	}
	who, stands := c.standing(found, secret)
	if !stands {
		c.log.Info().Str("operator", found.Name).Str("by", string(found.By)).Msg("console session ended with its credential")
		http.SetCookie(w, c.cookie(in.Request, "", -1))
		return away(c.sessions.End(in.ctx(), found.ID))
	}
	in.who, in.secret, in.logged = who, secret, true
	return nil
}

// find does not count a refresh as use: a page that is left open would never be idle.
func (c *Console) find(in *request, secret session.Secret) (session.Session, error) {
	s, err := c.sessions.Find(in.ctx(), secret.ID(), in.now)
	if err == nil && !background(in.Request) && s.Stale(in.now) {
		c.touch(in, s)
	}
	return s, err
}

// touch notes the use of a session. A database that takes no writes still answers questions, so an error ends nothing:
// the session is idle from the last use that was noted.
func (c *Console) touch(in *request, s session.Session) {
	err := c.sessions.Touch(in.ctx(), s.ID, in.now)
	if err == nil || in.ctx().Err() != nil { // the browser is gone
		return
	}
	now := in.now.Unix()
	if last := c.untouched.Load(); now-last >= 60 && c.untouched.CompareAndSwap(last, now) {
		c.log.Warn().Err(err).Str("hint", "sessions end 30 minutes after their last noted use; check whether the database takes writes").
			Msg("console session use not noted")
	}
}

// standing is who a session belongs to now, if its credential still counts.
func (c *Console) standing(s session.Session, secret session.Secret) (api.Caller, bool) {
	switch s.By {
	case session.Token:
		return c.api.Standing(s.Name, secret[:], s.Credential)
	case session.OpenID:
		return c.OpenID.standing(s, secret)
	}
	return api.Caller{}, false
}

// away is the problem of a store of sessions that does not answer.
func away(err error) error {
	if err == nil {
		return nil
	}
	return &storeError{err}
}

type storeError struct{ err error }

func (e *storeError) Error() string { return "sessions: " + e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// occupy takes a place among all requests, and among the refreshing ones. Those without a login have places of their own.
func (c *Console) occupy(in *request) (leave func(), err error) {
	r := in.Request
	busy := &api.Problem{Status: http.StatusServiceUnavailable, Detail: "The desk is busy.", Hint: "Try again in a moment."}
	if streamed(r) { // it waits for most of its time, so it takes no place of others
		if leave, ok := c.streams.occupy(); ok {
			return leave, nil
		}
		return nil, busy
	}
	if in.public { // anybody may send one, and send its body slowly
		select {
		case c.public <- struct{}{}:
			return func() { <-c.public }, nil
		default:
			return nil, busy
		}
	}
	if part(r) {
		select {
		case c.live <- struct{}{}:
		default:
			return nil, busy
		}
	}
	free, ok := c.api.Occupy()
	if !ok {
		if part(r) {
			<-c.live
		}
		return nil, busy
	}
	return func() {
		free()
		if part(r) {
			<-c.live
		}
	}, nil
}

// form reads the form of a request that changes something.
func (c *Console) form(w http.ResponseWriter, in *request) error {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(c.BodyTimeout)); err == nil {
		defer func() { _ = control.SetReadDeadline(time.Time{}) }() // it succeeded a moment ago
	}
	in.Body = http.MaxBytesReader(w, in.Body, maxForm)
	if err := in.ParseForm(); err != nil {
		return &api.Problem{Status: http.StatusBadRequest, Detail: "The form could not be read.", Hint: "Send it again from the page."}
	}
	return nil
}

// panicked answers for a handler that panicked. The value may contain a payload, so only the place is logged.
func (c *Console) panicked(w http.ResponseWriter, in *request, pattern string, p any) {
	if err, is := p.(error); is && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	c.log.Error().Str("route", pattern).Type("panic", p).Strs("at", frames()).Str("hint", "report this bug").Msg("console panicked")
	if in.streaming {
		return // the browser asks again
	}
	c.fail(w, in, &api.Problem{Status: http.StatusInternalServerError, Detail: "Something went wrong here.", Hint: "The desk's log has the place. Please report this bug."})
}

func frames() (places []string) {
	pcs := make([]uintptr, 24)
	found := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs)])
	for {
		f, more := found.Next()
		places = append(places, f.Function+":"+strconv.Itoa(f.Line))
		if !more {
			return places
		}
	}
}
