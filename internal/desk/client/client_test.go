package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/internal/desk/api"
	"docket/internal/desk/client"
	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/history/reader"
	"docket/internal/history/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "planted-token-of-nobody"

// served is a client of a server that answers with handle.
func served(t *testing.T, handle http.HandlerFunc, change ...func(*client.Config)) *client.Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	c := client.Config{Server: server.URL, Token: secret, Agent: "docket test"}
	for _, f := range change {
		f(&c)
	}
	made, err := client.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

func problem(w http.ResponseWriter, p api.Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone
}

func TestAddress_Refused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"": "must be a URL", "desk:8083": "must be a URL", "ftp://desk": "must be a URL", "http://": "must be a URL", "https://mara:" + secret + "@desk": "give a token instead",
		"https://desk?x=1": "must end with its path", "https://desk#x": "must end with its path", "http://desk:8083": "in clear to desk:8083", "http://10.0.0.1": "in clear", "http://127.0.0.1.evil.example": "in clear",
		"http://localhost.evil.example": "in clear", "http://[::2]:80": "in clear",
	} {
		_, err := client.New(client.Config{Server: text, Token: secret})
		var wrong *client.ConfigError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"https://desk", "https://desk:8083/docket/", "http://127.0.0.1:8083", "http://localhost", "http://[::1]:80", "https://desk/api/v1"} {
		if c, err := client.New(client.Config{Server: text}); err != nil || strings.HasSuffix(c.Server(), "/") || strings.HasSuffix(c.Server(), "v1") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := client.New(client.Config{Server: "http://desk", Plain: true}); err != nil {
		t.Error(err)
	}
	for _, token := range []string{"two words", "line\nbreak", "ümlaut-of-a-token"} {
		if _, err := client.New(client.Config{Server: "https://desk", Token: token}); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%q: %v", token, err)
		}
	}
}

func TestToken_NotSentElsewhere(t *testing.T) {
	t.Parallel()
	reached := make(chan http.Header, 9)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.Header }))
	t.Cleanup(other.Close)
	for _, code := range []int{301, 302, 303, 307, 308} {
		c := served(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+secret {
				t.Errorf("the desk got %v", r.Header)
			}
			http.Redirect(w, r, other.URL+r.URL.Path, code)
		})
		_, err := c.Whoami(t.Context())
		if err == nil || !strings.Contains(err.Error(), "the token is not sent there") {
			t.Errorf("%d: %v", code, err)
		}
	}
	if len(reached) > 0 {
		t.Errorf("another host was asked: %v", <-reached)
	}
}

func TestProblem_PlainWords(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct{ text, hint string }{
		401: {"the credentials are not known here", "check the token"}, 403: {"this needs the role auditor", "docket context list"}, 503: {"the database does not answer", "try again"},
		422: {"query.since: a time", "see faults"},
	} {
		c := served(t, func(w http.ResponseWriter, _ *http.Request) {
			p := api.Problem{Status: status, Detail: want.text, Hint: want.hint}
			if status == 422 {
				p.Detail, p.Faults = "the request makes no sense", []api.Fault{{Location: "query.since", Message: "a time"}}
			}
			problem(w, p)
		})
		_, err := c.Decisions().Search(t.Context(), reader.Filter{}, reader.Page{Limit: 1})
		var hinted interface{ Hint() string }
		if err == nil || !strings.Contains(err.Error(), want.text) || !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), want.hint) || strings.Contains(err.Error(), secret) {
			t.Errorf("%d: %v", status, err)
		}
		if transient := errclass.Classify(err).Class == errclass.Transient; transient != (status == 503) {
			t.Errorf("%d: transient %v", status, transient)
		}
	}
}

// TestLetters_OfAnOlderDesk: it refuses a word of the filter that it does not know.
func TestLetters_OfAnOlderDesk(t *testing.T) {
	t.Parallel()
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Has("snoozed"):
			problem(w, api.Problem{Status: 422, Detail: "the request makes no sense", Faults: []api.Fault{{Location: "query.snoozed", Message: "unknown query parameter"}}})
		case q.Get("code") != "23514":
			problem(w, api.Problem{Status: 500, Detail: "another filter: " + r.URL.RawQuery})
		case strings.HasSuffix(r.URL.Path, "/groups"):
			_, _ = io.WriteString(w, `{"groups":[{"fingerprint":"0123456789abcdef"}]}`)
		default:
			_, _ = io.WriteString(w, `{"dead_letters":[{"id":"a"}]}`)
		}
	})
	f := ledger.Filter{Code: "23514", Snoozed: ledger.NotSnoozed}
	if _, err := c.Book().List(t.Context(), f, ledger.Page{Limit: 3}); err != nil {
		t.Error(err)
	}
	if all, err := c.Book().Groups(t.Context(), f); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	f.Snoozed = ledger.OnlySnoozed
	if _, err := c.Book().List(t.Context(), f, ledger.Page{Limit: 3}); err == nil {
		t.Error("a list of all is taken for one of the snoozed ones")
	}
}

