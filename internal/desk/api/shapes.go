package api

import (
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
	"docket/internal/record/escape"
)

// Filter chooses dead letters in a body. Every set field has to match.
type Filter struct {
	Fingerprint string         `json:"fingerprint,omitempty" pattern:"^[0-9a-f]{4,16}$" doc:"Whole, or its first characters, at least 4"`
	Kind        envelope.Kind  `json:"kind,omitempty" enum:"decode,data,conflict,transient,exhausted,foreign"`
	Code        string         `json:"code,omitempty" minLength:"1" maxLength:"64" doc:"SQLSTATE, or a reason of the decoder or of ours"`
	Path        string         `json:"path,omitempty" minLength:"1" maxLength:"4096" doc:"Of the decision, exact"`
	States      []ledger.State `json:"states,omitempty" nullable:"false" enum:"PENDING,PROCESSING,FAILED,RESOLVED" minItems:"1" maxItems:"4"`
	From        *time.Time     `json:"from,omitempty" doc:"Last failure, from here"`
	To          *time.Time     `json:"to,omitempty" doc:"Last failure, before this"`
	Topic       string         `json:"topic,omitempty" minLength:"1" maxLength:"249" doc:"Original"`
	Partition   *int32         `json:"partition,omitempty" minimum:"0" maximum:"2147483647" doc:"Original"`
}

func (f Filter) ledger() ledger.Filter {
	l := ledger.Filter{Fingerprint: f.Fingerprint, Kind: f.Kind, Code: f.Code, Path: f.Path, States: f.States, Topic: f.Topic, Partition: f.Partition}
	if f.From != nil {
		l.From = *f.From
	}
	if f.To != nil {
		l.To = *f.To
	}
	return l
}

func filterOf(l ledger.Filter) Filter {
	return Filter{Fingerprint: l.Fingerprint, Kind: l.Kind, Code: l.Code, Path: l.Path, States: l.States,
		From: moment(l.From), To: moment(l.To), Topic: l.Topic, Partition: l.Partition}
}

// all reports whether f chooses everything.
func (f Filter) all() bool {
	return f.Fingerprint == "" && f.Kind == "" && f.Code == "" && f.Path == "" && len(f.States) == 0 &&
		f.From == nil && f.To == nil && f.Topic == "" && f.Partition == nil
}

// FilterQuery is Filter as query parameters.
type FilterQuery struct {
	Fingerprint string         `query:"fingerprint" pattern:"^[0-9a-f]{4,16}$" doc:"Whole, or its first characters, at least 4"`
	Kind        string         `query:"kind" enum:"decode,data,conflict,transient,exhausted,foreign"`
	Code        string         `query:"code" maxLength:"64" doc:"SQLSTATE, or a reason of the decoder or of ours"`
	Path        string         `query:"path" maxLength:"4096" doc:"Of the decision, exact"`
	States      []ledger.State `query:"states" nullable:"false" enum:"PENDING,PROCESSING,FAILED,RESOLVED" maxItems:"4" doc:"By comma"`
	From        time.Time      `query:"from" doc:"Last failure, from here"`
	To          time.Time      `query:"to" doc:"Last failure, before this"`
	Topic       string         `query:"topic" maxLength:"249" doc:"Original"`
	Partition   int32          `query:"partition" minimum:"-1" maximum:"2147483647" default:"-1" doc:"Original; -1: any"`
	Snoozed     string         `query:"snoozed" enum:"no,only" doc:"By whether they are snoozed; without it, all"`
	Assigned    string         `query:"assigned" maxLength:"64" doc:"The person who looks after them, or after their group; -: nobody"`
}

func (q FilterQuery) ledger() ledger.Filter {
	f := ledger.Filter{Fingerprint: q.Fingerprint, Kind: envelope.Kind(q.Kind), Code: q.Code, Path: q.Path, States: q.States,
		From: q.From, To: q.To, Topic: q.Topic, Snoozed: ledger.Snoozing(q.Snoozed), Assigned: q.Assigned}
	if q.Partition >= 0 {
		f.Partition = &q.Partition
	}
	return f
}

// moment returns nil for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = escape.Time(t)
	return &t
}

// Counts are the numbers of dead letters by state.
type Counts struct {
	Pending    int64 `json:"pending"`
	Processing int64 `json:"processing"`
	Failed     int64 `json:"failed"`
	Resolved   int64 `json:"resolved"`
}

func countsOf(m map[ledger.State]int64) Counts {
	return Counts{m[ledger.Pending], m[ledger.Processing], m[ledger.Failed], m[ledger.Resolved]}
}

// Origin is the place where a record was first read.
type Origin struct {
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Offset    int64      `json:"offset"`
	Index     *int       `json:"index,omitempty" doc:"Place inside its record; without it the record is dead as a whole"`
	Timestamp *time.Time `json:"timestamp,omitempty" doc:"Kafka timestamp"`
}

// Found is the place of a dead letter in a dead-letter topic.
type Found struct {
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Offset    int64      `json:"offset"`
	Timestamp *time.Time `json:"timestamp,omitempty" doc:"Kafka timestamp: retention counts from here"`
}

