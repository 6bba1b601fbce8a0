package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/service/bearer"
)

// guard handles every request first, also those without a route. It authenticates the caller, and enforces all limits
// that handlers rely on.
type guard struct {
	auth      atomic.Pointer[Auth]
	throttle  *throttle
	rules     map[string]rule
	bodyTime  time.Duration
	slots     chan struct{}
	log       zerolog.Logger
	metrics   *metrics
	now       func() time.Time
	mux       *http.ServeMux
	crossSite *http.CrossOriginProtection
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(LevelHeader, strconv.Itoa(Level))
	begun := g.now()
	answer := &answered{ResponseWriter: w}
	pattern := "none"
	var c caller
	var refused *Problem
	defer func() {
		if p := recover(); p != nil {
			g.panicked(answer, pattern, p)
		}
		g.metrics.answered(pattern, answer.status(), g.now().Sub(begun))
		g.log.Debug().Str("operator", c.Name).Str("route", pattern).Int("status", answer.status()).
			Dur("took", g.now().Sub(begun)).Msg("request answered")
	}()
	harden(answer.Header())
	c, refused = g.admit(r)
	if refused == nil {
		pattern, refused = g.check(r, c)
	}
	if refused != nil {
		refused.write(answer)
		return
	}
	if refused = g.occupy(); refused != nil {
		refused.write(answer)
		return
	}
	defer g.leave()
	if refused = g.readBody(answer, r, g.rules[pattern].maxBody); refused != nil {
		refused.write(answer)
		return
	}
	g.mux.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
}

// harden sets the security headers of every answer: no caching, no sniffing, no scripts, no frames.
func harden(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

// admit returns the caller, or the problem. A client that showed a certificate in vain has to connect again to show another one.
func (g *guard) admit(r *http.Request) (caller, *Problem) {
	c, refused := g.known(r)
	if refused != nil && bearer.Showed(r.TLS) {
		if refused.header == nil {
			refused.header = http.Header{}
		}
		refused.header.Set("Connection", "close")
	}
	return c, refused
}

func (g *guard) known(r *http.Request) (caller, *Problem) {
	c, err := g.auth.Load().authenticate(r, g.now())
	if errors.Is(err, errNoCredentials) {
		g.metrics.failed(err)
		return caller{}, unauthenticated("there are no credentials")
	}
	if err == nil && c.By == byCertificate { // a certificate cannot be guessed
		return c, nil
	}
	if ok, wait := g.throttle.admit(r.RemoteAddr, c.Name, err != nil, g.now()); !ok {
		g.metrics.failed(errThrottled)
		return caller{}, problem(http.StatusTooManyRequests, "too many logins failed from this address", "wait, then send the right token").later(wait)
	}
	if err == nil {
		return c, nil
	}
	g.metrics.failed(err)
	if errors.Is(err, errExpiredToken) {
		g.log.Warn().Str("remote", r.RemoteAddr).Str("operator", c.Name).
			Str("hint", "give this operator a new token in DOCKET_DESK_API_TOKENS, or remove the entry").Msg("desk token expired")
		return caller{}, unknown()
	}
	g.log.Warn().Str("remote", r.RemoteAddr).Str("reason", err.Error()).Msg("login to API failed")
	if errors.Is(err, errUnknownClient) {
		return caller{}, problem(http.StatusForbidden, "the certificate's common name has no role", "ask for an entry in DOCKET_DESK_API_CLIENTS")
	}
	return caller{}, unknown()
}

// unknown also answers for an expired token, so that nobody learns that it once was valid.
func unknown() *Problem { return unauthenticated("the credentials are not known here") }

func unauthenticated(detail string) *Problem {
	p := problem(http.StatusUnauthorized, detail, "send Authorization: Bearer and a token of DOCKET_DESK_API_TOKENS, or a client certificate that is known here")
	p.header = http.Header{"Www-Authenticate": {`Bearer realm="docket"`}}
	return p
}

// check finds the route. It checks that c may use it, and that the request fits it.
func (g *guard) check(r *http.Request, c caller) (string, *Problem) {
	handler, pattern := g.mux.Handler(r)
	pattern = strings.Replace(pattern, decisionSlash, decisionName, 1)
	rule, known := g.rules[pattern]
	if !known || unnamed(r) {
		return "none", noRoute(handler, r)
	}
	if rule.role == Nobody || c.Role < rule.role {
		g.log.Warn().Str("operator", c.Name).Str("role", c.Role.String()).Str("route", pattern).
			Str("hint", "give this operator a higher role if the request was intended").Msg("request refused by role")
		return pattern, problem(http.StatusForbidden, "this needs the role "+rule.role.String()+"; yours is "+c.Role.String(),
			"ask somebody with that role, or for that role")
	}
	if err := g.crossSite.Check(r); err != nil {
		return pattern, problem(http.StatusForbidden, "the request comes from a page of another site", "use a program, not a browser's page")
	}
	for name, values := range r.URL.Query() {
		if len(values) != 1 && !slices.Contains(rule.many, name) || slices.Contains(values, "") {
			p := problem(http.StatusUnprocessableEntity, "a query parameter is there twice, or empty", "leave it away, or give it one value")
			p.Faults = []Fault{{Location: withoutValues("query." + name), Message: "one value that is not empty"}}
			return pattern, p
		}
	}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			return pattern, problem(http.StatusUnsupportedMediaType, "the body is not said to be JSON", "send Content-Type: application/json")
		}
	}
	return pattern, nil
}

