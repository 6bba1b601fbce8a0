package console_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/desk/console/session"
	"docket/internal/desk/console/views"
	"docket/internal/history/state"
	"docket/internal/testkit/readertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// marker is personal data in payloads.
const marker = "planted-personal-data"

const everybody = "vera:viewer:planted-token-of-viewer aude:auditor:planted-token-of-auditor olga:operator:planted-token-of-operator adam:admin:planted-token-of-admin"

func tokenOf(role string) string { return "planted-token-of-" + role }

var roles = []string{"viewer", "auditor", "operator", "admin"}

// lines is a log with several writers.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a console over an API with all of its ports.
type world struct {
	config   console.Config
	book     *book
	store    *readertest.Store
	tries    *tries
	sessions *session.Memory
	views    *views.Memory
	api      *api.Handler
	console  *console.Console
	log      *lines
	clock    *clock
}

func newWorld(t testing.TB, change ...func(*console.Config, *api.Config, *api.Ports)) *world {
	t.Helper()
	w := &world{book: newBook(5), store: &readertest.Store{}, tries: &tries{}, sessions: &session.Memory{}, views: &views.Memory{}, log: &lines{}, clock: &clock{now: noon}}
	w.store.Now = w.clock.Now
	w.store.Add(readertest.Decisions(30, noon)...)
	states := &readertest.States{Mark: state.Mark{StoredBefore: noon, StoredSince: noon.Add(-time.Hour), SubjectsBy: "requested_by:host"}}
	states.All = []state.State{{Key: state.Key{Subject: "10.0.0.7", Path: "http/authz/allow"}, Verdict: "denied", Since: state.Version{Time: noon, ID: "d-1"}, Version: state.Version{Time: noon, ID: "d-1"}, LastSeen: noon, Decisions: 3}}
	states.Note(state.Flip{ID: 1, Key: state.Key{Subject: "10.0.0.7", Path: "http/authz/allow"}, Was: "allowed", Verdict: "denied", Version: state.Version{Time: noon, ID: "d-1"}, WasVersion: state.Version{Time: noon, ID: "d-0"}, StoredAt: noon})
	states.Rates = []state.Rate{{PathRevision: state.PathRevision{Path: "http/authz/allow", Revision: "main@r7"}, First: noon.Add(-time.Hour), Last: noon, Allowed: 30, Denied: 10}}
	tokens, err := api.ParseTokens(everybody)
	if err != nil {
		t.Fatal(err)
	}
	ac := api.Config{Version: "1.2.3", Lease: time.Minute, Now: w.clock.Now}
	cc := console.Config{Version: "1.2.3", Views: w.views, Now: w.clock.Now, Sight: console.Sight{Lanes: []console.Lane{{Name: "default", Topic: "decision-logs", Group: "docket"}}, Settings: settingLines,
		Check: func(context.Context) []api.Finding { return checkResult }}}
	p := api.Ports{Book: w.book, Trial: w.tries, Horizon: horizon{}, Decisions: placed{w.store}, States: states, Calendar: calendar, WhereIs: func(_ context.Context, q string) (api.Whereabouts, error) {
		return api.Whereabouts{Decisions: []api.DecisionHomes{{Record: "decision-logs/0/1", ID: q, Homes: []string{"row: stored"}}}, Looked: []string{"rows"}, Unlooked: []string{"spool of host b"}}, nil
	}}
	for _, f := range change {
		f(&cc, &ac, &p)
	}
	log := zerolog.New(w.log)
	if w.api, err = api.New(ac, p, api.Auth{Tokens: tokens}, log); err != nil {
		t.Fatal(err)
	}
	w.config = cc
	w.console = newConsole(t, w, cc)
	return w
}

func newConsole(t testing.TB, w *world, c console.Config) *console.Console {
	t.Helper()
	made, err := console.New(c, w.api, w.sessions, zerolog.New(w.log))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// browser keeps cookies as a browser does.
type browser struct {
	w       *world
	cookies map[string]*http.Cookie
}

func (w *world) browser() *browser { return &browser{w, map[string]*http.Cookie{}} }

// as logs in with the token of a role.
func (w *world) as(t testing.TB, role string) *browser {
	t.Helper()
	b := w.browser()
	a := b.post(t, "/login", url.Values{"token": {tokenOf(role)}})
	if a.code != http.StatusSeeOther || len(b.cookies) != 1 {
		t.Fatalf("login as %s: %d %s", role, a.code, a.body)
	}
	return b
}

type answer struct {
	code   int
	header http.Header
	body   string
}

func (b *browser) get(t testing.TB, path string, change ...func(*http.Request)) answer {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "https://desk.example"+path, nil)
	r.Header.Set("Accept", "text/html")
	return b.send(t, r, change...)
}

func (b *browser) post(t testing.TB, path string, form url.Values, change ...func(*http.Request)) answer {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "https://desk.example"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.send(t, r, change...)
}

func (b *browser) send(t testing.TB, r *http.Request, change ...func(*http.Request)) answer {
	t.Helper()
	for _, c := range b.cookies {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	for _, f := range change {
		f(r)
	}
	recorder := httptest.NewRecorder()
	b.w.console.ServeHTTP(recorder, r)
	for _, c := range recorder.Result().Cookies() {
		if b.cookies[c.Name] = c; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	a := answer{recorder.Code, recorder.Header(), recorder.Body.String()}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"} {
		if a.header.Get(name) != want {
			t.Errorf("%s %s: %s is %q", r.Method, r.URL, name, a.header.Get(name))
		}
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" && !strings.HasPrefix(r.URL.Path, "/assets/") {
		t.Errorf("%s %s: Cache-Control is %q", r.Method, r.URL, got)
	}
	return a
}
