// Package console is the web console of the desk: pages of HTML for people, beside the API for programs.
//
// Pages are text without JavaScript; a script only refreshes and copies. All text of others passes [visible], so that
// no character can hide or turn what a page says.
package console

import (
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/api"
	"docket/internal/desk/console/session"
	"docket/internal/desk/console/views"
)

// Config holds the settings of the console.
type Config struct {
	Version string
	// Plain says that the listener is on loopback and has no TLS. A browser on this machine that asks a loopback address
	// then gets a cookie without Secure, as it would drop one with it.
	Plain bool
	// OpenID is the login by OpenID Connect; nil: there is none.
	OpenID *OpenID
	Now    func() time.Time // time.Now
	// Views keeps named filters; nil: there are none.
	Views views.Store
	// BodyTimeout limits the reading of a form, 15 s.
	BodyTimeout time.Duration
	Sight       Sight
}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	Config
	api       *api.Handler
	ask       api.Inside
	sessions  session.Store
	log       zerolog.Logger
	mux       *http.ServeMux
	screens   map[string]screen // by pattern; a request without a screen is answered with 404
	live      chan struct{}     // limits the requests that refresh a page
	public    chan struct{}     // limits the requests to routes without a login
	streams   *streams
	watching  *watching
	doctor    doctor
	crossSite *http.CrossOriginProtection
	pages     pages
	assets    assets
	sealKey   [32]byte     // for callers without a session
	untouched atomic.Int64 // when it was last logged that a use was not noted, in Unix seconds
	exporting chan struct{}
}

// New makes the console over an API.
func New(c Config, h *api.Handler, sessions session.Store, log zerolog.Logger) (*Console, error) {
	if h == nil || sessions == nil {
		return nil, errors.New("the console has no API or no sessions")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.BodyTimeout == 0 {
		c.BodyTimeout = 15 * time.Second
	}
	s := &Console{Config: c, api: h, ask: h.Inside(), sessions: sessions, log: log, mux: http.NewServeMux(), screens: map[string]screen{},
		live: make(chan struct{}, max(1, h.MaxInFlight()/4)), public: make(chan struct{}, max(1, h.MaxInFlight()/4)), streams: newStreams(h.MaxInFlight() / 4), watching: newWatching(h.Inside(), c.Sight, c.Now, log), crossSite: http.NewCrossOriginProtection(),
		exporting: make(chan struct{}, maxExports)}
	_, _ = rand.Read(s.sealKey[:]) // it never fails
	own, err := embedded()
	if err != nil {
		return nil, err
	}
	s.assets, s.pages = own.assets, maps.Clone(own.pages)
	for _, one := range s.table() {
		s.screens[one.pattern] = one
		s.mux.HandleFunc(one.pattern, s.serve(one))
	}
	return s, nil
}

// screen is a route of the console. Its zero role lets nobody in.
type screen struct {
	pattern string
	role    api.Role
	public  bool // without a login
	handle  func(*Console, *request) (page, error)
}

// table has every route of the console, each with its role.
func (c *Console) table() []screen {
	all := []screen{
		{pattern: "GET /assets/{version}/{name}", public: true, handle: (*Console).asset},
		{pattern: "GET /login", public: true, handle: (*Console).loginForm},
		{pattern: "POST /login", public: true, handle: (*Console).login},
		{pattern: "POST /logout", role: api.Viewer, handle: (*Console).logout},
		{pattern: "POST /logout-all", role: api.Viewer, handle: (*Console).logoutAll},
		{pattern: "GET /{$}", role: api.Viewer, handle: (*Console).now},
		{pattern: "GET /lanes", role: api.Viewer, handle: (*Console).lanes},
		{pattern: "GET /events/{page}", role: api.Viewer, handle: (*Console).events},
	}
	if c.Sight.Check != nil {
		all = append(all, screen{pattern: "GET /check", role: api.Viewer, handle: (*Console).findings},
			screen{pattern: "POST /check", role: api.Operator, handle: (*Console).runCheck})
	}
	return slices.Concat(all, c.reading(), c.deciding(), c.caring(), c.auditing(), c.archiving(), c.saving(), c.signing())
}

// reading are the screens about stored decisions.
func (c *Console) reading() (all []screen) {
	if c.ask.Has("search-decisions") {
		all = append(all,
			screen{pattern: "GET /decisions", role: api.Viewer, handle: (*Console).decisions},
			screen{pattern: "GET /export/decisions", role: api.Viewer, handle: (*Console).export},
			screen{pattern: "GET /decisions/{id}", role: api.Viewer, handle: (*Console).why},
			screen{pattern: "GET /compare", role: api.Auditor, handle: (*Console).compare},
			screen{pattern: "GET /rates", role: api.Viewer, handle: (*Console).rates})
	}
	if c.ask.Has("follow-decisions") {
		all = append(all, screen{pattern: "GET /events/decisions", role: api.Viewer, handle: (*Console).tail})
	}
	if c.ask.Has("list-flips") {
		all = append(all,
			screen{pattern: "GET /flips", role: api.Auditor, handle: (*Console).flips},
			screen{pattern: "GET /subjects/{subject}", role: api.Auditor, handle: (*Console).subject},
			screen{pattern: "GET /subjects", role: api.Auditor, handle: (*Console).subject})
	}
	if c.ask.Has("where-is") {
		all = append(all, screen{pattern: "GET /where", role: api.Viewer, handle: (*Console).where})
	}
	return all
}

// deciding are the screens about dead letters.
func (c *Console) deciding() []screen {
	all := []screen{
		{pattern: "GET /dead-letters", role: api.Viewer, handle: (*Console).deadLetters},
		{pattern: "GET /dead-letters/groups/{fingerprint}", role: api.Viewer, handle: (*Console).group},
		{pattern: "GET /dead-letters/{id}", role: api.Viewer, handle: (*Console).letter},
		{pattern: "POST /dead-letters/{id}/resolve", role: api.Operator, handle: (*Console).resolve},
		{pattern: "POST /dead-letters/{id}/retry", role: api.Operator, handle: (*Console).retryLetter},
		{pattern: "GET /jobs/{id}", role: api.Viewer, handle: (*Console).job},
		{pattern: "POST /jobs/{id}/stop", role: api.Operator, handle: (*Console).stopJob},
		{pattern: "POST /jobs/{id}/resume", role: api.Operator, handle: (*Console).resumeJob},
	}
	if c.ask.Has("try-dead-letters") { // without a dry run no group can be retried
		all = append(all,
			screen{pattern: "POST /dead-letters/groups/{fingerprint}/dry-run", role: api.Operator, handle: (*Console).dryRun},
			screen{pattern: "POST /dead-letters/groups/{fingerprint}/retry", role: api.Operator, handle: (*Console).retry})
	}
	return all
}
