package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/internal/desk/api"
)

func verifyNothing(context.Context, api.VerifyScope) (api.Verification, error) {
	return api.Verification{}, nil
}

// TestVerify_Scope: the scope is that of the request, and the answer that of the command.
func TestVerify_Scope(t *testing.T) {
	t.Parallel()
	var scopes []api.VerifyScope
	w := newWorld(t, func(_ *api.Config, p *api.Ports) {
		p.Verify = func(_ context.Context, scope api.VerifyScope) (api.Verification, error) {
			scopes = append(scopes, scope)
			return api.Verification{Broken: true, Text: "I1 broken\n", Report: []byte(`{"broken":true}`)}, nil
		}
	})
	for _, query := range []string{"", "?since=2h&settled=true&from=a/0/1&from=a/1/2"} {
		a := w.ask(t, "operator", http.MethodGet, "/verify"+query, "")
		var v api.Verification
		if err := json.Unmarshal([]byte(a.body), &v); err != nil || !v.Broken || v.Text != "I1 broken\n" || string(v.Report) != `{"broken":true}` {
			t.Errorf("%v: %s", err, a.body)
		}
	}
	if len(scopes) != 2 || !scopes[0].Since.IsZero() || scopes[0].Settled || len(scopes[0].From) != 0 || !scopes[1].Since.Equal(noon.Add(-2*time.Hour)) || !scopes[1].Settled || fmt.Sprint(scopes[1].From) != "[a/0/1 a/1/2]" {
		t.Errorf("%+v", scopes)
	}
	if a := w.ask(t, "operator", http.MethodGet, "/verify?since=soon", ""); a.code != http.StatusUnprocessableEntity || len(scopes) != 2 {
		t.Errorf("%d: %s", a.code, a.body)
	}
}

// TestVerify_OneAtATime: a second verification is refused while one runs, and not afterwards.
func TestVerify_OneAtATime(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	var runs atomic.Int64
	w := newWorld(t, func(_ *api.Config, p *api.Ports) {
		p.Verify = func(context.Context, api.VerifyScope) (api.Verification, error) {
			if runs.Add(1) == 1 {
				close(began)
				<-end
			}
			return api.Verification{Report: []byte(`{}`)}, nil
		}
	})
	ask := func() answer { return w.ask(t, "operator", http.MethodGet, "/verify", "") }
	first := make(chan int, 1)
	go func() { first <- ask().code }()
	<-began
	if a := ask(); a.code != http.StatusServiceUnavailable || !strings.Contains(a.body, "another verification runs") || a.header.Get("Retry-After") == "" || runs.Load() != 1 {
		t.Errorf("a second: %d, %s", a.code, a.body)
	}
	close(end)
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first: %d", code)
	}
	if a := ask(); a.code != http.StatusOK || runs.Load() != 2 {
		t.Errorf("a later one: %d, %s", a.code, a.body)
	}
}

// TestVerify_Problems: a verification ends at the time limit, and says how to ask for less. A wrong place is wrong use.
func TestVerify_Problems(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *api.Config, p *api.Ports) {
		c.LongTimeout = time.Millisecond
		p.Verify = func(ctx context.Context, _ api.VerifyScope) (api.Verification, error) {
			<-ctx.Done()
			return api.Verification{}, fmt.Errorf("read: %w", ctx.Err())
		}
	})
	if p := w.ask(t, "operator", http.MethodGet, "/verify", "").problem(t); p.Status != http.StatusServiceUnavailable || !strings.Contains(p.Detail, "did not end within 1ms") || !strings.Contains(p.Hint, "verify less") {
		t.Errorf("%+v", p)
	}
	for _, c := range []struct {
		err  error
		code int
		says string
	}{
		{&api.PlaceError{Expected: "TOPIC/PARTITION/OFFSET in the source topic decision-logs"}, 422, "in the source topic decision-logs"},
		{&api.UnableError{Why: "each shard has topics of its own", Do: "run it there"}, 409, "each shard"}, {sqlError{"57P03"}, 503, "cannot be read (57P03)"}, {errors.New(marker), 500, "cannot be read"},
	} {
		w := newWorld(t)
		w.book.err = c.err
		a := w.ask(t, "operator", http.MethodGet, "/verify?from=x", "")
		if a.problem(t).Status != c.code || !strings.Contains(a.body, c.says) || strings.Contains(a.body, marker) {
			t.Errorf("%v: %s", c.err, a.body)
		}
	}
}
