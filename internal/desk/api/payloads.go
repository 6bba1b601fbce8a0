package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"docket/internal/desk/ledger"
)

// Bytes are a key, a value or a header's value: as text if they are text, else in base64. Without both they are null.
type Bytes struct {
	Text   *string `json:"text,omitempty" doc:"Where it is UTF-8"`
	Base64 []byte  `json:"base64,omitempty" doc:"Where it is not"`
	Null   bool    `json:"null" doc:"There is none, which is not the same as an empty one"`
}

func bytesOf(b []byte) Bytes {
	switch {
	case b == nil:
		return Bytes{Null: true}
	case utf8.Valid(b):
		text := string(b)
		return Bytes{Text: &text}
	}
	return Bytes{Base64: b}
}

// Header is a header of the record that Docket did not write.
type Header struct {
	Key   Bytes `json:"key"`
	Value Bytes `json:"value"`
}

func headerOf(h ledger.Header) Header { return Header{bytesOf([]byte(h.Key)), bytesOf(h.Value)} }

// Payload is the content of a dead letter. It may be personal data.
type Payload struct {
	ID      string   `json:"id"`
	Key     Bytes    `json:"key"`
	Value   Bytes    `json:"value"`
	Headers []Header `json:"headers" nullable:"false"`
	Edited  bool     `json:"edited"`
}

type payloadOutput struct{ Body Payload }

// EditRequest gives a dead letter another payload.
type EditRequest struct {
	Payload *string `json:"payload,omitempty" doc:"As text; or else base64"`
	Base64  []byte  `json:"base64,omitempty" doc:"In base64; or else payload"`
	Reason  string  `json:"reason" minLength:"1" maxLength:"1000" pattern:"\\S" doc:"Why, for the audit"`
	Retry   bool    `json:"retry,omitempty" doc:"Retry it in the same transaction"`
	Seen    string  `json:"seen,omitempty" pattern:"^([0-9a-f]{64}|none)$" doc:"The SHA-256 of the payload that you edited, in hex; none if it was null. If the dead letter has another by now, the edit is refused with 409"`
}

type editInput struct {
	IDPath
	Body EditRequest
}

func (s *api) payloads() {
	register(s, route{role: Operator, method: http.MethodGet, path: "/dead-letters/{id}/payload", id: "show-payload",
		summary: "Show the payload of a dead letter", text: "It may be personal data: each look is logged with your name. Do not cache it.",
		errors: []int{http.StatusNotFound, http.StatusConflict}}, s.payload)
	register(s, route{role: Operator, method: http.MethodPut, path: "/dead-letters/{id}/payload", id: "edit-payload",
		summary: "Give a dead letter another payload", text: "It must be PENDING or FAILED. The payload before and the difference stay in the audit. A change of decision_id, timestamp, path, result or input needs the role admin and, unless " +
			"the rule is switched off, a proposal.",
		errors: refusals, payload: true}, s.edit)
}

func (s *api) payload(ctx context.Context, c caller, in *IDPath) (*payloadOutput, error) {
	e, err := s.Book.Show(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	s.metrics.looks.Inc()
	s.log.Info().Str("operator", c.Name).Str("dead_letter", e.ID).Msg("payload read")
	out := &payloadOutput{Payload{ID: e.ID, Key: bytesOf(e.Key), Value: bytesOf(e.Value), Headers: make([]Header, 0, len(e.Headers)), Edited: e.Edited}}
	for _, h := range e.Headers {
		out.Body.Headers = append(out.Body.Headers, headerOf(h))
	}
	return out, nil
}

func (s *api) edit(ctx context.Context, c caller, in *editInput) (*movedOutput, error) {
	value, err := in.Body.value()
	if err != nil {
		return nil, err
	}
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	e, err := s.Book.Show(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if e.Value != nil && bytes.Equal(e.Value, value) {
		return nil, faulty("body.payload", "another payload than the one that it has; to retry it as it is, POST …/retry")
	}
	if err := unedited(e, in.Body.Seen); err != nil {
		return nil, err
	}
	if err := s.alone(ctx, c, e.ID, value); err != nil {
		return nil, err
	}
	var lease time.Duration
	state := e.State
	if in.Body.Retry {
		lease, state = s.Lease, ledger.Processing
	}
	if err := s.Book.Edit(ctx, e.ID, ledger.VersionOf(e.Value), value, difference(e.Value, value), lease, by); err != nil {
		return nil, err
	}
	return s.moved(c, e.ID, state, ledger.Edited, []ledger.Outcome{{ID: e.ID}}, nil)
}

// unedited returns an error if a letter has another payload than a caller saw. Without seen the caller does not say.
func unedited(e ledger.Entry, seen string) error {
	if seen != "" && ledger.Version(seen) != ledger.VersionOf(e.Value) {
		return &ledger.EditedError{ID: e.ID}
	}
	return nil
}

func (r EditRequest) value() ([]byte, error) {
	switch {
	case (r.Payload == nil) == (r.Base64 == nil):
		return nil, faulty("body.payload", "either payload or base64, and one of them")
	case r.Payload != nil:
		return []byte(*r.Payload), nil
	}
	return r.Base64, nil
}

// faulty is the problem of a request that fits the schema and is still invalid.
func faulty(location, message string) *Problem {
	p := problem(http.StatusUnprocessableEntity, "the request makes no sense", hintOf(http.StatusUnprocessableEntity))
	p.Faults = []Fault{{location, message}}
	return p
}

// maxDiff is the largest payload for which a difference is computed. The audit has the old payload of any size.
const maxDiff = 1 << 20

// difference returns the changed lines. JSON is first broken into lines.
func difference(before, after []byte) string {
	if len(before) > maxDiff || len(after) > maxDiff || !utf8.Valid(before) || !utf8.Valid(after) {
		return fmt.Sprintf("%d bytes became %d bytes", len(before), len(after))
	}
	return udiff.Unified("before", "after", inLines(before), inLines(after))
}

func inLines(text []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		b.Reset()
		b.Write(text)
	}
	if n := b.Len(); n > 0 && b.Bytes()[n-1] != '\n' {
		b.WriteByte('\n')
	}
	return b.String()
}
