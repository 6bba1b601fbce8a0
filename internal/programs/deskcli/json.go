package deskcli

import (
	"bytes"
	"encoding/json"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
	"docket/internal/record/escape"
)

// print writes JSON. Names of fields are stable; nothing in it steers a terminal.
func (s *session) print(v any) {
	var b bytes.Buffer
	e := escape.Encoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		s.code = 1
		s.tell("%s: write JSON: %v\n", s.env.Program, err)
		return
	}
	s.say("%s", b.Bytes())
}

type jsonPlace struct {
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Offset    int64      `json:"offset"`
	Index     *int       `json:"index,omitempty"`
	Timestamp *time.Time `json:"timestamp,omitempty"`
}

func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func placeOf(o envelope.Origin) jsonPlace {
	p := jsonPlace{Topic: o.Topic, Partition: o.Partition, Offset: o.Offset, Timestamp: at(o.Timestamp)}
	if o.Index != envelope.NoIndex {
		p.Index = &o.Index
	}
	return p
}

func foundAt(f ledger.Found) jsonPlace {
	return jsonPlace{Topic: f.Topic, Partition: f.Partition, Offset: f.Offset, Timestamp: at(f.Stamp)}
}

type jsonEntry struct {
	ID            string     `json:"id"`
	State         string     `json:"state"`
	Fingerprint   string     `json:"fingerprint"`
	Kind          string     `json:"kind"`
	Code          string     `json:"code"`
	Message       string     `json:"message"`
	Table         string     `json:"table,omitempty"`
	Column        string     `json:"column,omitempty"`
	Constraint    string     `json:"constraint,omitempty"`
	Path          string     `json:"path,omitempty"`
	DecisionID    string     `json:"decision_id,omitempty"`
	DecisionTime  *time.Time `json:"decision_time,omitempty"`
	Origin        jsonPlace  `json:"origin"`
	Found         jsonPlace  `json:"found"`
	FirstFailedAt *time.Time `json:"first_failed_at"`
	FailedAt      *time.Time `json:"failed_at"`
	Attempts      int        `json:"attempts"`
	Edited        bool       `json:"edited"`
	SeenAt        *time.Time `json:"seen_at"`
	ChangedAt     *time.Time `json:"changed_at"`
	ChangedBy     string     `json:"changed_by"`
	Why           string     `json:"why"`
	Owner         string     `json:"owner,omitempty"`
	LeaseUntil    *time.Time `json:"lease_until,omitempty"`
	Job           int64      `json:"job,omitempty"`
	Parent        string     `json:"parent,omitempty"`
	ArchivedIn    string     `json:"archived_in,omitempty"`
}

func entryOf(e ledger.Entry) jsonEntry {
	return jsonEntry{
		ID: e.ID, State: string(e.State), Fingerprint: e.Fingerprint, Kind: string(e.Cause.Kind), Code: e.Cause.Code, Message: e.Cause.Message,
		Table: e.Cause.Table, Column: e.Cause.Column, Constraint: e.Cause.Constraint, Path: e.Path, DecisionID: e.DecisionID,
		DecisionTime: at(e.DecisionTime), Origin: placeOf(e.Origin), Found: foundAt(e.Found), FirstFailedAt: at(e.FirstFailedAt),
		FailedAt: at(e.FailedAt), Attempts: e.Attempts, Edited: e.Edited, SeenAt: at(e.SeenAt), ChangedAt: at(e.ChangedAt),
		ChangedBy: e.ChangedBy, Why: e.Why, Owner: e.Owner, LeaseUntil: at(e.LeaseUntil), Job: e.Job, Parent: e.Parent, ArchivedIn: e.ArchivedIn,
	}
}

// jsonList is every list.
type jsonList[T any] struct {
	Entries []T    `json:"entries"`
	Next    string `json:"next"`
}

func listOf[From, To any](from []From, next string, of func(From) To) jsonList[To] {
	l := jsonList[To]{Entries: make([]To, 0, len(from)), Next: next}
	for _, f := range from {
		l.Entries = append(l.Entries, of(f))
	}
	return l
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
}

func groupOf(g ledger.Group) jsonGroup {
	return jsonGroup{
		Fingerprint: g.Fingerprint, Kind: string(g.Kind), Code: g.Code, Table: g.Table, Column: g.Column, Constraint: g.Constraint,
		Message: g.Message, Open: g.Open(), Counts: countsOf(g.Counts), Paths: append([]string{}, g.Paths...), FirstSeen: at(g.FirstSeen),
		Oldest: at(g.Oldest), Newest: at(g.Newest),
	}
}

// countsOf has every state, those without letters too.
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
	// The session as the server knew it; by is what the program said.
	Login       string   `json:"login,omitempty"`
	Application string   `json:"application,omitempty"`
	Client      string   `json:"client,omitempty"`
	Columns     []string `json:"columns,omitempty"` // that were changed, of the act changed

	Was  json.RawMessage `json:"was,omitempty"` // their values before
	Diff string          `json:"diff,omitempty"`
	// The value before an edit, as in jsonPayload.
	Original       json.RawMessage `json:"original,omitempty"`
	OriginalBase64 []byte          `json:"original_base64,omitempty"`
}

type jsonSending struct {
	ID        int64      `json:"id"`
	CreatedAt *time.Time `json:"created_at"`
	By        string     `json:"by"`
	Tries     int        `json:"tries"`
	Published *jsonPlace `json:"published"`
	Outcome   string     `json:"outcome"`
	Code      string     `json:"code,omitempty"`
	EndedAt   *time.Time `json:"ended_at"`
	Job       int64      `json:"job,omitempty"`
}

func sendingOf(r ledger.Sending) jsonSending {
	out := jsonSending{
		ID: r.ID, CreatedAt: at(r.CreatedAt), By: r.By, Tries: r.Tries, Outcome: string(r.Outcome), Code: r.Code, EndedAt: at(r.EndedAt), Job: r.Job,
	}
	if !r.Published.Stamp.IsZero() {
		p := foundAt(r.Published)
		out.Published = &p
	}
	return out
}

type jsonJob struct {
	ID        int64         `json:"id"`
	Act       string        `json:"act"`
	State     string        `json:"state"`
	Filter    ledger.Filter `json:"filter"`
	Rate      float64       `json:"rate"`
	Limit     int64         `json:"limit"`
	Operator  string        `json:"operator"`
	Reason    string        `json:"reason"`
	Matched   int64         `json:"matched"`
	Sent      int64         `json:"sent"`
	Stored    int64         `json:"stored"`
	Dead      int64         `json:"dead"`
	Refused   int64         `json:"refused"`
	Open      int64         `json:"open"`
	CreatedAt *time.Time    `json:"created_at"`
	StartedAt *time.Time    `json:"started_at"`
	EndedAt   *time.Time    `json:"ended_at"`
	Note      string        `json:"note"`
	StoppedBy string        `json:"stopped_by,omitempty"`
	Owner     string        `json:"owner,omitempty"`
}

func jobOf(j ledger.Job) jsonJob {
	return jsonJob{
		ID: j.ID, Act: string(j.Act), State: string(j.State), Filter: j.Filter, Rate: j.Rate, Limit: j.Limit, Operator: j.Operator, Reason: j.Reason,
		Matched: j.Matched, Sent: j.Sent, Stored: j.Stored, Dead: j.Dead, Refused: j.Refused, Open: underWay(j), CreatedAt: at(j.CreatedAt),
		StartedAt: at(j.StartedAt), EndedAt: at(j.EndedAt), Note: j.Note, StoppedBy: j.StoppedBy, Owner: j.Owner,
	}
}
