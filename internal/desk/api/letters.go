package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"docket/internal/desk/ledger"
)

// wholeID is the length of an id.
const wholeID = 64

// IDPath names a dead letter.
type IDPath struct {
	ID string `path:"id" pattern:"^[0-9a-f]{6,64}$" doc:"Whole, or its first characters, at least 6"`
}

type listInput struct {
	FilterQuery
	After string `query:"after" maxLength:"512" doc:"The next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}

// LetterList is a part of a list, the newest failure first.
type LetterList struct {
	Letters []Letter `json:"letters" nullable:"false"`
	Next    string   `json:"next,omitempty" doc:"Give it as after to get the next page; it is missing on the last page"`
	// Surplus is on the first page only.
	Surplus []Surplus `json:"surplus,omitempty" doc:"On the first page: ranges of dead letters that a desk has read and left in Kafka, as their clients brought too many"`
	// MoreSurplus is true if there are more ranges than those in Surplus.
	MoreSurplus bool `json:"surplus_more,omitempty" doc:"There are more ranges than those in surplus, which are the oldest 1,000: GET /surplus lists all"`
}

// Surplus is a range of a dead-letter topic with dead letters of one client that are not in the ledger.
type Surplus struct {
	Client    string    `json:"client" doc:"Empty: none that is proven"`
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	First     int64     `json:"first_offset" doc:"Of what is not in the ledger"`
	Last      int64     `json:"last_offset"`
	Letters   int64     `json:"letters" doc:"Dead letters of the client; between them are records of others"`
	LeftAt    time.Time `json:"left_at"`
}

// mostSurplus limits the ranges in an answer.
const mostSurplus = 1000

type listOutput struct{ Body LetterList }
type letterOutput struct{ Body Letter }

// Event is one line of a dead letter's audit, without payloads.
type Event struct {
	ID       int64        `json:"audit_id,omitempty"`
	At       time.Time    `json:"at"`
	Act      ledger.Act   `json:"act" enum:"entered,retried,died,stored,refused,lease_ended,closed,edited,removed,archived,restored,changed,proposed,approved,rejected,reopened,assigned,snoozed"`
	From     ledger.State `json:"from,omitempty" enum:"PENDING,PROCESSING,FAILED,RESOLVED" doc:"Without it, it entered"`
	To       ledger.State `json:"to,omitempty" enum:"PENDING,PROCESSING,FAILED,RESOLVED" doc:"Without it, it left"`
	By       string       `json:"by"`
	Why      string       `json:"why"`
	Attempts int          `json:"attempts"`
	Job      int64        `json:"job,omitempty"`
	Changed  bool         `json:"changed" doc:"The payload was changed; docket dlq show has the difference"`
	// The server's facts about the session, besides the program's claim in By.
	Login       string   `json:"login,omitempty" doc:"The database login that did it; by is what the program said. Without it, an earlier release wrote this"`
	Application string   `json:"application,omitempty" doc:"The application_name of the session, which the program chooses"`
	Client      string   `json:"client,omitempty" doc:"The address that the session came from; without it, a local socket"`
	Columns     []string `json:"columns,omitempty" doc:"Of the act changed: the columns that were changed"`
	// Of a payload before.
	Original *Bytes          `json:"original,omitempty" doc:"With payload: the payload before the change"`
	Diff     string          `json:"diff,omitempty" doc:"With payload: what the change changed, by lines"`
	Was      json.RawMessage `json:"was,omitempty" doc:"With payload, of the act changed: the columns before"`
}

// Retry is one retry of a dead letter.
type Retry struct {
	ID        int64                 `json:"retry_id,omitempty"`
	At        time.Time             `json:"at"`
	By        string                `json:"by"`
	Job       int64                 `json:"job,omitempty"`
	Topic     string                `json:"topic"`
	Tries     int                   `json:"tries" doc:"Publishes that failed"`
	Published *Found                `json:"published,omitempty" doc:"Where its record stands; without it, it is not published"`
	Outcome   ledger.SendingOutcome `json:"outcome,omitempty" enum:"stored,dead,refused,withdrawn" doc:"Without it, it has not ended"`
	EndedAt   *time.Time            `json:"ended_at,omitempty"`
	Code      string                `json:"code,omitempty" doc:"Why it was not published, or why it is dead again"`
}

// History is the audit of a dead letter, oldest first, and its retries.
type History struct {
	ID      string  `json:"id"`
	Events  []Event `json:"events" nullable:"false"`
	Retries []Retry `json:"retries" nullable:"false"`
}

type historyOutput struct{ Body History }

func (s *api) letters() {
	register(s, route{role: Viewer, method: http.MethodGet, path: "/dead-letters", id: "list-dead-letters",
		summary: "List dead letters, the newest failure first"}, s.list)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/dead-letters/{id}", id: "show-dead-letter",
		summary: "Show a dead letter, without its payload", errors: []int{http.StatusNotFound, http.StatusConflict}}, s.show)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/dead-letters/{id}/history", id: "show-history",
		summary: "Show what happened to a dead letter", text: "It works for those that were removed, too, by their whole id.",
		errors: []int{http.StatusNotFound, http.StatusConflict}}, s.history)
}

func (s *api) list(ctx context.Context, _ caller, in *listInput) (*listOutput, error) {
	found, err := s.Book.List(ctx, in.ledger(), ledger.Page{After: in.After, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := &listOutput{LetterList{Letters: make([]Letter, 0, len(found.Entries)), Next: found.Next}}
	for _, e := range found.Entries {
		out.Body.Letters = append(out.Body.Letters, LetterOf(e))
	}
	if in.After != "" {
		return out, nil
	}
	left, err := s.Book.Surplus(ctx, false, 0, mostSurplus+1)
	if err != nil {
		return nil, err
	}
	if out.Body.MoreSurplus = len(left) > mostSurplus; out.Body.MoreSurplus {
		left = left[:mostSurplus]
	}
	for i := range left {
		if r := &left[i]; r.Open() > 0 {
			out.Body.Surplus = append(out.Body.Surplus, Surplus{r.Client, r.Topic, r.Partition, r.Next, r.Last, r.Open(), r.LeftAt.UTC()})
		}
	}
	return out, nil
}

func (s *api) show(ctx context.Context, _ caller, in *IDPath) (*letterOutput, error) {
	e, err := s.Book.Show(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	out := LetterOf(e)
	if e.Value != nil {
		n := len(e.Value)
		out.PayloadBytes = &n
	}
	return &letterOutput{out}, nil
}

// historyInput asks for a history.
type historyInput struct {
	IDPath
	Payload bool `query:"payload" doc:"With the payloads before changes, which may be personal data; it needs the role operator and is logged with your name"`
}

func (s *api) history(ctx context.Context, c caller, in *historyInput) (*historyOutput, error) {
	if in.Payload && c.Role < Operator {
		return nil, problem(http.StatusForbidden, "payload needs the role "+Operator.String()+"; yours is "+c.Role.String(), "leave it away, or ask somebody with that role, or for that role")
	}
	id, err := s.whole(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	events, retries, err := s.Book.History(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, ledger.ErrNotFound
	}
	out := &historyOutput{History{ID: id, Events: make([]Event, 0, len(events)), Retries: make([]Retry, 0, len(retries))}}
	for _, a := range events {
		e := eventOf(a)
		if in.Payload {
			e.Diff, e.Was = a.Diff, a.Was
			if a.Original != nil {
				was := bytesOf(a.Original)
				e.Original = &was
			}
		}
		out.Body.Events = append(out.Body.Events, e)
	}
	if in.Payload {
		s.metrics.looks.Inc()
		s.log.Info().Str("operator", c.Name).Str("dead_letter", id).Msg("payloads of history read")
	}
	for _, r := range retries {
		out.Body.Retries = append(out.Body.Retries, retryOf(r))
	}
	return out, nil
}

// whole returns the whole id of a letter from its first characters.
func (s *api) whole(ctx context.Context, id string) (string, error) {
	if len(id) == wholeID {
		return id, nil
	}
	e, err := s.Book.Show(ctx, id)
	return e.ID, err
}

func eventOf(a ledger.Audit) Event {
	return Event{ID: a.ID, At: a.At.UTC(), Act: a.Act, From: a.From, To: a.To, By: a.By, Why: a.Why, Attempts: a.Attempts, Job: a.Job,
		Changed: a.Original != nil || a.Diff != "", Login: a.Login, Application: a.Application, Client: a.Client, Columns: a.Columns}
}

func retryOf(r ledger.Sending) Retry {
	out := Retry{ID: r.ID, At: r.CreatedAt.UTC(), By: r.By, Job: r.Job, Topic: r.Topic, Tries: r.Tries, Outcome: r.Outcome,
		EndedAt: moment(r.EndedAt), Code: r.Code}
	if !r.Published.Stamp.IsZero() {
		f := foundOf(r.Published)
		out.Published = &f
	}
	return out
}
