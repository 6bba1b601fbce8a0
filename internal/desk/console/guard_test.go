package console_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/testkit/readertest"
)

// route is one line of the table of the console, as contract and documents have it.
type route struct {
	method, path, role string
	fine               int // the status for the role
}

// routes are all routes that need a login. A new one has to be added here.
func routes(w *world) []route {
	group := "/dead-letters/groups/" + w.book.letters[0].Fingerprint
	letter := "/dead-letters/" + letterID(0)
	id := readertest.Decisions(30, noon)[6].ID
	return []route{
		{"GET", "/", "viewer", 200}, {"GET", "/decisions", "viewer", 200}, {"GET", "/decisions/" + id, "viewer", 200}, {"GET", "/export/decisions?format=csv", "viewer", 200},
		{"GET", "/compare", "auditor", 200}, {"GET", "/rates", "viewer", 200}, {"GET", "/flips", "auditor", 200}, {"GET", "/subjects/10.0.0.7", "auditor", 200}, {"GET", "/subjects?subject=..", "auditor", 200},
		{"GET", "/where", "viewer", 200}, {"GET", "/dead-letters", "viewer", 200}, {"GET", group, "viewer", 200}, {"GET", letter, "viewer", 200},
		// A letter that is resolved cannot be edited any more, and one that is not cannot be reopened.
		{"POST", letter + "/reopen", "operator", 409},
		{"POST", letter + "/edit", "operator", 200}, {"POST", letter + "/edit/preview", "operator", 200}, {"POST", letter + "/edit/save", "operator", 422},
		{"POST", letter + "/resolve", "operator", 303}, {"POST", letter + "/retry", "operator", 303}, {"POST", group + "/dry-run", "operator", 200}, {"POST", group + "/retry", "operator", 409},
		{"GET", "/jobs/1", "viewer", 404}, {"POST", "/jobs/1/stop", "operator", 404}, {"POST", "/jobs/1/resume", "operator", 404},
		{"GET", "/audit", "viewer", 200}, {"GET", "/archive", "viewer", 200}, {"POST", "/views/1/remove", "viewer", 404}, {"POST", "/views", "viewer", 303},
		{"GET", "/lanes", "viewer", 200}, {"GET", "/check", "viewer", 200}, {"POST", "/check", "operator", 303}, {"GET", "/events/now", "viewer", 200}, {"GET", "/events/decisions?verdict=denied", "viewer", 200},
		{"POST", letter + "/assign", "operator", 303}, {"POST", letter + "/snooze", "operator", 422},
		{"POST", group + "/assign", "operator", 303}, {"POST", group + "/rules", "operator", 422}, {"POST", group + "/count", "operator", 200}, {"POST", group + "/resolve", "operator", 409},
		{"POST", "/rules/1/approve", "operator", 404}, {"POST", "/rules/1/remove", "operator", 404}, {"POST", "/jobs/1/approve", "operator", 404},
		{"GET", "/proposals/1", "operator", 404}, {"POST", "/proposals/1/approve", "admin", 404}, {"POST", "/proposals/1/reject", "admin", 404},
		{"POST", "/logout", "viewer", 303}, {"POST", "/logout-all", "viewer", 303},
	}
}

func rank(role string) int {
	for i, r := range roles {
		if r == role {
			return i
		}
	}
	return -1
}

func (b *browser) ask(t *testing.T, method, path string) answer {
	t.Helper()
	if strings.HasPrefix(path, "/events/") { // it would last
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return b.get(t, path, func(r *http.Request) { *r = *r.WithContext(ctx) })
	}
	if method == http.MethodGet {
		return b.get(t, path)
	}
	return b.post(t, path, url.Values{"note": {"n"}, "reason": {"r"}, "name": {"n"}})
}

func TestRoutes_EachRoleMayDoWhatItMay(t *testing.T) {
	t.Parallel()
	for i := range routes(newWorld(t)) {
		for _, role := range roles {
			w := newWorld(t)
			r := routes(w)[i]
			want := r.fine
			if rank(role) < rank(r.role) {
				want = http.StatusForbidden
			}
			if a := w.as(t, role).ask(t, r.method, r.path); a.code != want {
				t.Errorf("%s %s as %s: %d, want %d", r.method, r.path, role, a.code, want)
			}
		}
	}
}