// noRoute returns the multiplexer's status: 404, or 405 with the allowed methods.
func noRoute(h http.Handler, r *http.Request) *Problem {
	probe := &discarded{header: http.Header{}}
	h.ServeHTTP(probe, r)
	if probe.code == http.StatusMethodNotAllowed {
		p := problem(probe.code, "this cannot be done here", "see Allow for what can")
		p.header = http.Header{"Allow": probe.header["Allow"]}
		return p
	}
	return problem(http.StatusNotFound, "there is nothing here", "GET /api/v1/openapi.json lists what there is")
}

// occupy takes one of the places for running requests.
func (g *guard) occupy() *Problem {
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
		return problem(http.StatusServiceUnavailable, "too much is being worked on", "try again").later(time.Second)
	}
}

func (g *guard) leave() { <-g.slots }

// readBody reads the whole body before anything is decided. Then it removes the deadline of the connection, because
// one that passes during a handler would cancel its context.
func (g *guard) readBody(w http.ResponseWriter, r *http.Request, most int64) *Problem {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(g.bodyTime)); err == nil {
		defer func() { _ = control.SetReadDeadline(time.Time{}) }() // it succeeded a moment ago
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problem(http.StatusRequestEntityTooLarge, "the body is too large", hintOf(http.StatusRequestEntityTooLarge))
	case err != nil:
		return problem(http.StatusRequestTimeout, "the body did not come", "send it again")
	}
	if wrong := ambiguousJSON(body); wrong != "" {
		return faulty("body", wrong)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// panicked answers for a handler that panicked. The value may contain a payload, so only the place is logged.
func (g *guard) panicked(w *answered, pattern string, p any) {
	if err, is := p.(error); is && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	g.metrics.panics.Inc()
	g.log.Error().Str("route", pattern).Type("panic", p).Strs("at", frames()).Str("hint", "report this bug").Msg("request handler panicked")
	if w.code == 0 {
		problem(http.StatusInternalServerError, "something went wrong here", hintOf(http.StatusInternalServerError)).write(w)
		return
	}
	panic(http.ErrAbortHandler)
}

// answered remembers the status.
type answered struct {
	http.ResponseWriter
	code int
}

func (a *answered) WriteHeader(code int) {
	if a.code == 0 {
		a.code = code
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answered) Write(b []byte) (int, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is needed by [http.ResponseController].
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answered) status() int {
	if a.code == 0 {
		return http.StatusOK
	}
	return a.code
}

type discarded struct {
	header http.Header
	code   int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) WriteHeader(code int)        { d.code = code }
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
