package console_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/desk/peers"
)

// event is a server-sent event.
type event struct{ name, id, data string }

// watcher is a browser that shows a stream.
type watcher struct {
	mu     sync.Mutex
	header http.Header
	code   int
	text   strings.Builder
	broken bool
	leave  context.CancelFunc
	done   chan struct{}
}

func (w *watcher) Header() http.Header { return w.header }

func (w *watcher) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.code = code
}

func (w *watcher) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return 0, errors.New("the browser is gone")
	}
	return w.text.Write(b)
}

func (w *watcher) FlushError() error { return nil }

// events are all so far.
func (w *watcher) events() (all []event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for block := range strings.SplitSeq(w.text.String(), "\n\n") {
		var e event
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				e.data += value + "\n"
			}
		}
		if e.name != "" {
			all = append(all, e)
		}
	}
	return all
}

func (w *watcher) named(name string) (all []event) {
	for _, e := range w.events() {
		if e.name == name {
			all = append(all, e)
		}
	}
	return all
}

func (w *watcher) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// watch opens a stream. It stays open until the test leaves.
func (b *browser) watch(t testing.TB, path string, change ...func(*http.Request)) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{header: http.Header{}, code: http.StatusOK, leave: cancel, done: make(chan struct{})}
	r := httptest.NewRequest(http.MethodGet, "https://desk.example"+path, nil).WithContext(ctx)
	for _, c := range b.cookies {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	for _, f := range change {
		f(r)
	}
	go func() {
		defer close(w.done)
		b.w.console.ServeHTTP(w, r)
	}()
	t.Cleanup(func() { cancel(); <-w.done })
	return w
}

// TestStream_TwentyViewersShareOnePoll also shows that nobody who looks costs nothing.
func TestStream_TwentyViewersShareOnePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var looks, members atomic.Int64
		w := newWorld(t, whole, func(c *console.Config, _ *api.Config, _ *api.Ports) {
			c.Sight.Peers = func(context.Context) []peers.Peer { looks.Add(1); return fleet() }
			c.Sight.Members = func(context.Context, string) (int, error) { members.Add(1); return 1, nil }
		})
		var open []*watcher
		var pollers []*browser
		var tokens strings.Builder
		for i := range 20 {
			fmt.Fprintf(&tokens, "vera%d:viewer:planted-token-of-vera-%d ", i, i)
		}
		admit(t, w, tokens.String())
		for i := range 20 { // the budget is a quarter of 64: the others ask each 5 s
			b := w.browser()
			b.post(t, "/login", url.Values{"token": {fmt.Sprintf("planted-token-of-vera-%d", i)}})
			s := b.watch(t, "/events/now")
			if synctest.Wait(); s.code != http.StatusOK {
				pollers = append(pollers, b)
			} else {
				open = append(open, s)
			}
			time.Sleep(time.Duration(i*37) * time.Millisecond)
		}
		if len(open) != 16 || len(pollers) != 4 {
			t.Fatalf("%d streams and %d that poll", len(open), len(pollers))
		}
		w.book.reports.Store(0)
		looks.Store(0)
		members.Store(0)
		for range 12 {
			time.Sleep(5 * time.Second)
			for _, b := range pollers {
				if a := b.get(t, "/", func(r *http.Request) { r.Header.Set("HX-Request", "true") }); a.code != http.StatusOK {
					t.Errorf("a poll: %d", a.code)
				}
			}
		}
		if n, m, g := w.book.reports.Load(), looks.Load(), members.Load(); n > 31 || n < 25 || m > 31 || g > 3*7 {
			t.Errorf("in a minute %d reports, %d looks at peers, %d at groups", n, m, g)
		}
		for _, s := range open {
			if n := len(s.events()); n < 28 {
				t.Errorf("a viewer had %d events", n)
			}
			s.leave()
			<-s.done
		}
		w.book.reports.Store(0)
		if time.Sleep(time.Minute); w.book.reports.Load() != 0 || console.StreamsInUse(w.console) != 0 {
			t.Error("stores are asked while nobody looks, or a stream keeps its place")
		}
	})
}

