package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/errclass"
	"docket/internal/history/lookup"
	"docket/internal/record/envelope"
)

// ReportLine counts unresolved dead letters by kind, code and path.
type ReportLine struct {
	Kind   envelope.Kind `json:"kind"`
	Code   string        `json:"code"`
	Path   string        `json:"path,omitempty"`
	Counts Counts        `json:"counts"`
	Oldest *time.Time    `json:"oldest,omitempty" doc:"First failure of the oldest unresolved one"`
}

// Horizon says how long the topics still hold records that are needed; [*worker.Horizon] is one.
type Horizon interface {
	Look(ctx context.Context, now time.Time) []worker.HorizonLine
}

// HorizonLine is the state of one topic.
type HorizonLine struct {
	Topic        string     `json:"topic"`
	Known        bool       `json:"known" doc:"The topic could be looked at; else the desk's log says why not"`
	Oldest       *time.Time `json:"oldest,omitempty" doc:"Kafka timestamp of the oldest record that is still wanted"`
	Unread       int64      `json:"unread" doc:"Records that may be nowhere but in the topic: parked, dead letters that no desk has read, or not committed in a lane"`
	Gone         int64      `json:"gone" doc:"Records that were deleted before they were read: they are lost"`
	Forever      bool       `json:"forever" doc:"Nothing is deleted by time"`
	BytesLimited bool       `json:"bytes_limited" doc:"The topic has a limit of bytes: it may be earlier"`
	Deadline     *time.Time `json:"deadline,omitempty" doc:"When retention may delete the oldest; without it never, or not known"`
	LossAt       *time.Time `json:"loss_at,omitempty" doc:"When it may delete the first record that is nowhere else"`
	Parked       bool       `json:"parked" doc:"It is the parking topic"`
	Lane         string     `json:"lane,omitempty" doc:"The lane whose source topic it is. A topic without it that is not parked is a dead-letter topic"`
	OldestUnread *time.Time `json:"oldest_unread,omitempty" doc:"Kafka timestamp of the oldest of unread"`
	Retention    bool       `json:"retention_known"`
	RetentionFor int64      `json:"retention_seconds" doc:"0: without limit, or not known"`
	LeftSeconds  int64      `json:"left_seconds" doc:"To the deadline; negative: it has passed"`
	Used         float64    `json:"used" doc:"Share of the retention that has passed for the oldest; alarm from 0.5"`
}

func horizonOf(l worker.HorizonLine) HorizonLine {
	return HorizonLine{Topic: l.Topic, Known: l.Error == "", Oldest: moment(l.Oldest), Unread: l.Unread, Gone: l.Gone, Forever: l.Forever,
		BytesLimited: l.BytesLimited, Deadline: moment(l.Deadline), LossAt: moment(l.LossAt), Used: l.Used,
		Parked: l.Parked, Lane: l.Lane, OldestUnread: moment(l.OldestUnread), Retention: l.RetentionKnown, RetentionFor: l.RetentionSeconds, LeftSeconds: l.LeftSeconds}
}

// Report lists unresolved dead letters.
type Report struct {
	Lines      []ReportLine  `json:"lines" nullable:"false" doc:"The most first"`
	Unresolved int64         `json:"unresolved"`
	Horizon    []HorizonLine `json:"horizon" nullable:"false" doc:"How long the topics still hold what is needed of them"`
}

// Groups are the fingerprints that match a filter, or a part of them.
type Groups struct {
	Groups []Group `json:"groups" nullable:"false"`
	Next   string  `json:"next,omitempty" doc:"With limit: what to give as after; without it there are no more"`
}

// Verdict explains a code.
type Verdict struct {
	Code   string `json:"code"`
	Name   string `json:"name,omitempty"`
	Class  string `json:"class" doc:"Whose fault it is"`
	Rule   string `json:"rule" doc:"How it is treated"`
	Effect string `json:"effect"`
	Why    string `json:"why,omitempty"`
	Text   string `json:"text" doc:"All of it for people, in lines"`
}

// Me describes the caller.
type Me struct {
	Name          string `json:"name"`
	Role          string `json:"role" enum:"viewer,auditor,operator,admin"`
	By            string `json:"by" enum:"token,certificate"`
	OperatorLimit int64  `json:"operator_limit" doc:"Most letters of a job that is not an admin's"`
	Version       string `json:"version" doc:"Of the desk"`
	// MaxRecordBytes is 0 where the desk was not told.
	MaxRecordBytes int64 `json:"max_record_bytes,omitempty" doc:"Largest record that the desk decodes, after decompression. A larger payload would be refused as too_large"`
}

// Whereabouts are the places of a record.
type Whereabouts struct {
	Decisions []DecisionHomes      `json:"decisions" nullable:"false"`
	Refused   []Letter             `json:"refused,omitempty" doc:"Dead letters that claim the id and never were in the source topic, as the collector refused them"`
	Found     []lookup.FoundRecord `json:"found,omitempty" doc:"Records with the id that decisions do not tell of"`
	Looked    []string             `json:"looked" nullable:"false" doc:"Where was looked, and in which ranges"`
	Text      string               `json:"text,omitempty" doc:"All of it for people, in lines"`
	Settled   bool                 `json:"settled" doc:"Each decision has a home, or is not read yet"`
	Report    json.RawMessage      `json:"report,omitempty" doc:"All of it as docket where-is --json prints it"`
	Unlooked  []string             `json:"not_looked,omitempty" doc:"Where was not looked, or not completely, and why. A decision that was not found can be there"`
	Forgotten []string             `json:"forgotten,omitempty" doc:"Places that an operator gave up on purpose, and who: nothing has them any more"`
}