// TestEdit_OfAnOlderDesk: it refuses the word for the payload that was seen, and is asked without it.
func TestEdit_OfAnOlderDesk(t *testing.T) {
	t.Parallel()
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(body), `"seen"`):
			problem(w, api.Problem{Status: 422, Detail: "the request makes no sense", Faults: []api.Fault{{Location: "body.…", Message: "unexpected property"}}})
		case strings.HasSuffix(r.URL.Path, "/proposals"):
			_, _ = io.WriteString(w, `{"id":7}`)
		default:
			_, _ = io.WriteString(w, `{"id":"a"}`)
		}
	})
	if err := c.Book().Edit(t.Context(), "a", ledger.VersionOf([]byte("1")), []byte("2"), "", 0, ledger.Actor{Why: "r"}); err != nil {
		t.Error(err)
	}
	if p, err := c.Book().Propose(t.Context(), ledger.Draft{LetterID: "a", Before: []byte("1"), Value: []byte("2")}, ledger.Actor{Why: "r"}); err != nil || p.ID != 7 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAnswer_NotOfADesk(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]http.HandlerFunc{
		"a page":       func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>"+secret) },
		"a proxy":      func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, http.StatusBadGateway) },
		"other errors": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
	} {
		if _, err := served(t, handle).Whoami(t.Context()); err == nil || !strings.Contains(err.Error(), "not that of a desk") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnanswered_SaysWhy(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	c := served(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}, func(c *client.Config) { c.Timeout = 20 * time.Millisecond })
	_, err := c.Decisions().ByID(t.Context(), "an-id-of-somebody")
	if err == nil || !strings.Contains(err.Error(), "did not answer in time") || strings.Contains(err.Error(), "somebody") || errclass.Classify(err).Class != errclass.Transient {
		t.Error(err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	away, err := client.New(client.Config{Server: gone.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = away.Decisions().ByID(t.Context(), "an-id-of-somebody")
	var unanswered *client.UnansweredError
	if !errors.As(err, &unanswered) || strings.Contains(err.Error(), "somebody") || errclass.Classify(err).Class != errclass.Transient {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := away.Whoami(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a signal: %v", err)
	}
}

func TestErrors_OfTheDomain(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	answers := func(p api.Problem) *client.Client {
		return served(t, func(w http.ResponseWriter, _ *http.Request) { problem(w, p) })
	}
	gone := answers(api.Problem{Status: 404, Detail: "none"})
	if _, err := gone.Book().Show(t.Context(), "abcdef"); !errors.Is(err, ledger.ErrNotFound) {
		t.Error(err)
	}
	if _, _, err := gone.States().States(t.Context(), "alice", nil, 5); !errors.Is(err, state.ErrNone) {
		t.Error(err)
	}
	if _, err := gone.Book().Job(t.Context(), 9); !errors.Is(err, ledger.ErrNotFound) {
		t.Error(err)
	}
	if _, err := gone.Decisions().ByID(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "does not have this question") {
		t.Error(err)
	}
	refused := answers(api.Problem{Status: 409, Detail: "x", ID: "abc", State: "PROCESSING", By: "mara", Since: &at})
	out, err := refused.Book().Retry(t.Context(), []string{"abc", "def"}, time.Minute, ledger.Actor{Why: "r"})
	var of *ledger.RefusedError
	if err != nil || len(out) != 2 || !errors.As(out[1].Err, &of) || of.State != ledger.Processing || of.By != "mara" || !of.At.Equal(at) {
		t.Error(out, err)
	}
	ambiguous := answers(api.Problem{Status: 409, Detail: "more than one dead letter begins like that", Faults: []api.Fault{{Location: "path.id", Message: "more characters"}}})
	if _, err := ambiguous.Book().Show(t.Context(), "abcdef"); !errors.Is(err, ledger.ErrAmbiguous) {
		t.Error(err)
	}
	page := answers(api.Problem{Status: 422, Detail: "x", Faults: []api.Fault{{Location: "query.after", Message: "the next"}}})
	if _, err := page.Decisions().Search(t.Context(), reader.Filter{}, reader.Page{After: "x"}); !errors.Is(err, reader.ErrCursor) {
		t.Error(err)
	}
	if _, err := page.Book().List(t.Context(), ledger.Filter{}, ledger.Page{After: "x"}); !errors.Is(err, ledger.ErrBadPage) {
		t.Error(err)
	}
	if _, err := page.Book().Surplus(t.Context(), false, 7, 1); !errors.Is(err, ledger.ErrBadPage) { // a former desk has no pages
		t.Error(err)
	}
}

// A change by another name than that of the token is refused before anything is changed.
func TestBook_AnotherName(t *testing.T) {
	t.Parallel()
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s was asked", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(api.Me{Name: "mara"}) // the client is gone
	})
	var another *client.AnotherNameError
	if _, err := c.Book().Resolve(t.Context(), []string{"a"}, ledger.Actor{Name: "oleg", Why: "x"}); !errors.As(err, &another) || another.Known != "mara" {
		t.Error(err)
	}
}

// The places and shards that an answer lacks come with it, and so do its cursor and its reach.
func TestSearch_TellsGaps(t *testing.T) {
	t.Parallel()
	reached := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query(); got.Get("order") != "oldest" || got.Get("limit") != "5" || got.Get("match") != `input:/a="b=c"` || got.Get("since") != "2026-11-20T00:00:00Z" || got.Has("payload") {
			t.Errorf("asked %v", got)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(api.DecisionList{ // the client is gone
			Decisions: []api.Decision{{ID: "d"}}, Next: "n", Reached: &reached, Gaps: []api.Gap{{Place: "archived day 2026-03-04", Why: "damaged", Rows: true}, {Place: "archived days", Why: "over", Forgotten: true}},
			Partly: api.Partly{NotRead: []string{"archived day 2026-03-05: gone"}, ShardsNotAsked: []string{"b"}},
		})
	})
	f := reader.Filter{Since: reached, Matches: []reader.Match{{In: "input", Pointer: "/a", Value: json.RawMessage(`"b=c"`)}}}
	found, err := c.Decisions().Search(t.Context(), f, reader.Page{Limit: 5, Oldest: true})
	partial := reader.AsPartial(err)
	if partial == nil || len(partial.Missed) != 2 || len(partial.Missing()) != 1 || partial.Missing()[0] != "b" || partial.Missed[1].String() != "archived day 2026-03-05: gone" {
		t.Error(err)
	}
	if len(found.Decisions) != 1 || found.Next != "n" || !found.Reached.Equal(reached) || len(found.NotLooked) != 2 || !found.NotLooked[0].Rows || found.NotLooked[0].Forgotten || !found.NotLooked[1].Forgotten {
		t.Errorf("%+v", found)
	}
}

// A proxy writes problems, too. Its 404 does not mean that a dead letter, a job or a state is gone.
func TestProblem_OfAProxy(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]http.HandlerFunc{
		"a page": func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) },
		"a problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"type":"about:blank","title":"Not Found","status":404,"detail":"`+secret+`","instance":"/api"}`) // the client is gone
		},
	} {
		c := served(t, handle)
		_, shown := c.Book().Show(t.Context(), "abcdef")
		_, _, states := c.States().States(t.Context(), "alice", nil, 5)
		_, job := c.Book().Job(t.Context(), 9)
		_, rows := c.Decisions().ByID(t.Context(), "x")
		for act, err := range map[string]error{"show": shown, "states": states, "job": job, "rows": rows} {
			if err == nil || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, state.ErrNone) || !strings.Contains(err.Error(), "not that of a desk") || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %s: %v", name, act, err)
			}
		}
	}
}