func TestStream_SendsWhatChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.as(t, "viewer")
		s := b.watch(t, "/events/now")
		time.Sleep(7 * time.Second)
		first := s.named("page")
		if h := s.header; h.Get("Content-Type") != "text/event-stream; charset=utf-8" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" || h.Get("Content-Security-Policy") == "" {
			t.Errorf("%v", h)
		}
		if len(first) != 1 || first[0].id == "" || !strings.Contains(first[0].data, "Dead letters") || strings.Contains(first[0].data, "<html") || len(s.named("asof")) != 3 {
			t.Fatalf("%d pages, %d times", len(first), len(s.named("asof")))
		}
		w.book.mu.Lock()
		w.book.letters[0].State = "RESOLVED"
		w.book.mu.Unlock()
		time.Sleep(4 * time.Second)
		if all := s.named("page"); len(all) != 2 || all[1].id == first[0].id || !strings.Contains(all[1].data, ">4</a>") {
			t.Errorf("%d pages", len(all))
		}
		w.clock.pass(time.Minute)
		time.Sleep(4 * time.Second)
		if all := s.named("asof"); !strings.HasPrefix(all[len(all)-1].data, "2026-03-01T12:01:00Z") && !strings.Contains(s.named("page")[len(s.named("page"))-1].data, "2026-03-01T12:01:00Z") {
			t.Error("the time of the page stays")
		}
		// A browser that comes back has the page already.
		last := s.named("page")
		for name, again := range map[string]*watcher{
			"header": b.watch(t, "/events/now", func(r *http.Request) { r.Header.Set("Last-Event-ID", last[len(last)-1].id) }),
			"query":  b.watch(t, "/events/now?last="+last[len(last)-1].id),
		} {
			if synctest.Wait(); len(again.named("page")) != 0 || len(again.named("asof")) != 1 {
				t.Errorf("by %s: %v", name, again.events())
			}
		}
	})
}

// TestStream_EndsWithItsSession: a logout here ends it at once, and every other end within seconds.
func TestStream_EndsWithItsSession(t *testing.T) {
	t.Parallel()
	others := "vera:viewer:planted-token-of-viewer aude:auditor:planted-token-of-auditor adam:admin:planted-token-of-admin"
	for name, one := range map[string]struct {
		end    func(*testing.T, *world, *browser)
		within time.Duration
	}{
		"logout":            {func(t *testing.T, _ *world, b *browser) { b.post(t, "/logout", nil) }, 0},
		"logout everywhere": {func(t *testing.T, w *world, _ *browser) { w.as(t, "operator").post(t, "/logout-all", nil) }, 0},
		"token removed":     {func(t *testing.T, w *world, _ *browser) { admit(t, w, others) }, 15 * time.Second},
		"role changed":      {func(t *testing.T, w *world, _ *browser) { admit(t, w, others+" olga:viewer:planted-token-of-operator") }, 15 * time.Second},
		"idle":              {func(_ *testing.T, w *world, _ *browser) { w.clock.pass(31 * time.Minute) }, 15 * time.Second},
		"revoked elsewhere": {func(t *testing.T, w *world, _ *browser) { _, _ = w.sessions.EndAll(t.Context(), "olga") }, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				b, other := w.as(t, "operator"), w.as(t, "admin")
				s, stays := b.watch(t, "/events/now"), other.watch(t, "/events/lanes")
				time.Sleep(25 * time.Second)
				if s.ended() || stays.ended() {
					t.Fatal("a stream ends by itself")
				}
				one.end(t, w, b)
				if time.Sleep(one.within); one.within == 0 {
					synctest.Wait()
				}
				if all := s.events(); !s.ended() || all[len(all)-1].name != "ended" {
					t.Errorf("it goes on")
				}
				if name != "idle" && stays.ended() {
					t.Error("another's stream ends")
				}
			})
		})
	}
}

func admit(t *testing.T, w *world, text string) {
	t.Helper()
	tokens, err := api.ParseTokens(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.api.Admit(api.Auth{Tokens: tokens}); err != nil {
		t.Fatal(err)
	}
}

// TestStream_IsNoUseOfASession: a page that is left open is idle.
func TestStream_IsNoUseOfASession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.as(t, "viewer").watch(t, "/events/now")
		for range 35 {
			w.clock.pass(time.Minute)
			time.Sleep(time.Minute)
		}
		if !s.ended() {
			t.Error("a stream keeps its session alive")
		}
	})
}