// DecisionHomes is one decision and all of its homes.
type DecisionHomes struct {
	Record string   `json:"record" doc:"TOPIC/PARTITION/OFFSET"`
	Lane   string   `json:"lane,omitempty" doc:"Of its topic: default, urgent or bulk; missing where there are no lanes"`
	ID     string   `json:"id,omitempty"`
	Homes  []string `json:"homes" nullable:"false" doc:"In words, one line each; none: it has none yet"`
}

type nothing struct{}
type groupsInput struct {
	FilterQuery
	After string `query:"after" maxLength:"512" doc:"The next of the page before"`
	Limit int    `query:"limit" minimum:"0" maximum:"1000" default:"0" doc:"0: all groups"`
}
type codePath struct {
	Code string `path:"code" pattern:"^[0-9A-Za-z_]{1,64}$"`
}
type whereInput struct {
	Query string `query:"q" required:"true" minLength:"1" maxLength:"4096" doc:"TOPIC/PARTITION/OFFSET, TOPIC/PARTITION/OFFSET/INDEX or a decision id"`
}
type groupsOutput struct{ Body Groups }
type reportOutput struct{ Body Report }
type verdictOutput struct{ Body Verdict }
type meOutput struct{ Body Me }
type whereOutput struct{ Body Whereabouts }

func (s *api) looks() {
	register(s, route{role: Viewer, method: http.MethodGet, path: "/groups", id: "list-groups",
		summary: "List dead letters by fingerprint, the group with most open ones first", text: "A group whose number of open ones changes between two pages can be on both of them, or on neither."}, s.groups)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/report", id: "report",
		summary: "Report what is unresolved, and how long the topics still hold it"}, s.report)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/classify/{code}", id: "classify",
		summary: "Explain a SQLSTATE or one of Docket's own codes", errors: []int{http.StatusNotFound}}, s.classify)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/whoami", id: "whoami", summary: "Say who you are here"}, s.whoami)
	if s.WhereIs != nil {
		register(s, route{role: Viewer, method: http.MethodGet, path: "/where-is", id: "where-is", long: true,
			summary: "Look for a record in every home", text: "It reads topics and can take minutes."}, s.whereIs)
	}
}

func (s *api) groups(ctx context.Context, _ caller, in *groupsInput) (*groupsOutput, error) {
	found, err := s.Book.Groups(ctx, in.ledger())
	if err != nil {
		return nil, err
	}
	found, next, err := ledger.PageOfGroups(found, ledger.Group.Place, in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &groupsOutput{Groups{make([]Group, 0, len(found)), next}}
	for _, g := range found {
		out.Body.Groups = append(out.Body.Groups, groupOf(g))
	}
	return out, nil
}

func (s *api) report(ctx context.Context, _ caller, _ *nothing) (*reportOutput, error) {
	out, err := s.unresolved(ctx)
	if err != nil {
		return nil, err
	}
	out.Horizon = s.horizon(ctx)
	return &reportOutput{out}, nil
}

// unresolved is the report without a look at Kafka.
func (s *api) unresolved(ctx context.Context) (Report, error) {
	lines, err := s.Book.Report(ctx)
	if err != nil {
		return Report{}, err
	}
	sorted := worker.NewReport(lines, nil, s.Now())
	out := Report{Horizon: []HorizonLine{}, Unresolved: sorted.Unresolved, Lines: make([]ReportLine, 0, len(sorted.Lines))}
	for _, l := range sorted.Lines {
		out.Lines = append(out.Lines, ReportLine{envelope.Kind(l.Kind), l.Code, l.Path, countsOf(l.Counts), moment(l.Oldest)})
	}
	return out, nil
}

// horizon asks Kafka how long its topics hold what is needed.
func (s *api) horizon(ctx context.Context) []HorizonLine {
	all := []HorizonLine{}
	if s.Horizon != nil {
		for _, l := range s.Horizon.Look(ctx, s.Now()) {
			all = append(all, horizonOf(l))
		}
	}
	return all
}

func (s *api) classify(_ context.Context, _ caller, in *codePath) (*verdictOutput, error) {
	v, found := errclass.Lookup(in.Code)
	if !found {
		v, found = errclass.Lookup(strings.ToUpper(in.Code))
	}
	if !found {
		return nil, problem(http.StatusNotFound, "this is neither a SQLSTATE nor a code of Docket's", "take a code from a dead letter")
	}
	return &verdictOutput{Verdict{Code: v.Code, Name: v.Name, Class: v.Class.String(), Rule: v.Rule.String(), Effect: v.Effect(), Why: v.Why,
		Text: errclass.Describe(v.Code)}}, nil
}

func (s *api) whoami(_ context.Context, c caller, _ *nothing) (*meOutput, error) {
	return &meOutput{Me{c.Name, c.Role.String(), c.By, s.OperatorLimit, s.Version, s.MaxRecordBytes}}, nil
}

func (s *api) whereIs(ctx context.Context, _ caller, in *whereInput) (*whereOutput, error) {
	found, err := s.WhereIs(ctx, in.Query)
	if err != nil {
		return nil, err
	}
	out := Whereabouts{Decisions: make([]DecisionHomes, 0, len(found.Decisions)), Refused: found.Refused, Found: found.Found, Looked: append([]string{}, found.Looked...), Unlooked: found.Unlooked, Forgotten: found.Forgotten, Text: found.Text, Settled: found.Settled, Report: found.Report}
	for _, d := range found.Decisions {
		d.Homes = append([]string{}, d.Homes...)
		out.Decisions = append(out.Decisions, d)
	}
	return &whereOutput{out}, nil
}
