package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/record/escape"
)

// Config holds the settings of the API. Zero values mean the defaults below.
type Config struct {
	Version string
	Lease   time.Duration // how long a retry may go without news; required
	// MaxRecordBytes is how large a record may be that the programs read. The API tells it to callers.
	MaxRecordBytes int64

	MaxBody       int64         // limit for a request, 24 MiB: the largest record in base64
	OperatorLimit int64         // limit for a job of a caller who is not an admin, 1000 letters
	Timeout       time.Duration // time limit of a request, 30 s
	LongTimeout   time.Duration // time limit of a dry run or a search in Kafka, 5 min
	BodyTimeout   time.Duration // time limit of reading a body, 15 s
	MaxInFlight   int           // running requests, 64; dry runs and searches in Kafka 2 of them, requests that follow a quarter
	FollowEvery   time.Duration // pause between two looks for requests that follow, 1 s
	Registry      prometheus.Registerer
	Now           func() time.Time // for failed logins and certificates, time.Now
}

func (c Config) withDefaults() Config {
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.MaxBody == 0 {
		c.MaxBody = 24 << 20
	}
	if c.OperatorLimit == 0 {
		c.OperatorLimit = 1000
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.LongTimeout == 0 {
		c.LongTimeout = 5 * time.Minute
	}
	if c.BodyTimeout == 0 {
		c.BodyTimeout = 15 * time.Second
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 64
	}
	if c.FollowEvery == 0 {
		c.FollowEvery = time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Book is the part of the ledger that the API needs. Every [ledger.Book] is one.
type Book interface {
	List(ctx context.Context, f ledger.Filter, p ledger.Page) (ledger.List, error)
	Show(ctx context.Context, id string) (ledger.Entry, error)
	Claims(ctx context.Context, decisionID string, n int) ([]ledger.Entry, error)
	Surplus(ctx context.Context, all bool, after int64, n int) ([]ledger.Surplus, error)
	OrderSurplus(ctx context.Context, id int64, by ledger.Actor) error
	Desks(ctx context.Context, within time.Duration) ([]string, error)
	History(ctx context.Context, id string) ([]ledger.Audit, []ledger.Sending, error)
	Groups(ctx context.Context, f ledger.Filter) ([]ledger.Group, error)
	Report(ctx context.Context) ([]ledger.ReportLine, error)
	Retry(ctx context.Context, ids []string, lease time.Duration, by ledger.Actor) ([]ledger.Outcome, error)
	Resolve(ctx context.Context, ids []string, by ledger.Actor) ([]ledger.Outcome, error)
	Edit(ctx context.Context, id string, seen ledger.Version, value []byte, diff string, lease time.Duration, by ledger.Actor) error
	ledger.Proposals
	ledger.Cases
	CreateJob(ctx context.Context, j ledger.Job) (ledger.Job, error)
	Job(ctx context.Context, id int64) (ledger.Job, error)
	ListJobs(ctx context.Context, before int64, n int) ([]ledger.Job, error)
	StopJob(ctx context.Context, id int64, why string, by ledger.Actor) (ledger.Job, error)
	ResumeJob(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error)
}

// Ports are the sources of the API. Routes with a nil port do not exist, except for the report, which then has no
// horizon.
type Ports struct {
	Book    Book
	Trial   Trial
	Horizon Horizon
	// Backlog counts the dead letters that no desk has entered; nil: they are unknown.
	Backlog func(ctx context.Context) (worker.Backlog, error)
	// Decisions are the stored ones. They can be followed if they are also [Places].
	Decisions reader.Store
	// States are the newest answers of subjects, and their changes.
	States state.Store
	// Question explains decisions; its limit of similar ones is the caller's.
	Question reader.Question
	// WhereIs looks for a record, named by TOPIC/PARTITION/OFFSET or a decision id, in every home.
	WhereIs func(ctx context.Context, query string) (Whereabouts, error)
	// Elsewhere looks for a decision id in every home; nil: only in the rows and the ledger. It limits concurrent
	// lookups.
	Elsewhere func(ctx context.Context, id string) (lookup.Answer, error)
	// Around is Elsewhere for an id that has a row; nil: Elsewhere does it.
	Around func(ctx context.Context, id string) (lookup.Answer, error)
	// Check checks what Docket relies on, as docket check does, but for the spools.
	Check func(ctx context.Context) []Finding
	// Verify checks that no record was lost, as docket verify does. Its limits end it. A wrong place in the scope is a
	// [*PlaceError].
	Verify func(ctx context.Context, scope VerifyScope) (Verification, error)
	// Calendar says where the decisions of each day are.
	Calendar func(ctx context.Context) (archive.Calendar, error)
	// Inventory says what the archive of the desk has and lacks. Nobody may change its answer. Without an archive the error is
	// a [*UnableError].
	Inventory func(ctx context.Context) (*inventory.Inventory, error)
	// Prove reads the archive of a name and compares it with its manifest. A damaged one is an [*archive.BrokenError], an
	// [*archive.LineError] or an [*archive.SizeError], and one that is not there [archive.ErrNone]. Its limits end it.
	Prove func(ctx context.Context, name string) error
	// Forget notes that a day is given up, as [archive.Carrier.Forget] does, and returns the place of the archive.
	Forget func(ctx context.Context, day archive.Day, by ledger.Actor, dry bool) (earlier *archive.Forgotten, where string, err error)
	// ForgetLetters is Forget of the archives of dead letters of a day, as [archive.LettersCarrier.Forget] is.
	ForgetLetters func(ctx context.Context, day archive.Day, by ledger.Actor, dry bool) (done archive.LettersForgotten, where string, err error)
	// Complete says how complete answers are; nil: that is unknown.
	Complete *complete.Answers
}

// api has the state of the handlers.
type api struct {
	Config
	Ports
	huma    huma.API
	log     zerolog.Logger
	metrics *metrics
	long    chan struct{} // limits long requests
	follow  chan struct{} // limits requests that follow
	verify  chan struct{} // its holder verifies
	tails   *tails
	rules   map[string]rule  // by pattern; requests without a rule are refused
	routes  map[string]route // by the id of the operation
}

// maxLong is the number of dry runs and searches that may run at once.
const maxLong = 2

// Handler is the API. It is safe for concurrent use.
type Handler struct {
	guard *guard
	api   *api
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.guard.ServeHTTP(w, r) }

// Admit changes who may use the API, from the next request on. After an error the old ones stay.
func (h *Handler) Admit(a Auth) error {
	if err := a.Check(); err != nil {
		return fmt.Errorf("who may use the API: %w", err)
	}
	h.guard.auth.Store(&a)
	return nil
}

// New makes the API. It refuses a configuration with two roles for one name, or without a lease.
func New(c Config, p Ports, a Auth, log zerolog.Logger) (*Handler, error) {
	c = c.withDefaults()
	if p.Book == nil {
		return nil, errors.New("the API has no ledger")
	}
	if c.Lease <= 0 {
		return nil, errors.New("the API has no lease for retries")
	}
	m, err := newMetrics(c.Registry)
	if err != nil {
		return nil, fmt.Errorf("register the API's metrics: %w", err)
	}
	mux := http.NewServeMux()
	s := &api{Config: c, Ports: p, log: log, metrics: m, long: make(chan struct{}, maxLong), verify: make(chan struct{}, 1), follow: make(chan struct{}, max(1, c.MaxInFlight/4)),
		tails: newTails(max(1, c.MaxInFlight/4), c.Now),
		rules: map[string]rule{}, routes: map[string]route{}, huma: humago.New(slashes{mux}, document(c))}
	s.looks()
	s.letters()
	s.moves()
	s.payloads()
	s.proposals()
	s.cases()
	s.jobs()
	s.desks()
	s.trials()
	s.decisions()
	s.states()
	s.audit()
	s.days()
	s.archives()
	s.checks()
	s.verifications()
	s.revisions()
	s.serveDocument(mux)
	h := &Handler{api: s, guard: &guard{throttle: newThrottle(maxAddresses), rules: s.rules, bodyTime: c.BodyTimeout,
		slots: make(chan struct{}, c.MaxInFlight), log: log, metrics: m, now: c.Now, mux: mux, crossSite: http.NewCrossOriginProtection()}}
	if err := h.Admit(a); err != nil {
		return nil, err
	}
	return h, nil
}

// slashes is a multiplexer that also gives the name / to routes of decisions. A [http.ServeMux] takes %2F for the end of a
// path.
type slashes struct{ *http.ServeMux }

// HandleFunc implements [humago.Mux].
func (m slashes) HandleFunc(pattern string, handle func(http.ResponseWriter, *http.Request)) {
	m.ServeMux.HandleFunc(pattern, handle)
	if before, after, named := strings.Cut(pattern, decisionName); named {
		m.ServeMux.HandleFunc(before+decisionSlash+after, func(w http.ResponseWriter, r *http.Request) {
			if unnamed(r) {
				http.NotFound(w, r)
				return
			}
			r.SetPathValue("id", "/")
			handle(w, r)
		})
	}
}

// unnamed reports whether a path ends with a slash. No route does.
func unnamed(r *http.Request) bool { return strings.HasSuffix(r.URL.EscapedPath(), "/") }

const decisionName, decisionSlash = "/decisions/{id}", "/decisions/%2F"

// Prefix is the common prefix of all routes.
const Prefix = "/api/v1"

// DocumentPath is the path of the OpenAPI document, without .json or .yaml.
const DocumentPath = Prefix + "/openapi"

// RoleExtension is the field of the document that names the role for an operation.
const RoleExtension = "x-docket-role"

func document(c Config) huma.Config {
	d := huma.DefaultConfig("Docket, the operator's desk", c.Version)
	d.Info.Description = "Dead letters: listed, explained, retried or resolved by name. Stored decisions: searched, explained, counted and followed. " +
		"A check of all records of a long time takes long and is left to the command line: docket verify."
	d.CreateHooks, d.OpenAPIPath, d.DocsPath, d.SchemasPath = nil, "", "", ""
	d.RejectUnknownQueryParameters = true
	// Answers contain text of strangers, and operators read them with curl on a terminal.
	harmless := huma.Format{Marshal: func(w io.Writer, v any) error { return escape.Encoder(w).Encode(v) }, Unmarshal: json.Unmarshal}
	d.Formats = map[string]huma.Format{"application/json": harmless, "json": harmless}
	d.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token":       {Type: "http", Scheme: "bearer", Description: "A token of DOCKET_DESK_API_TOKENS."},
		"certificate": {Type: "mutualTLS", Description: "A client certificate whose common name is in DOCKET_DESK_API_CLIENTS."},
	}
	d.Security = []map[string][]string{{"token": {}}, {"certificate": {}}}
	return d
}

// serveDocument serves the document to viewers. It is written at the first request.
func (s *api) serveDocument(mux *http.ServeMux) {
	o := s.huma.OpenAPI()
	for _, form := range []struct {
		name, kind string
		write      func() ([]byte, error)
	}{
		{".json", "application/openapi+json", func() ([]byte, error) {
			text, err := json.Marshal(o)
			return escape.JSON(text), err
		}},
		{".yaml", "application/openapi+yaml", o.YAML},
	} {
		text := sync.OnceValues(form.write)
		pattern := http.MethodGet + " " + DocumentPath + form.name
		s.rules[pattern] = rule{role: Viewer}
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			document, err := text()
			if err != nil {
				panic(fmt.Errorf("write the OpenAPI document: %w", err)) // it depends only on the types; the guard answers
			}
			w.Header().Set("Content-Type", form.kind)
			_, _ = w.Write(document) // the client is gone
		})
	}
}