// The header alone marks a desk, and so does the hint of one from before the header.
func TestProblem_MarkOfADesk(t *testing.T) {
	t.Parallel()
	for text, header := range map[string]string{`{"detail":"none","hint":""}`: "", `{"detail":"none"}`: "1"} {
		c := served(t, func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set(api.LevelHeader, header)
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, text) // the client is gone
		})
		if _, err := c.Book().Show(t.Context(), "abcdef"); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestLists_AskForTheirPage: a page of jobs or proposals is asked for by the number before it.
func TestLists_AskForTheirPage(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 3)
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.RequestURI()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jobs":[],"proposals":[],"ranges":[]}`))
	})
	letter := strings.Repeat("ab", 32)
	if _, err := c.Book().ListJobs(t.Context(), 2417, 20); err != nil {
		t.Error(err)
	}
	if _, err := c.Book().ListProposals(t.Context(), ledger.ProposalQuery{All: true, LetterID: letter, Before: 7}, 20); err != nil {
		t.Error(err)
	}
	if _, err := c.Book().Surplus(t.Context(), true, 7, 1001); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"/api/v1/jobs?after=2417&limit=20", "/api/v1/proposals?after=7&all=true&dead_letter=" + letter + "&limit=20", "/api/v1/surplus?after=7&all=true&limit=1000"} {
		if got := <-asked; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A change without an answer may have been made, if the desk can have got it.
func TestClient_MayBeDone(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		change func(*client.Config)
		want   bool
	}{
		"cut off":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, true},
		"of a proxy": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) }, nil, true},
		"database away": {func(w http.ResponseWriter, _ *http.Request) {
			problem(w, api.Problem{Status: http.StatusServiceUnavailable, Hint: "h"})
		}, nil, true},
		"refused": {func(w http.ResponseWriter, _ *http.Request) {
			problem(w, api.Problem{Status: http.StatusForbidden, Hint: "h"})
		}, nil, false},
		"too many": {func(w http.ResponseWriter, _ *http.Request) {
			problem(w, api.Problem{Status: http.StatusTooManyRequests, Hint: "h"})
		}, nil, false},
		"not there": {nil, func(c *client.Config) { c.Server = gone.URL }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.change == nil {
				c.change = func(*client.Config) {}
			}
			_, err := served(t, c.handle, c.change).Book().Resolve(t.Context(), []string{"a"}, ledger.Actor{Why: "w"})
			var asked interface{ MayBeDone() bool }
			if !errors.As(err, &asked) || asked.MayBeDone() != c.want {
				t.Errorf("%v", err)
			}
		})
	}
}