// Letter is a dead letter, without key, payload and headers.
type Letter struct {
	ID            string        `json:"id"`
	State         ledger.State  `json:"state" enum:"PENDING,PROCESSING,FAILED,RESOLVED"`
	Fingerprint   string        `json:"fingerprint" doc:"The same for all that failed alike"`
	Kind          envelope.Kind `json:"kind"`
	Code          string        `json:"code"`
	Message       string        `json:"message"`
	Table         string        `json:"table,omitempty"`
	Column        string        `json:"column,omitempty"`
	Constraint    string        `json:"constraint,omitempty"`
	Path          string        `json:"path,omitempty"`
	DecisionID    string        `json:"decision_id,omitempty"`
	DecisionTime  *time.Time    `json:"decision_time,omitempty"`
	Origin        Origin        `json:"origin"`
	Found         Found         `json:"found"`
	Attempts      int           `json:"attempts" doc:"Retries that ended dead"`
	Edited        bool          `json:"edited" doc:"The payload is not the one that it came with"`
	FirstFailedAt time.Time     `json:"first_failed_at"`
	FailedAt      time.Time     `json:"failed_at"`
	SeenAt        time.Time     `json:"seen_at" doc:"When it entered the ledger"`
	ChangedAt     time.Time     `json:"changed_at"`
	ChangedBy     string        `json:"changed_by"`
	Why           string        `json:"why"`
	LeaseUntil    *time.Time    `json:"lease_until,omitempty" doc:"Of a retry: when it is PENDING again if nothing is heard"`
	Owner         string        `json:"owner,omitempty" doc:"The program that retries it while it is PROCESSING"`
	Job           int64         `json:"job,omitempty" doc:"The last job that touched it"`
	Parent        string        `json:"parent,omitempty" doc:"The dead letter that it was a part of"`
	ArchivedIn    string        `json:"archived_in,omitempty" doc:"The archive that has it; docket restore --dead-letters brings it back once it was removed"`
	PayloadBytes  *int          `json:"payload_bytes,omitempty" doc:"Where one dead letter is shown: the length of its payload; without it the record has none"`
	Assigned      string        `json:"assigned,omitempty" doc:"The person who looks after it, or after its group"`
	SnoozedUntil  *time.Time    `json:"snoozed_until,omitempty" doc:"It, or its group, is hidden from the open ones until then"`
}

// LetterOf converts a dead letter, without its payload.
func LetterOf(e ledger.Entry) Letter {
	return Letter{ID: e.ID, State: e.State, Fingerprint: e.Fingerprint, Kind: e.Cause.Kind, Code: e.Cause.Code, Message: e.Cause.Message,
		Table: e.Cause.Table, Column: e.Cause.Column, Constraint: e.Cause.Constraint,
		Path: e.Path, DecisionID: e.DecisionID, DecisionTime: moment(e.DecisionTime), Origin: originOf(e.Origin), Found: foundOf(e.Letter.Found),
		Attempts: e.Attempts, Edited: e.Edited, FirstFailedAt: e.FirstFailedAt.UTC(), FailedAt: e.FailedAt.UTC(), SeenAt: e.SeenAt.UTC(),
		ChangedAt: e.ChangedAt.UTC(), ChangedBy: e.ChangedBy, Why: e.Why, LeaseUntil: moment(e.LeaseUntil), Owner: e.Owner, Job: e.Job, Parent: e.Parent, ArchivedIn: e.ArchivedIn, Assigned: e.Assigned, SnoozedUntil: moment(e.SnoozedUntil)}
}

func originOf(o envelope.Origin) Origin {
	out := Origin{Topic: o.Topic, Partition: o.Partition, Offset: o.Offset, Timestamp: moment(o.Timestamp)}
	if o.Index != envelope.NoIndex {
		out.Index = &o.Index
	}
	return out
}

func foundOf(f ledger.Found) Found { return Found{f.Topic, f.Partition, f.Offset, moment(f.Stamp)} }

// Group has the dead letters of one fingerprint.
type Group struct {
	Fingerprint string        `json:"fingerprint"`
	Kind        envelope.Kind `json:"kind"`
	Code        string        `json:"code"`
	Message     string        `json:"message" doc:"Of the first one"`
	Table       string        `json:"table,omitempty"`
	Column      string        `json:"column,omitempty"`
	Constraint  string        `json:"constraint,omitempty"`
	Counts      Counts        `json:"counts"`
	Open        int64         `json:"open" doc:"How many are not resolved"`
	Paths       []string      `json:"paths" nullable:"false" doc:"Up to 5, the most frequent first"`
	FirstSeen   *time.Time    `json:"first_seen,omitempty"`
	Oldest      *time.Time    `json:"oldest,omitempty" doc:"First failure of the oldest unresolved one"`
	Newest      *time.Time    `json:"newest,omitempty" doc:"Last failure"`
	Snoozed     int64         `json:"snoozed" doc:"How many of the open ones are snoozed"`
	// Of the group as a whole.
	Assigned     string     `json:"assigned,omitempty" doc:"The person who looks after the group"`
	SnoozedUntil *time.Time `json:"snoozed_until,omitempty" doc:"The whole group is hidden from the open ones until then"`
}

func groupOf(g ledger.Group) Group {
	return Group{Fingerprint: g.Fingerprint, Kind: g.Kind, Code: g.Code, Message: g.Message, Table: g.Table, Column: g.Column,
		Constraint: g.Constraint, Counts: countsOf(g.Counts), Open: g.Open(), Paths: append([]string{}, g.Paths...),
		FirstSeen: moment(g.FirstSeen), Oldest: moment(g.Oldest), Newest: moment(g.Newest), Snoozed: g.Snoozed, Assigned: g.Assigned, SnoozedUntil: moment(g.SnoozedUntil)}
}