// TestStream_DatabaseAway: the page stays, says so, and recovers. A session is believed for a while.
func TestStream_DatabaseAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, whole)
		s := w.as(t, "viewer").watch(t, "/events/now")
		time.Sleep(3 * time.Second)
		gone := errors.New("gone")
		w.book.away.Store(&gone)
		w.sessions.Fail(gone)
		time.Sleep(20 * time.Second)
		all := s.named("page")
		if last := all[len(all)-1].data; s.ended() || !strings.Contains(last, "The database does not answer") || !strings.Contains(last, "consumer-1") || !strings.Contains(last, "1,209") {
			t.Errorf("ended %v: %s", s.ended(), last)
		}
		w.book.away.Store(nil)
		w.sessions.Fail(nil)
		time.Sleep(10 * time.Second)
		all = s.named("page")
		if last := all[len(all)-1].data; s.ended() || strings.Contains(last, "The database does not answer") || !strings.Contains(last, ">5</a>") {
			t.Errorf("ended %v: it does not recover: %s", s.ended(), last)
		}
		w.sessions.Fail(gone)
		if time.Sleep(3 * time.Minute); !s.ended() || len(s.named("ended")) != 0 {
			t.Error("a session that nobody can look up goes on, or counts as ended")
		}
	})
}

func TestStream_Budgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ *console.Config, a *api.Config, _ *api.Ports) { a.MaxInFlight = 24 })
		one, two := w.as(t, "viewer"), w.as(t, "auditor")
		var open []*watcher
		for range 4 {
			open = append(open, w.as(t, "viewer").watch(t, "/events/now"))
		}
		synctest.Wait()
		fifth := one.watch(t, "/events/now")
		synctest.Wait()
		if fifth.code != http.StatusTooManyRequests {
			t.Errorf("the fifth stream of a name: %d", fifth.code)
		}
		a, b := two.watch(t, "/events/now"), two.watch(t, "/events/lanes")
		synctest.Wait()
		if a.code != http.StatusOK || b.code != http.StatusOK {
			t.Errorf("another name: %d %d", a.code, b.code)
		}
		seventh := two.watch(t, "/events/now")
		synctest.Wait()
		if seventh.code != http.StatusServiceUnavailable {
			t.Errorf("a stream beyond a quarter of the places: %d", seventh.code)
		}
		if p := one.get(t, "/decisions"); p.code != http.StatusOK {
			t.Errorf("streams take the places of pages: %d", p.code)
		}
		open[0].leave()
		<-open[0].done
		again := one.watch(t, "/events/now")
		if synctest.Wait(); again.code != http.StatusOK {
			t.Errorf("after one left: %d", again.code)
		}
	})
}

// TestStream_EndsWithTheBrowser: one that takes nothing any more does not keep its place.
func TestStream_EndsWithTheBrowser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.as(t, "viewer").watch(t, "/events/now")
		synctest.Wait()
		s.mu.Lock()
		s.broken = true
		s.mu.Unlock()
		if time.Sleep(5 * time.Second); !s.ended() || console.StreamsInUse(w.console) != 0 {
			t.Error("it goes on")
		}
	})
}

func TestStream_PanicWritesNoPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		console.Break(w.console, "now")
		s := w.as(t, "viewer").watch(t, "/events/now")
		time.Sleep(time.Second)
		if !s.ended() || strings.Contains(s.text.String(), "<html") || !strings.Contains(w.log.String(), "console stream failed") {
			t.Errorf("%v %s", s.ended(), s.text.String())
		}
	})
}

// TestStream_DeskStops: the streams end at once, so the desk does.
func TestStream_DeskStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *console.Config, _ *api.Config, _ *api.Ports) { c.Plain = true })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := api.Server{Handler: w.console, Bye: time.Minute}
	go func() { ended <- server.Run(ctx, l) }()
	base := "http://" + l.Addr().String()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	login, err := client.PostForm(base+"/login", url.Values{"token": {tokenOf("viewer")}})
	if err != nil {
		t.Fatal(err)
	}
	_ = login.Body.Close()
	for _, path := range []string{"/events/now", "/events/decisions"} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		r.AddCookie(login.Cookies()[0])
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		for lines := bufio.NewReader(answer.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "event: asof") || strings.HasPrefix(line, "event: page") {
				break
			}
		}
	}
	began := time.Now()
	stop()
	if err := <-ended; err != nil || time.Since(began) > 30*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}
