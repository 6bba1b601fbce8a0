package deskcli

import (
	"encoding/json"
	"time"

	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/record/escape"
)

// jsonDecision is a stored decision. What OPA said of it is as it was stored.
type jsonDecision struct {
	ID          string          `json:"decision_id"`
	Time        *time.Time      `json:"timestamp"`
	Verdict     string          `json:"verdict"`
	Allowed     *bool           `json:"allowed"`
	Path        *string         `json:"path"`
	Service     *string         `json:"service"`
	RequestedBy *string         `json:"requested_by"`
	ReqID       *int64          `json:"req_id"`
	OPAID       *string         `json:"opa_id"`
	OPAVersion  *string         `json:"opa_version"`
	Labels      json.RawMessage `json:"labels"`
	Bundles     json.RawMessage `json:"bundles"`
	Origin      jsonPlace       `json:"origin"`
	StoredAt    *time.Time      `json:"stored_at"`
	UploadedBy  *string         `json:"uploaded_by,omitempty"`
	Edited      *reader.Edit    `json:"edited,omitempty"`
	Ahead       int64           `json:"ahead_seconds,omitempty"` // of when it was stored
	Unfaithful  []string        `json:"unfaithful,omitempty"`
	Unreadable  bool            `json:"unreadable,omitempty"`
	Decision    json.RawMessage `json:"decision,omitempty"` // all of it, where it was asked for
}

func decisionOf(d reader.Decision) jsonDecision {
	return jsonDecision{
		ID: d.ID, Time: at(d.Time), Verdict: string(d.Verdict), Allowed: d.Allowed, Path: d.Path, Service: d.Service, RequestedBy: d.RequestedBy, ReqID: d.ReqID,
		OPAID: d.OPAID, OPAVersion: d.OPAVersion, Labels: orNull(d.Labels), Bundles: orNull(d.Bundles),
		Origin: jsonPlace{Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, Index: &d.Index}, StoredAt: at(d.StoredAt), UploadedBy: d.UploadedBy, Edited: d.Edit, Ahead: int64(d.Ahead() / time.Second), Decision: d.Raw, Unfaithful: d.Unfaithful, Unreadable: d.Unreadable,
	}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// decisionPart prints a part of a search as JSON; the parts together are one object.
// before is how many went before, below 0 where nothing was printed as yet; later is from where on decisions were left out, zero where none were.
func (s *session) decisionPart(decisions []reader.Decision, before int, last bool, next string, later time.Time, unknown string) {
	if before < 0 {
		s.say("{\n  \"decisions\": [")
		before = 0
	}
	for i, d := range decisions {
		text, err := json.MarshalIndent(decisionOf(d), "    ", "  ")
		if err != nil {
			s.unwritten(err)
			continue
		}
		comma := ","
		if before+i == 0 {
			comma = ""
		}
		s.say("%s\n    %s", comma, escape.JSON(text))
	}
	if last {
		text, _ := json.Marshal(next) //nolint:errchkjson // a string
		s.say("\n  ],\n  \"next\": %s", escape.JSON(text))
		if !later.IsZero() {
			s.say(",\n  \"later\": %q", later.Format(time.RFC3339))
		}
		if unknown != "" {
			text, _ := json.Marshal(unknown) //nolint:errchkjson // a string
			s.say(",\n  \"edits_unknown\": %s", escape.JSON(text))
		}
		s.say("\n}\n")
	}
}

// decisionsOfID prints the decisions of an id as JSON, with what else has it, where it was looked for, and why edits may not be known.
func (s *session) decisionsOfID(decisions []reader.Decision, a *lookup.Answer, edits string) {
	all := []jsonDecision{}
	for _, d := range decisions {
		all = append(all, decisionOf(d))
	}
	s.print(struct {
		Decisions []jsonDecision `json:"decisions"`
		Next      string         `json:"next"`
		Edits     string         `json:"edits_unknown,omitempty"` // why it may not be known that they were edited
		jsonElsewhere
	}{all, "", edits, elsewhereOf(a)})
}

// decisionLines prints decisions as JSON, a line for each.
func (s *session) decisionLines(decisions []reader.Decision) {
	for _, d := range decisions {
		text, err := json.Marshal(decisionOf(d))
		if err != nil {
			s.unwritten(err)
			continue
		}
		s.say("%s\n", escape.JSON(text))
	}
}

// unwritten tells of a decision that could not be written as JSON: what the database keeps as jsonb always can.
func (s *session) unwritten(err error) {
	s.code = 1
	s.tell("%s: write JSON: %T\n", s.env.Program, err)
}
