package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"docket/internal/desk/api"
)

const (
	// streamsPrefix begins the addresses of server-sent events. They have a budget of their own.
	streamsPrefix = "/events"
	// perName limits the streams of one person or program, also with many sessions. A browser shows one page, and closes
	// the stream of a hidden one.
	perName = 4
	// beat is between two signs of life.
	beat = 15 * time.Second
	// recheck is how often a stream asks whether its session lasts. A logout at this desk has it ask at once.
	recheck = 10 * time.Second
	// blind is how long a stream lasts without an answer about its session.
	blind = time.Minute
	// eventWithin is how long a client may take for an event.
	eventWithin = 10 * time.Second
)

// streamed reports whether a request is for server-sent events.
func streamed(r *http.Request) bool {
	return r.URL.Path == streamsPrefix || strings.HasPrefix(r.URL.Path, streamsPrefix+"/")
}

// background reports whether no person acts by a request. It does not count as a use of the session.
func background(r *http.Request) bool { return part(r) || streamed(r) }

// streams are the open streams.
type streams struct {
	free chan struct{} // the budget

	mu    sync.Mutex
	of    map[string]int // by name
	again chan struct{}
}

func newStreams(most int) *streams {
	return &streams{free: make(chan struct{}, max(1, most)), of: map[string]int{}, again: make(chan struct{})}
}

// occupy takes a place in the budget.
func (s *streams) occupy() (leave func(), ok bool) {
	select {
	case s.free <- struct{}{}:
		return func() { <-s.free }, true
	default:
		return nil, false
	}
}

// join counts a stream of a person or program.
func (s *streams) join(whose string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[whose] >= perName {
		return nil, false
	}
	s.of[whose]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.of[whose]--; s.of[whose] == 0 {
			delete(s.of, whose)
		}
	}, true
}

// recheck has every stream ask at once whether its session lasts.
func (s *streams) recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.again)
	s.again = make(chan struct{})
}

func (s *streams) asked() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again
}

// events sends server-sent events of one stream.
type events struct {
	c        *Console
	w        http.ResponseWriter
	in       *request
	last     string // the id of the last event that the browser had; empty: none
	sent     time.Time
	checked  time.Time // when the session was last known to last
	due      time.Time // when to ask again
	again    <-chan struct{}
	stopping <-chan struct{}
}

// stream is a screen whose answer does not end by itself. step sends what is new, and says when to call it again.
type stream struct {
	step func(ctx context.Context, e *events) (pause time.Duration, err error)
}

// maxEventID limits the id that a browser sends.
const maxEventID = 8192

// serveStream answers with events until the browser, the session or the desk ends it.
func (c *Console) serveStream(w http.ResponseWriter, in *request, s *stream) error {
	leave, ok := c.streams.join(in.who.Name)
	if !ok {
		return &api.Problem{Status: http.StatusTooManyRequests, Detail: "You have as many live pages as one name may.", Hint: "Close one of them."}
	}
	defer leave()
	now := time.Now()
	e := &events{c: c, w: w, in: in, last: in.Header.Get("Last-Event-Id"), sent: now, checked: now, due: now.Add(recheck), again: c.streams.asked(), stopping: api.Stopping(in.ctx())}
	if e.last == "" {
		e.last = in.URL.Query().Get("last")
	}
	if len(e.last) > maxEventID {
		e.last = ""
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // of a proxy
	in.streaming = true
	e.raw("retry: 3000\n\n")
	e.run(s)
	return nil
}

// run sends events until the browser is gone, the session ends, or the desk stops.
func (e *events) run(s *stream) {
	for {
		pause, err := s.step(e.in.ctx(), e)
		if err != nil {
			if !errors.Is(err, errGone) && e.in.ctx().Err() == nil {
				e.c.log.Error().Type("error", err).Str("route", e.in.Pattern).Msg("console stream failed")
			}
			return
		}
		if !e.wait(pause) {
			return
		}
	}
}

// wait waits, with signs of life. It returns false when the stream has to end.
func (e *events) wait(pause time.Duration) bool {
	over := time.NewTimer(pause)
	defer over.Stop()
	alive := time.NewTicker(beat)
	defer alive.Stop()
	for {
		select {
		case <-e.in.ctx().Done():
			return false
		case <-e.stopping:
			return false
		case <-e.again:
			e.again, e.due = e.c.streams.asked(), time.Time{}
			if !e.goesOn() {
				return false
			}
		case <-alive.C:
			if !e.alive() {
				return false
			}
		case <-over.C:
			return e.alive() && e.goesOn()
		}
	}
}

// alive sends a sign of life if nothing else was sent for long.
func (e *events) alive() bool { return time.Since(e.sent) < beat || e.raw(": alive\n\n") }

// goesOn reports whether the session still exists, with the same role. While the database is away, it is believed for a
// while.
func (e *events) goesOn() bool {
	now := time.Now()
	if now.Before(e.due) {
		return true
	}
	e.due = now.Add(recheck)
	same, err := e.c.still(e.in)
	switch {
	case err != nil:
		return now.Sub(e.checked) < blind
	case !same:
		e.send("ended", "", nil)
		return false
	}
	e.checked = now
	return true
}

// still reports whether the login of a long request lasts, with the same role.
func (c *Console) still(in *request) (bool, error) {
	again := &request{Request: in.Request, now: c.Now()}
	refused, err := c.admit(&unanswered{header: http.Header{}}, again)
	return !refused && again.who.Role == in.who.Role && again.who.Name == in.who.Name, err
}

// unanswered takes what the check of a session would answer.
type unanswered struct{ header http.Header }

func (u *unanswered) Header() http.Header         { return u.header }
func (u *unanswered) Write(b []byte) (int, error) { return len(b), nil }
func (u *unanswered) WriteHeader(int)             {}

// send sends an event. It returns false when the browser is gone. The text comes from a template.
func (e *events) send(name, id string, text []byte) bool {
	var out bytes.Buffer
	if id != "" {
		fmt.Fprintf(&out, "id: %s\n", strings.NewReplacer("\n", "", "\r", "", "\x00", "").Replace(id))
	}
	fmt.Fprintf(&out, "event: %s\n", name)
	for line := range bytes.SplitSeq(bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n")), []byte("\n")) {
		out.WriteString("data: ")
		out.Write(line)
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
	return e.raw(out.String())
}

func (e *events) raw(text string) bool {
	control := http.NewResponseController(e.w)
	_ = control.SetWriteDeadline(time.Now().Add(eventWithin)) // a writer of a test has none
	if _, err := e.w.Write([]byte(text)); err != nil {
		return false
	}
	e.sent = time.Now()
	return control.Flush() == nil
}

// errGone says that the browser is gone.
var errGone = errors.New("the browser is gone")