func TestRoutes_TheTableIsComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	listed := routes(w)
	if n := len(console.Patterns(w.console)) - console.PublicRoutes; n != len(listed) {
		t.Errorf("%d routes need a login, and the test walks %d", n, len(listed))
	}
}

func TestRoutes_NobodyWithoutLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, r := range append(routes(w), route{"GET", "/nothing", "", 0}) {
		b := w.browser()
		a := b.ask(t, r.method, r.path)
		switch {
		case strings.HasPrefix(r.path, "/events/"):
			if a.code != http.StatusUnauthorized || a.header.Get("HX-Redirect") == "" || a.header.Get("Content-Type") == "text/event-stream; charset=utf-8" {
				t.Errorf("%s without a login: %d", r.path, a.code)
			}
		case r.method == http.MethodGet && (a.code != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/login")):
			t.Errorf("%s %s without a login: %d to %q", r.method, r.path, a.code, a.header.Get("Location"))
		case r.method != http.MethodGet && a.code != http.StatusUnauthorized:
			t.Errorf("%s %s without a login: %d", r.method, r.path, a.code)
		}
		if a := b.get(t, "/decisions", func(r *http.Request) { r.Header.Set("Accept", "application/json") }); a.code != http.StatusUnauthorized {
			t.Errorf("a program without a session: %d", a.code)
		}
	}
	for _, e := range w.book.letters {
		if e.State != "PENDING" {
			t.Error("a request without a login changed a letter")
		}
	}
}

func TestRoutes_UnknownIsAPlain404(t *testing.T) {
	t.Parallel()
	b := newWorld(t).as(t, "admin")
	for _, path := range []string{"/nothing", "/decisions/a/b", "/jobs/x", "/jobs/0", "/dead-letters/XYZ", "/dead-letters/groups/ab", "/assets/x/console.css", "/api/v1/whoami"} {
		if a := b.get(t, path); a.code != http.StatusNotFound || !strings.Contains(a.body, "Not found") {
			t.Errorf("%s: %d", path, a.code)
		}
	}
}

func TestGuard_RefusesOtherSites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "admin")
	for name, change := range map[string]func(*http.Request){
		"cross-site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"same-site":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"origin":     func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "https://evil.example") },
	} {
		for _, path := range []string{"/login", "/logout", "/dead-letters/" + letterID(0) + "/resolve"} {
			if a := b.post(t, path, url.Values{"note": {"n"}, "token": {tokenOf("admin")}}, change); a.code != http.StatusForbidden || len(b.cookies) != 1 {
				t.Errorf("%s to %s: %d", name, path, a.code)
			}
		}
	}
	if w.book.letters[0].State != "PENDING" {
		t.Error("another site resolved a letter")
	}
}

func TestGuard_BusyDesk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, a *api.Config, _ *api.Ports) { a.MaxInFlight = 1 })
	b := w.as(t, "viewer")
	leave, ok := w.api.Occupy()
	if !ok {
		t.Fatal("the only place is taken")
	}
	if a := b.get(t, "/decisions"); a.code != http.StatusServiceUnavailable {
		t.Errorf("a busy desk: %d", a.code)
	}
	leave()
	if a := b.get(t, "/decisions"); a.code != http.StatusOK {
		t.Errorf("an idle desk: %d", a.code)
	}
}

// TestGuard_PublicRoutesHaveABudget: slow bodies of strangers keep nobody with a session out, and a busy desk keeps nobody
// from logging in.
func TestGuard_PublicRoutesHaveABudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ *console.Config, a *api.Config, _ *api.Ports) { a.MaxInFlight = 8 })
		b := w.as(t, "viewer")
		var slow sync.WaitGroup
		var bodies []*io.PipeWriter
		for i := range 10 {
			body, writer := io.Pipe()
			bodies = append(bodies, writer)
			r := httptest.NewRequest(http.MethodPost, "https://desk.example/login", body)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			recorder := httptest.NewRecorder()
			slow.Go(func() { w.console.ServeHTTP(recorder, r) })
			if synctest.Wait(); i >= 2 && recorder.Code != http.StatusServiceUnavailable {
				t.Errorf("slow login %d: %d", i, recorder.Code)
			}
		}
		if a := b.get(t, "/decisions"); a.code != http.StatusOK || console.PublicInUse(w.console) != 2 {
			t.Errorf("slow logins keep a session out: %d; %d are in", a.code, console.PublicInUse(w.console))
		}
		for _, body := range bodies {
			_ = body.Close()
		}
		slow.Wait()
		for range 8 {
			leave, ok := w.api.Occupy()
			if !ok {
				t.Fatal("no place")
			}
			defer leave()
		}
		if w.as(t, "viewer"); console.PublicInUse(w.console) != 0 {
			t.Error("a login keeps its place")
		}
	})
}

