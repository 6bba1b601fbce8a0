//go:build integration

package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Answer is OPA's answer.
type Answer struct {
	ID     string          // decision_id; empty if the policy ended with an error
	Status int             // HTTP status
	Result json.RawMessage // nil if the decision is undefined
}

// Ask asks for the decision at a path such as "shop/authz/allow". It is safe for concurrent use.
func (o *OPA) Ask(ctx context.Context, path string, input any) (Answer, error) {
	question, err := json.Marshal(map[string]any{"input": input})
	if err != nil {
		return Answer{}, fmt.Errorf("ask OPA: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+o.addr+"/v1/data/"+path, bytes.NewReader(question))
	if err != nil {
		return Answer{}, fmt.Errorf("ask OPA: %w", err)
	}
	status, body, err := o.do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("ask OPA: %w", err)
	}
	var said struct {
		ID     string          `json:"decision_id"`
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return Answer{}, fmt.Errorf("read OPA's answer: %w", err)
	}
	return Answer{ID: said.ID, Status: status, Result: said.Result}, nil
}

// OPAState is OPA's own status.
type OPAState struct {
	Revisions map[string]string  // of the active bundles, by name
	Uploads   string             // code of the last upload's failure, or empty
	Counters  map[string]float64 // of decision logs, such as decision_logs_dropped_rate_limit_exceeded; missing if never counted
}

// Dropped returns how many drops OPA reports: of an event, or of a chunk with several events.
func (s OPAState) Dropped() (n float64) {
	for _, name := range []string{
		"decision_logs_dropped_rate_limit_exceeded", "decision_logs_encoding_failure", "enc_log_exceeded_upload_size_limit_bytes",
	} {
		n += s.Counters[name]
	}
	// Two names of one counter: versions before 1.0 have only the second, the event buffer has only the first.
	return n + max(s.Counters["decision_logs_dropped_buffer_size_limit_exceeded"], s.Counters["decision_logs_dropped_buffer_size_limit_bytes_exceeded"])
}

// State asks OPA for its status.
func (o *OPA) State(ctx context.Context) (OPAState, error) {
	var said struct {
		Result struct {
			Bundles map[string]struct {
				Revision string `json:"active_revision"`
			} `json:"bundles"`
			Logs struct {
				Code string `json:"code"`
			} `json:"decision_logs"`
			Metrics struct {
				Prometheus map[string]json.RawMessage `json:"prometheus"`
			} `json:"metrics"`
		} `json:"result"`
	}
	if err := o.get(ctx, "/v1/status", &said); err != nil {
		return OPAState{}, err
	}
	state := OPAState{Revisions: map[string]string{}, Counters: map[string]float64{}, Uploads: said.Result.Logs.Code}
	for name, bundle := range said.Result.Bundles {
		state.Revisions[name] = bundle.Revision
	}
	for name, raw := range said.Result.Metrics.Prometheus {
		name, own := strings.CutPrefix(name, "counter_") // the others are series of Prometheus
		var value float64
		if own && json.Unmarshal(raw, &value) == nil {
			state.Counters[name] = value
		}
	}
	return state, nil
}

// Said returns OPA's log so far.
func (o *OPA) Said() string { return o.said.String() }

func (o *OPA) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.addr+path, nil)
	if err != nil {
		return fmt.Errorf("ask OPA: %w", err)
	}
	status, body, err := o.do(req)
	if err != nil {
		return fmt.Errorf("ask OPA: %w", err)
	}
	if status != http.StatusOK {
		return fmt.Errorf("OPA answered %s with %d", path, status)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read OPA's answer: %w", err)
	}
	return nil
}

func (o *OPA) do(req *http.Request) (int, []byte, error) {
	resp, err := o.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
