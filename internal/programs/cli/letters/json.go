package letters

import (
	"encoding/json"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
)

type jsonEntry struct {
	ID            string         `json:"id"`
	State         string         `json:"state"`
	Fingerprint   string         `json:"fingerprint"`
	Kind          string         `json:"kind"`
	Code          string         `json:"code"`
	Message       string         `json:"message"`
	Table         string         `json:"table,omitempty"`
	Column        string         `json:"column,omitempty"`
	Constraint    string         `json:"constraint,omitempty"`
	Path          string         `json:"path,omitempty"`
	DecisionID    string         `json:"decision_id,omitempty"`
	DecisionTime  *time.Time     `json:"decision_time,omitempty"`
	Origin        frame.Position `json:"origin"`
	Found         frame.Position `json:"found"`
	FirstFailedAt *time.Time     `json:"first_failed_at"`
	FailedAt      *time.Time     `json:"failed_at"`
	Attempts      int            `json:"attempts"`
	Edited        bool           `json:"edited"`
	SeenAt        *time.Time     `json:"seen_at"`
	ChangedAt     *time.Time     `json:"changed_at"`
	ChangedBy     string         `json:"changed_by"`
	Why           string         `json:"why"`
	Owner         string         `json:"owner,omitempty"`
	LeaseUntil    *time.Time     `json:"lease_until,omitempty"`
	Job           int64          `json:"job,omitempty"`
	Parent        string         `json:"parent,omitempty"`
	ArchivedIn    string         `json:"archived_in,omitempty"`
	Assigned      string         `json:"assigned,omitempty"`
	SnoozedUntil  *time.Time     `json:"snoozed_until,omitempty"`
}

func entryOf(e ledger.Entry) jsonEntry {
	return jsonEntry{
		ID: e.ID, State: string(e.State), Fingerprint: e.Fingerprint, Kind: string(e.Cause.Kind), Code: e.Cause.Code, Message: e.Cause.Message,
		Table: e.Cause.Table, Column: e.Cause.Column, Constraint: e.Cause.Constraint, Path: e.Path, DecisionID: e.DecisionID,
		DecisionTime: frame.UTC(e.DecisionTime), Origin: frame.PositionOf(e.Origin), Found: frame.FoundAt(e.Found), FirstFailedAt: frame.UTC(e.FirstFailedAt),
		FailedAt: frame.UTC(e.FailedAt), Attempts: e.Attempts, Edited: e.Edited, SeenAt: frame.UTC(e.SeenAt), ChangedAt: frame.UTC(e.ChangedAt),
		ChangedBy: e.ChangedBy, Why: e.Why, Owner: e.Owner, LeaseUntil: frame.UTC(e.LeaseUntil), Job: e.Job, Parent: e.Parent, ArchivedIn: e.ArchivedIn, Assigned: e.Assigned, SnoozedUntil: frame.UTC(e.SnoozedUntil),
	}
}

type jsonGroup struct {
	Fingerprint string           `json:"fingerprint"`
	Kind        string           `json:"kind"`
	Code        string           `json:"code"`
	Table       string           `json:"table,omitempty"`
	Column      string           `json:"column,omitempty"`
	Constraint  string           `json:"constraint,omitempty"`
	Message     string           `json:"message"`
	Open        int64            `json:"open"`
	Counts      map[string]int64 `json:"counts"`
	Paths       []string         `json:"paths"`
	FirstSeen   *time.Time       `json:"first_seen"`
	Oldest      *time.Time       `json:"oldest"`
	Newest      *time.Time       `json:"newest"`
	Snoozed     int64            `json:"snoozed"`
	// Of the group as a whole.
	Assigned     string     `json:"assigned,omitempty"`
	SnoozedUntil *time.Time `json:"snoozed_until,omitempty"`
}

func groupOf(g ledger.Group) jsonGroup {
	return jsonGroup{
		Fingerprint: g.Fingerprint, Kind: string(g.Kind), Code: g.Code, Table: g.Table, Column: g.Column, Constraint: g.Constraint,
		Message: g.Message, Open: g.Open(), Counts: countsOf(g.Counts), Paths: append([]string{}, g.Paths...), FirstSeen: frame.UTC(g.FirstSeen),
		Oldest: frame.UTC(g.Oldest), Newest: frame.UTC(g.Newest), Snoozed: g.Snoozed, Assigned: g.Assigned, SnoozedUntil: frame.UTC(g.SnoozedUntil),
	}
}

// countsOf has every state, also those without dead letters.
func countsOf(counts map[ledger.State]int64) map[string]int64 {
	out := map[string]int64{}
	for _, state := range ledger.States() {
		out[string(state)] = counts[state]
	}
	return out
}

type jsonAudit struct {
	At       *time.Time `json:"at"`
	Act      string     `json:"act"`
	From     string     `json:"from"`
	To       string     `json:"to"`
	By       string     `json:"by"`
	Why      string     `json:"why"`
	Attempts int        `json:"attempts"`
	Job      int64      `json:"job,omitempty"`
	// The connection as the server saw it; by is the name that the program gave.
	Login       string   `json:"login,omitempty"`
	Application string   `json:"application,omitempty"`
	Client      string   `json:"client,omitempty"`
	Columns     []string `json:"columns,omitempty"` // that were changed, of the act changed

	Was  json.RawMessage `json:"was,omitempty"` // their values before
	Diff string          `json:"diff,omitempty"`
	// The value before an edit: as JSON where it is JSON, else as base64.
	Original       json.RawMessage `json:"original,omitempty"`
	OriginalBase64 []byte          `json:"original_base64,omitempty"`
}

type jsonSending struct {
	ID        int64           `json:"id"`
	CreatedAt *time.Time      `json:"created_at"`
	By        string          `json:"by"`
	Tries     int             `json:"tries"`
	Published *frame.Position `json:"published"`
	Outcome   string          `json:"outcome"`
	Code      string          `json:"code,omitempty"`
	EndedAt   *time.Time      `json:"ended_at"`
	Job       int64           `json:"job,omitempty"`
}

func sendingOf(r ledger.Sending) jsonSending {
	out := jsonSending{
		ID: r.ID, CreatedAt: frame.UTC(r.CreatedAt), By: r.By, Tries: r.Tries, Outcome: string(r.Outcome), Code: r.Code, EndedAt: frame.UTC(r.EndedAt), Job: r.Job,
	}
	if !r.Published.Stamp.IsZero() {
		p := frame.FoundAt(r.Published)
		out.Published = &p
	}
	return out
}
