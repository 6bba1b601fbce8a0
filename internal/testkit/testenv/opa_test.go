//go:build integration

package testenv_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"docket/internal/testkit/testenv"
	"docket/sample/policies"
)

// refusals are what a receiver says to the first decision, in turn: 0 cuts the connection.
var refusals = []int{400, 413, 429, 503, 0}

// receiver refuses every upload that holds the decision "first" as refusals say, and then takes it.
type receiver struct {
	patient bool // refuses it until "second" is taken

	mu      sync.Mutex
	refused int
	took    []string   // the taken uploads, in order
	tries   [][]string // each upload that held the first
	failure error
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	names, err := uploaded(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failure = err
	}
	if slices.Contains(names, "first") {
		r.tries = append(r.tries, names)
		if r.refused < len(refusals) || r.patient && !slices.Contains(r.took, "second") {
			status := refusals[r.refused%len(refusals)]
			r.refused++
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(status)
			return
		}
	}
	r.took = append(r.took, names...)
}

func (r *receiver) state() (refused int, took []string, tries [][]string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused, slices.Clone(r.took), slices.Clone(r.tries), r.failure
}

// uploaded is what the decisions of an upload were asked as.
func uploaded(req *http.Request) ([]string, error) {
	if path, token := req.URL.Path, req.Header.Get("Authorization"); path != "/into/here" || token != "Bearer secret" {
		return nil, fmt.Errorf("an upload to %s by %q", path, token)
	}
	inflated, err := gzip.NewReader(req.Body)
	if err != nil {
		return nil, err
	}
	var decisions []struct {
		Input struct {
			Ask string `json:"ask"`
		} `json:"input"`
	}
	if err := json.NewDecoder(inflated).Decode(&decisions); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(decisions))
	for _, d := range decisions {
		names = append(names, d.Input.Ask)
	}
	return names, nil
}

// The collector's answers, and the documentation for operators of OPA, depend on this.
func TestOPA_RepeatsUploadsUnless2xx(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		options testenv.OPAOptions
		ordered bool // nothing goes before what was refused
	}{
		"current, buffer of bytes":  {testenv.OPAOptions{Version: testenv.OPACurrent}, true},
		"current, buffer of events": {testenv.OPAOptions{Version: testenv.OPACurrent, Buffer: "event"}, false},
		"previous":                  {testenv.OPAOptions{Version: testenv.OPAPrevious}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := &receiver{patient: !of.ordered}
			server := httptest.NewServer(got)
			defer server.Close()
			of.options.Service, of.options.Token, of.options.Resource = server.URL, "secret", "/into/here"
			of.options.Bundle = testenv.ServeBundle(t, "shop", policies.Files, "r1")
			opa := testenv.StartOPA(t, of.options)
			ask := func(name string) {
				t.Helper()
				answer, err := opa.Ask(t.Context(), "shop/authz/allow", map[string]any{"ask": name, "user": "alice"})
				if err != nil || answer.ID == "" || string(answer.Result) != "true" {
					t.Fatalf("OPA answered %+v, %v", answer, err)
				}
			}
			await := func(what string, done func(refused int, took []string) bool) {
				t.Helper()
				deadline := time.Now().Add(30 * time.Second) // half of what Retry-After asks for
				for {
					refused, took, _, err := got.state()
					if err != nil {
						t.Fatal(err)
					}
					if done(refused, took) {
						return
					}
					if time.Now().After(deadline) {
						t.Fatalf("not so that %s: %d refused, took %v", what, refused, took)
					}
					<-time.After(20 * time.Millisecond)
				}
			}
			ask("first")
			await("it was refused", func(refused int, _ []string) bool { return refused > 0 })
			ask("second")
			await("both were taken", func(_ int, took []string) bool { return len(took) >= 2 })

			refused, took, tries, _ := got.state()
			want := []string{"first", "second"}
			if !of.ordered {
				want = []string{"second", "first"}
			}
			if !slices.Equal(took, want) {
				t.Errorf("took %v, not %v", took, want)
			}
			for _, names := range tries {
				if !slices.Equal(names, []string{"first"}) {
					t.Errorf("an upload that was refused came again as %v", names)
				}
			}
			if len(tries) != refused+1 {
				t.Errorf("%d tries of what was refused %d times", len(tries), refused)
			}
			state, err := opa.State(t.Context())
			if err != nil || state.Dropped() != 0 || state.Revisions["shop"] != "r1" {
				t.Errorf("OPA says %+v, %v", state, err)
			}
			ask("third")
			opa.Stop()
			if _, took, _, err := got.state(); err != nil || !slices.Contains(took, "third") {
				t.Errorf("OPA ended without uploading what it still had: took %v, %v", took, err)
			}
		})
	}
}
