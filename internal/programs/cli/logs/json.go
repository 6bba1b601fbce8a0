package logs

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/record/escape"
)

// jsonDecision is a stored decision. Its parts from OPA are as they were stored.
type jsonDecision struct {
	ID          string             `json:"decision_id"`
	Time        *time.Time         `json:"timestamp"`
	Verdict     string             `json:"verdict"`
	Allowed     *bool              `json:"allowed"`
	Path        *string            `json:"path"`
	Service     *string            `json:"service"`
	RequestedBy *string            `json:"requested_by"`
	ReqID       *int64             `json:"req_id"`
	OPAID       *string            `json:"opa_id"`
	OPAVersion  *string            `json:"opa_version"`
	Labels      json.RawMessage    `json:"labels"`
	Bundles     json.RawMessage    `json:"bundles"`
	Origin      frame.Position     `json:"origin"`
	StoredAt    *time.Time         `json:"stored_at"`
	Shard       string             `json:"shard,omitempty"` // without shards it is missing
	UploadedBy  *string            `json:"uploaded_by,omitempty"`
	Edited      *reader.Edit       `json:"edited,omitempty"`
	Ahead       int64              `json:"ahead_seconds,omitempty"` // of when it was stored
	Unfaithful  []string           `json:"unfaithful,omitempty"`
	Unreadable  bool               `json:"unreadable,omitempty"`
	Archived    *reader.ArchivedIn `json:"archived,omitempty"` // missing: it is a row of the table
	Decision    json.RawMessage    `json:"decision,omitempty"` // all of it, where it was asked for
}

// Columns returns the members of a decision as JSON has it, in their order. With full, the last is the whole decision.
func Columns(full bool) (names []string) {
	for f := range reflect.TypeFor[jsonDecision]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "decision" || full {
			names = append(names, name)
		}
	}
	return names
}

func decisionOf(d reader.Decision) jsonDecision {
	return jsonDecision{
		ID: d.ID, Time: frame.UTC(d.Time), Verdict: string(d.Verdict), Allowed: d.Allowed, Path: d.Path, Service: d.Service, RequestedBy: d.RequestedBy, ReqID: d.ReqID,
		OPAID: d.OPAID, OPAVersion: d.OPAVersion, Labels: orNull(d.Labels), Bundles: orNull(d.Bundles),
		Origin: frame.Position{Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, Index: &d.Index}, StoredAt: frame.UTC(d.StoredAt), Shard: d.Shard, UploadedBy: d.UploadedBy, Edited: d.Edit, Ahead: int64(d.Ahead() / time.Second), Decision: d.Raw, Unfaithful: d.Unfaithful, Unreadable: d.Unreadable, Archived: d.Archived,
	}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// pageEnd is the end of a search as JSON.
type pageEnd struct {
	next    string
	later   time.Time // decisions from then on were left out; zero: none were
	unknown string    // why edits may be incomplete
	gaps    []reader.Gap
	said    *reader.Completeness
}

// jsonPart prints a part of a search as JSON; the parts together are one object. The number before counts those that were printed
// before; it is below 0 at the beginning.
func (p *printer) jsonPart(decisions []reader.Decision, before int, last bool, end pageEnd) {
	if before < 0 {
		p.Say("{\n  \"decisions\": [")
		before = 0
	}
	for i, d := range decisions {
		text, err := json.MarshalIndent(decisionOf(d), "    ", "  ")
		if err != nil {
			p.Unwritten(err)
			continue
		}
		comma := ","
		if before+i == 0 {
			comma = ""
		}
		p.Say("%s\n    %s", comma, term.Safe(escape.JSON(text)))
	}
	if last {
		text, _ := json.Marshal(end.next) //nolint:errchkjson // a string
		p.Say("\n  ],\n  \"next\": %s", term.Safe(escape.JSON(text)))
		if !end.later.IsZero() {
			p.Say(",\n  \"later\": %q", end.later.Format(time.RFC3339))
		}
		if gaps := reader.GapTexts(end.gaps); len(gaps) > 0 {
			text, _ := json.Marshal(gaps) //nolint:errchkjson // strings
			p.Say(",\n  \"not_looked\": %s", term.Safe(escape.JSON(text)))
		}
		if end.unknown != "" {
			text, _ := json.Marshal(end.unknown) //nolint:errchkjson // a string
			p.Say(",\n  \"edits_unknown\": %s", term.Safe(escape.JSON(text)))
		}
		p.Say("%s", term.Safe(jsonComplete(end.said)))
		if p.parts.Err() != nil {
			text, _ := json.Marshal(p.partial()) //nolint:errchkjson // texts
			p.Say(",\n  %s", term.Safe(escape.JSON(text[1:len(text)-1])))
		}
		p.Say("\n}\n")
	}
}

// jsonOfID prints the decisions of an id as JSON, with the other places of the id. edits is why edits are unknown.
func (p *printer) jsonOfID(decisions []reader.Decision, a *lookup.Answer, edits string, said *reader.Completeness) {
	all := []jsonDecision{}
	for _, d := range decisions {
		all = append(all, decisionOf(d))
	}
	p.Print(struct {
		Decisions []jsonDecision `json:"decisions"`
		Next      string         `json:"next"`
		Edits     string         `json:"edits_unknown,omitempty"` // why it may not be known that they were edited
		jsonElsewhere
		*reader.Completeness
		jsonPartial
	}{all, "", edits, elsewhereOf(a), said, p.partial()})
}

// jsonLines prints decisions as JSON, a line for each.
func (p *printer) jsonLines(decisions []reader.Decision) {
	for _, d := range decisions {
		text, err := json.Marshal(decisionOf(d))
		if err != nil {
			p.Unwritten(err)
			continue
		}
		p.Say("%s\n", term.Safe(escape.JSON(text)))
	}
}