// route describes an operation. Each has a role.
type route struct {
	role         Role
	method, path string // below Prefix
	id, summary  string
	text         string
	status       int      // of success, default 200
	errors       []int    // besides those of every route
	long         bool     // it has LongTimeout and takes one of few places
	payload      bool     // the request carries a payload
	many         []string // query parameters that may be repeated
}

// always are the problems of every route.
var always = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}

// rule has the guard's limits for a route.
type rule struct {
	role    Role
	maxBody int64
	many    []string // query parameters that may be repeated
}

// smallBody limits a request without a payload, in bytes.
const smallBody = 1 << 20

// register adds an operation. Callers need its role or a higher one.
func register[I, O any](s *api, r route, handle func(context.Context, caller, *I) (*O, error)) {
	errs := append(append([]int{}, always...), r.errors...)
	if r.method != http.MethodGet {
		errs = append(errs, http.StatusBadRequest, http.StatusUnsupportedMediaType)
	}
	allowed := rule{role: r.role, many: r.many}
	switch {
	case r.payload:
		allowed.maxBody = s.MaxBody
	case r.method != http.MethodGet:
		allowed.maxBody = min(smallBody, s.MaxBody)
	}
	s.rules[r.method+" "+Prefix+r.path] = allowed
	s.routes[r.id] = r
	huma.Register(s.huma, huma.Operation{
		OperationID: r.id, Method: r.method, Path: Prefix + r.path, Summary: r.summary, Description: r.text,
		DefaultStatus: r.status, Errors: errs, Extensions: map[string]any{RoleExtension: r.role.String()},
		// The guard has read the body, within its own limits.
		BodyReadTimeout: -1, MaxBodyBytes: s.MaxBody + 1,
	}, func(ctx context.Context, in *I) (*O, error) { return perform(ctx, s, r, callerOf(ctx), in, handle) })
}

// perform handles a request that was admitted, within the limits of its route. Its error is a [*Problem].
func perform[I, O any](ctx context.Context, s *api, r route, c caller, in *I, handle func(context.Context, caller, *I) (*O, error)) (*O, error) {
	limit := s.Timeout
	if r.long {
		limit = s.LongTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if r.long {
		if !s.enter() {
			return nil, problem(http.StatusServiceUnavailable, "others are at long work just now", "try again when that has ended").later(retryAfter)
		}
		defer s.leave()
	}
	out, err := whole(ctx, func(ctx context.Context) (*O, error) { return handle(ctx, c, in) })
	if err != nil {
		return nil, s.refused(r, c, err)
	}
	return out, nil
}

func (s *api) enter() bool {
	select {
	case s.long <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *api) leave() { <-s.long }

// refused logs faults of the desk. Others are only answered.
func (s *api) refused(r route, c caller, err error) error {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		s.log.Error().Str("operator", c.Name).Str("operation", r.id).Str("problem", p.Detail).Type("error", err).
			Msg("request failed")
	}
	return p
}
