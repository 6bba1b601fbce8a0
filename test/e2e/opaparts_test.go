//go:build integration

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"docket/internal/testkit/testenv"
)

const opaToken = "a-token-of-the-test-0123456789abcdef"

// collector starts the collector, with uploads at that address.
func (s *system) collector(addr string, env ...string) *process {
	s.t.Helper()
	p := s.start("collector", append([]string{
		"DOCKET_COLLECTOR_ADDR=" + addr, "DOCKET_COLLECTOR_TOKENS=opa:" + opaToken, patient,
	}, env...))
	s.places.SpoolDirs = s.places.SpoolDirs[:len(s.places.SpoolDirs)-1] // it has none
	return p
}

// witness is between OPA and the collector, and remembers the decisions that were answered 2xx.
type witness struct {
	to     string
	server *httptest.Server
	client *http.Client

	mu      sync.Mutex
	taken   map[string]int // by the name of the question, in uploads that were answered 2xx
	answers map[int]int    // by status; 0 is a connection that ended without an answer
	fault   error
}

func watch(t *testing.T, collector string) *witness {
	t.Helper()
	w := &witness{to: "http://" + collector, client: &http.Client{Transport: &http.Transport{}}, taken: map[string]int{}, answers: map[int]int{}}
	w.server = httptest.NewServer(w)
	t.Cleanup(func() {
		w.server.Close()
		w.client.CloseIdleConnections()
	})
	return w
}

func (w *witness) ServeHTTP(to http.ResponseWriter, from *http.Request) {
	body, err := io.ReadAll(from.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // OPA went away in the middle
	}
	names, err := asks(body)
	w.mu.Lock()
	if err != nil {
		w.fault = err
	}
	w.mu.Unlock()
	status := w.forward(to, from, body)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[status]++
	switch {
	case status == 0:
		panic(http.ErrAbortHandler) // as the collector left it
	case status/100 == 2:
		for _, name := range names {
			w.taken[name]++
		}
	}
	to.WriteHeader(status)
}

func (w *witness) forward(to http.ResponseWriter, from *http.Request, body []byte) (status int) {
	req, err := http.NewRequestWithContext(from.Context(), from.Method, w.to+from.URL.Path, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header = from.Header.Clone()
	resp, err := w.client.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if after := resp.Header.Get("Retry-After"); after != "" {
		to.Header().Set("Retry-After", after)
	}
	return resp.StatusCode
}

// answered is how many uploads were answered so; 0 means without an answer.
func (w *witness) answered(status int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answers[status]
}

func (w *witness) state() (taken map[string]int, answers map[int]int, fault error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.taken), maps.Clone(w.answers), w.fault
}

// asks are the names that the decisions of an upload were asked by.
func asks(body []byte) ([]string, error) {
	inflated, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("an upload of OPA: %w", err)
	}
	var decisions []struct {
		Input struct {
			Ask string `json:"ask"`
		} `json:"input"`
	}
	if err := json.NewDecoder(inflated).Decode(&decisions); err != nil {
		return nil, fmt.Errorf("an upload of OPA: %w", err)
	}
	var names []string
	for _, d := range decisions {
		names = append(names, d.Input.Ask)
	}
	return names, nil
}

// question is something to ask OPA, and what has to be in the table of it.
type question struct {
	path    string
	input   string
	allowed *bool
	result  bool // there is a result
	failed  bool // the policy ends with an error
	secrets bool // the input has a password, which is erased, and a token, which is masked
}

var (
	yes, no = true, false

	// questions are of every kind that sample/policies has.
	questions = []question{
		{path: "shop/authz/allow", input: `{"user":"alice","method":"DELETE","path":["orders","carol"]}`, allowed: &yes, result: true},
		{path: "shop/authz/allow", input: `{"user":"bob","method":"DELETE","path":["orders","carol"]}`, allowed: &no, result: true},
		{path: "shop/authz/allow", input: `{"user":"bob","method":"GET","path":["orders"],"password":"hunter2","token":"abc"}`, allowed: &yes, result: true, secrets: true},
		{path: "shop/refund/decision", input: `{"user":"bob","amount":20,"order":{"customer":"carol"}}`, allowed: &yes, result: true},
		{path: "shop/refund/decision", input: `{"user":"eve","amount":20,"order":{"customer":"eve"}}`, allowed: &no, result: true},
		{path: "kubernetes/admission/deny", input: `{"request":{"kind":{"kind":"Pod"},"object":{"spec":{"containers":[{"name":"c","image":"docker.io/x"}]}}}}`, result: true},
		{path: "kubernetes/admission/deny", input: `{"request":{"kind":{"kind":"Service"}}}`, result: true},
		{path: "shop/flags/enabled", input: `{"tenant":"acme"}`, allowed: &yes, result: true},
		{path: "shop/flags/enabled", input: `{"tenant":"globex"}`},
		{path: "shop/discount/percent", input: `{"level":"gold","season":"winter"}`, failed: true},
	}
	// bulky fills uploads with what gzip cannot make smaller.
	bulky = []question{{path: "shop/authz/allow", input: `{"user":"carol"}`, allowed: &no, result: true}}
)

// asked is a question that was put.
type asked struct {
	question
	id       string // that OPA gave it; it gives none where the policy failed
	revision string // of the bundle by then
}

// caller is an OPA and those who ask it.
type caller struct {
	t       *testing.T
	name    string
	version string // that it tells
	opa     *testenv.OPA
	witness *witness
	limited bool // its buffer is too small for an outage
	exact   bool // an upload of it is one decision, so that what it counts as dropped are decisions
	ask     []question

	revision string // of the bundle that it works by

	mu  sync.Mutex
	put map[string]asked
}

// enquire asks n questions one after another.
func (c *caller) enquire(ctx context.Context, n int) error {
	for range n {
		c.mu.Lock()
		number := len(c.put)
		c.mu.Unlock()
		q := c.ask[number%len(c.ask)]
		input := map[string]any{}
		if err := json.Unmarshal([]byte(q.input), &input); err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%d", c.name, number)
		input["ask"] = name
		if c.limited {
			noise := make([]byte, bulk)
			_, _ = rand.Read(noise) // never fails
			input["noise"] = base64.StdEncoding.EncodeToString(noise)
		}
		answer, err := c.opa.Ask(ctx, q.path, input)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if got, want := answer.Status == http.StatusOK && answer.ID != "", !q.failed; got != want || (answer.Result != nil) != q.result {
			return fmt.Errorf("%s: OPA answered %d, id %q, result %s", name, answer.Status, answer.ID, answer.Result)
		}
		c.mu.Lock()
		c.put[name] = asked{question: q, id: answer.ID, revision: c.revision}
		c.mu.Unlock()
	}
	return nil
}

const (
	bulk      = 1500 // bytes of noise in each decision of a limited caller
	oneUpload = 3000 // takes one such decision, and not two
)