// deadlined notes the deadline of an answer.
type deadlined struct {
	*httptest.ResponseRecorder
	at time.Time
}

func (d *deadlined) SetWriteDeadline(at time.Time) error {
	d.at = at
	return nil
}

func TestGuard_PublicAnswersHaveADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, path := range []string{"/login", console.AssetURL(w.console, "console.css"), "/assets/x/none"} {
			d := &deadlined{ResponseRecorder: httptest.NewRecorder()}
			w.console.ServeHTTP(d, httptest.NewRequest(http.MethodGet, "https://desk.example"+path, nil))
			if left := time.Until(d.at); left != 10*time.Second {
				t.Errorf("%s: %d within %v", path, d.Code, left)
			}
		}
		d := &deadlined{ResponseRecorder: httptest.NewRecorder()}
		if w.console.ServeHTTP(d, httptest.NewRequest(http.MethodGet, "https://desk.example/decisions", nil)); !d.at.IsZero() {
			t.Error("a route with a login")
		}
	})
}

// A link in a chat or a ticket leads to its page. The browser keeps the cookie back from the first request, as another site made it.
func TestGuard_LinkOfAnotherSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	logged, nobody := w.as(t, "viewer"), w.browser()
	const to = "/decisions?verdict=denied"
	html := func(r *http.Request) { r.Header.Set("Accept", "text/html") }
	for _, site := range []string{"cross-site", "same-site"} {
		a := nobody.get(t, to, html, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", site) })
		back, found := strings.CutPrefix(a.header.Get("Refresh"), "0; url=")
		if a.code != http.StatusOK || !found || !strings.HasPrefix(back, "/login?") || strings.Contains(a.body, "Decisions of") {
			t.Fatalf("%s: %d %q %.200s", site, a.code, back, a.body)
		}
		if a := logged.get(t, back, html); a.code != http.StatusSeeOther || a.header.Get("Location") != to {
			t.Errorf("%s, logged in: %d %q", site, a.code, a.header.Get("Location"))
		}
		if a := nobody.get(t, back, html); a.code != http.StatusOK || a.header.Get("Refresh") != "" || !strings.Contains(a.body, `name="token"`) {
			t.Errorf("%s, not logged in: %d", site, a.code)
		}
	}
	if a := nobody.get(t, to, html); a.code != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/login?next=") {
		t.Errorf("typed: %d %q", a.code, a.header.Get("Location"))
	}
	if a := logged.get(t, "/login", html); a.code != http.StatusOK {
		t.Errorf("the login page of a person who is logged in: %d", a.code)
	}
}

// One letter is retried on its page, with a reason.
func TestLetter_RetriedAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "operator")
	letter := "/dead-letters/" + letterID(0)
	if a := b.get(t, letter); !strings.Contains(a.body, `action="`+letter+`/retry"`) {
		t.Errorf("%.400s", a.body)
	}
	if a := b.post(t, letter+"/retry", url.Values{"reason": {" "}}); a.code != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %d", a.code)
	}
	if a := b.post(t, letter+"/retry", url.Values{"reason": {"the table is repaired"}}); a.code != http.StatusSeeOther || a.header.Get("Location") != letter {
		t.Errorf("%d %q", a.code, a.header.Get("Location"))
	}
	if a := b.get(t, letter); !strings.Contains(a.body, "PROCESSING") || !strings.Contains(a.body, "the table is repaired") || strings.Contains(a.body, letter+`/retry"`) {
		t.Errorf("afterwards: %.600s", a.body)
	}
}

