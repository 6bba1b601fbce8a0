//go:build integration

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// told says whether the log has a line of a Kafka fault with that reason, code and part of a hint, and /readyz the same.
func (p *process) told(reason, code, hint string) error {
	status, body := p.get("/readyz")
	var readiness struct {
		Reasons []struct{ Reason, Code, Hint string } `json:"reasons"`
	}
	if err := json.Unmarshal([]byte(body), &readiness); err != nil {
		return fmt.Errorf("/readyz: %w", err)
	}
	shown := false
	for _, r := range readiness.Reasons {
		shown = shown || r.Reason == "kafka_"+reason && r.Code == code && strings.Contains(r.Hint, hint)
	}
	if status != http.StatusServiceUnavailable || !shown {
		return fmt.Errorf("/readyz: %d %s; want kafka_%s, %s, %q", status, body, reason, code, hint)
	}
	return p.logged("kafka fault began", map[string]string{"reason": reason, "code": code}, hint)
}

// logged says whether a line has that message, those fields, and a part of a hint.
func (p *process) logged(message string, fields map[string]string, hint string) error {
	for line := range strings.Lines(p.out.String()) {
		var got map[string]any
		if json.Unmarshal([]byte(line), &got) != nil || got["message"] != message {
			continue
		}
		same := strings.Contains(fmt.Sprint(got["hint"]), hint)
		for name, want := range fields {
			same = same && fmt.Sprint(got[name]) == want
		}
		if same {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("no line %q with %v and a hint of %q", message, fields, hint), errors.New(tail(p.out.String(), 6)))
}