// A form that is sent after its session ended gets a page, and the way back to what was typed.
func TestGuard_FormAfterTheSession(t *testing.T) {
	t.Parallel()
	b := newWorld(t).browser()
	form := url.Values{"note": {"repaired"}}
	a := b.post(t, "/dead-letters/"+letterID(0)+"/resolve", form, func(r *http.Request) { r.Header.Set("Accept", "text/html") })
	if a.code != http.StatusUnauthorized || !strings.Contains(a.body, `href="/login"`) || !strings.Contains(a.body, "nothing was changed") {
		t.Errorf("%d %.300s", a.code, a.body)
	}
	if a := b.post(t, "/dead-letters/"+letterID(0)+"/resolve", form, func(r *http.Request) { r.Header.Set("Accept", "*/*") }); a.code != http.StatusUnauthorized || strings.Contains(a.body, "<html") {
		t.Errorf("a program: %d %.100s", a.code, a.body)
	}
}

// "Try again" asks for the address, which only a page can be asked for. A form is behind the browser's button.
func TestGuard_FailedFormIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "operator")
	w.sessions.Fail(errors.New("away"))
	const again, back = `href="">Try again`, "Go back with the button of the browser"
	if a := b.get(t, "/decisions"); a.code != http.StatusServiceUnavailable || !strings.Contains(a.body, again) || strings.Contains(a.body, back) {
		t.Errorf("a page: %d %.400s", a.code, a.body)
	}
	if a := b.post(t, "/dead-letters/"+letterID(0)+"/resolve", url.Values{"note": {"n"}}); a.code != http.StatusServiceUnavailable || strings.Contains(a.body, again) || !strings.Contains(a.body, back) {
		t.Errorf("a form: %d %.400s", a.code, a.body)
	}
}

func TestGuard_RefreshesHaveABudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, a *api.Config, _ *api.Ports) { a.MaxInFlight = 8 })
	b := w.as(t, "viewer")
	leave := console.FillLive(w.console)
	refresh := func(r *http.Request) { r.Header.Set("HX-Request", "true") }
	if a := b.get(t, "/", refresh); a.code != http.StatusServiceUnavailable {
		t.Errorf("a refresh over the budget: %d", a.code)
	}
	if a := b.get(t, "/"); a.code != http.StatusOK {
		t.Errorf("a page while the budget of refreshes is used up: %d", a.code)
	}
	leave()
	a := b.get(t, "/", refresh)
	if a.code != http.StatusOK || strings.Contains(a.body, "<html") || !strings.Contains(a.body, "Dead letters") {
		t.Errorf("a refresh: %d %.80s", a.code, a.body)
	}
	if console.LiveInUse(w.console) != 0 {
		t.Error("a refresh keeps its place")
	}
}

func TestGuard_PanicIsAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) { p.Horizon = nil; p.Trial = nil })
	b := w.as(t, "viewer")
	console.Break(w.console, "now")
	a := b.get(t, "/")
	if a.code != http.StatusInternalServerError || !strings.Contains(a.body, "Something went wrong") || strings.Contains(w.log.String(), marker) {
		t.Errorf("%d %s", a.code, a.body)
	}
	if !strings.Contains(w.log.String(), "console panicked") {
		t.Error("the log says nothing")
	}
}

func TestGuard_LargeFormIsRefused(t *testing.T) {
	t.Parallel()
	b := newWorld(t).as(t, "operator")
	if a := b.post(t, "/dead-letters/"+letterID(0)+"/resolve", url.Values{"note": {strings.Repeat("n", 70<<10)}}); a.code != http.StatusBadRequest {
		t.Errorf("%d", a.code)
	}
	if a := b.post(t, "/dead-letters/"+letterID(0)+"/resolve", url.Values{"note": {" \n "}}); a.code != http.StatusUnprocessableEntity {
		t.Errorf("an empty note: %d", a.code)
	}
	if a := b.post(t, "/dead-letters/"+letterID(0)+"/resolve", url.Values{"note": {strings.Repeat("n", 1001)}}); a.code != http.StatusUnprocessableEntity {
		t.Errorf("a long note: %d", a.code)
	}
}

func TestAssets_AreForever(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"console.css", "console.js", "live.js", "htmx.min.js"} {
		a := w.browser().get(t, console.AssetURL(w.console, name))
		if a.code != http.StatusOK || !strings.Contains(a.header.Get("Cache-Control"), "immutable") || a.header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", name, a.code, a.header)
		}
	}
}
