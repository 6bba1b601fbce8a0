package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/record/envelope"
)

// Gap is a place that was not searched completely.
type Gap struct {
	Place     string `json:"place"`
	Why       string `json:"why"`
	Rows      bool   `json:"rows,omitempty" doc:"It is a part of the table, so until when the answer is complete is not known"`
	Far       bool   `json:"far,omitempty" doc:"It is on other hosts, and nothing says that it has anything: the answer is complete without it"`
	Forgotten bool   `json:"forgotten,omitempty" doc:"An operator gave it up on purpose, so nothing has it any more: the answer is complete without it"`
}

// incomplete is [reader.Lacking].
func incomplete(all []Gap) bool {
	return slices.ContainsFunc(all, func(g Gap) bool { return !g.Far && !g.Forgotten })
}

func gapsOf(all []reader.Gap) (out []Gap) {
	for _, g := range all {
		out = append(out, Gap{g.Name, g.Why, g.Rows, g.Far, g.Forgotten})
	}
	return out
}

// Place is a place that was searched completely.
type Place struct {
	Place string `json:"place"`
	Note  string `json:"note,omitempty" doc:"The range that was searched"`
}

type rowsInput struct {
	ID      string `query:"id" maxLength:"4096" doc:"A whole decision_id; or else prefix"`
	Prefix  string `query:"prefix" minLength:"6" maxLength:"4096" doc:"The first characters of decision_ids: of each id the oldest decision, without its payload; or else id"`
	Limit   int    `query:"limit" minimum:"1" maximum:"100" default:"6" doc:"With prefix: the most ids"`
	Payload bool   `query:"payload" doc:"With id: whole decisions, which may be personal data; it needs the role auditor and is logged with your name"`
}

// Rows are stored decisions, without a look at the other homes.
type Rows struct {
	Decisions    []Decision `json:"decisions" nullable:"false" doc:"Those of an id: the oldest first"`
	Whole        bool       `json:"whole" doc:"With prefix: all ids that begin so were found in time, up to limit"`
	EditsUnknown string     `json:"edits_unknown,omitempty" doc:"Why it is not known whether an edit of the last minutes produced them, and who edited"`
	Partly
}

type rowsOutput struct{ Body Rows }

type homesInput struct {
	ID      string `query:"id" required:"true" minLength:"1" maxLength:"4096" doc:"A whole decision_id"`
	Payload bool   `query:"payload" doc:"Whole decisions, which may be personal data; it needs the role auditor and is logged with your name"`
}

// FoundPlace is a record with the id outside the table and the ledger.
type FoundPlace struct {
	Home      lookup.Where  `json:"home" enum:"not_read,parked,dead_letter,exhausted,spooled,archived_letter,archived"`
	Name      string        `json:"name" doc:"Topic, file or archive"`
	Partition int32         `json:"partition"`
	Offset    int64         `json:"offset"`
	Timestamp *time.Time    `json:"timestamp,omitempty"`
	Origin    *Origin       `json:"origin,omitempty" doc:"Where it was first read, where that is known"`
	Lane      string        `json:"lane,omitempty"`
	Kind      envelope.Kind `json:"kind,omitempty"`
	Code      string        `json:"code,omitempty"`
	FailedAt  *time.Time    `json:"failed_at,omitempty"`
	Attempt   int           `json:"attempt,omitempty"`
	NotBefore *time.Time    `json:"not_before,omitempty"`
	To        string        `json:"to,omitempty" doc:"Topic to which a spooled record is published"`
	Letter    string        `json:"dead_letter_id,omitempty"`
	Day       string        `json:"day,omitempty"`
	Unproven  bool          `json:"unproven,omitempty"`
	Left      bool          `json:"left,omitempty" doc:"A desk left it in Kafka, as its client brought too many"`
	Same      bool          `json:"same,omitempty" doc:"It is the decision that is stored, and no other"`
}

func placeOf(f *lookup.Found) FoundPlace {
	p := FoundPlace{Home: f.Where, Name: f.Name, Partition: f.Partition, Offset: f.Offset, Timestamp: moment(f.Time), Lane: f.Lane, Kind: f.Kind, Code: f.Code,
		FailedAt: moment(f.FailedAt), Attempt: f.Attempt, NotBefore: moment(f.NotBefore), To: f.To, Letter: f.Letter, Day: f.Day, Unproven: f.Unproven, Left: f.Left, Same: f.Same}
	if f.Origin.Topic != "" {
		o := originOf(f.Origin)
		p.Origin = &o
	}
	return p
}

// Homes are all places of a decision_id.
type Homes struct {
	ID          string       `json:"decision_id"`
	At          time.Time    `json:"at"`
	Rows        []Decision   `json:"rows" nullable:"false" doc:"Decisions of the table, the oldest first"`
	Archived    []Decision   `json:"archived" nullable:"false" doc:"Decisions of archived days that the table does not have"`
	Letters     []Letter     `json:"dead_letters" nullable:"false" doc:"Dead letters that claim the id and are other decisions than the rows, the newest failure first, at most 10"`
	MoreLetters int          `json:"dead_letters_more,omitempty" doc:"How many more such dead letters there are. At most the newest 1,000 of an id are counted"`
	Found       []FoundPlace `json:"found" nullable:"false"`
	More        bool         `json:"more" doc:"There are more than those in found"`
	Looked      []Place      `json:"looked" nullable:"false"`
	NotLooked   []Gap        `json:"not_looked" nullable:"false"`
	Partly
}

type homesOutput struct{ Body Homes }

type completenessInput struct {
	RangeQuery
}

// RangeCompleteness says how complete an answer about a range is whose rows are read after this answer.
type RangeCompleteness struct{ reader.Completeness }

type completenessOutput struct{ Body RangeCompleteness }

func (o *rowsOutput) lack(p *reader.Parts)  { o.Body.Partly = partlyOf(p) }
func (o *homesOutput) lack(p *reader.Parts) { o.Body.Partly = partlyOf(p) }

// rows registers the single questions of which a client makes an answer of its own.
func (s *api) rows() {
	register(s, route{role: Viewer, method: http.MethodGet, path: "/rows", id: "find-rows",
		summary: "Find stored decisions by their id, or by its first characters",
		text:    "It asks the table alone; GET /homes asks every other home."}, s.named)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/homes", id: "find-homes",
		summary: "Find every place that has a decision id", text: "It reads topics, spools and archives for some seconds."}, s.homes)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/completeness", id: "show-completeness", many: []string{"path", "service"},
		summary: "Say how complete answers about a range are",
		text:    "Ask it before the rows. An answer that finds nothing, reads an archive or misses a place is that much less complete."}, s.completeness)
}

// mayRead returns a problem if the caller may not see payloads.
func mayRead(c caller, payload bool) error {
	if payload && c.Role < Auditor {
		return problem(http.StatusForbidden, "payload needs the role "+Auditor.String()+"; yours is "+c.Role.String(), "leave it away, or ask somebody with that role, or for that role")
	}
	return nil
}

// barely removes the payloads of decisions.
func barely(all []reader.Decision, payload bool) []reader.Decision {
	if payload {
		return all
	}
	out := append([]reader.Decision{}, all...)
	for i := range out {
		out[i].Raw = nil
	}
	return out
}

func (s *api) named(ctx context.Context, c caller, in *rowsInput) (*rowsOutput, error) {
	if (in.ID == "") == (in.Prefix == "") {
		return nil, faulty("query.id", "either id or prefix, and one of them")
	}
	if err := legible([]string{in.ID, in.Prefix}); err != nil {
		return nil, err
	}
	if err := mayRead(c, in.Payload); err != nil {
		return nil, err
	}
	if in.Prefix != "" {
		all, err := s.Decisions.Begins(ctx, in.Prefix, in.Limit)
		whole := !errors.Is(err, reader.ErrWhole)
		if err != nil && whole {
			return nil, ofReader(err)
		}
		return &rowsOutput{Rows{Decisions: decisionsOf(barely(all, false)), Whole: whole}}, nil
	}
	all, err := s.Decisions.ByID(ctx, in.ID)
	if err != nil {
		return nil, ofReader(err)
	}
	all = barely(all, in.Payload)
	if in.Payload && len(all) > 0 {
		s.read(c, "find-rows", all, true)
	}
	unknown := s.edits(ctx, all, in.Payload)
	return &rowsOutput{Rows{Decisions: decisionsOf(all), Whole: true, EditsUnknown: unknown}}, nil
}

func (s *api) homes(ctx context.Context, c caller, in *homesInput) (*homesOutput, error) {
	if err := legible([]string{in.ID}); err != nil {
		return nil, err
	}
	if err := mayRead(c, in.Payload); err != nil {
		return nil, err
	}
	a, err := s.everywhere(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	rows, archived := barely(a.Rows, in.Payload), barely(a.Archived, in.Payload)
	if in.Payload && len(rows)+len(archived) > 0 {
		s.read(c, "find-homes", append(append([]reader.Decision{}, rows...), archived...), true)
	}
	out := Homes{ID: a.ID, At: a.At.UTC(), Rows: decisionsOf(rows), Archived: decisionsOf(archived), Letters: append([]Letter{}, lettersOf(a.Letters)...), MoreLetters: a.MoreLetters,
		Found: []FoundPlace{}, More: a.More, Looked: []Place{}, NotLooked: append([]Gap{}, gapsOf(a.NotLooked)...)}
	for i := range a.Found {
		out.Found = append(out.Found, placeOf(&a.Found[i]))
	}
	for _, p := range a.Looked {
		out.Looked = append(out.Looked, Place{p.Name, p.Note})
	}
	return &homesOutput{out}, nil
}

func (s *api) completeness(ctx context.Context, _ caller, in *completenessInput) (*completenessOutput, error) {
	since, until, err := in.between(s.Now())
	if err != nil {
		return nil, err
	}
	if err := legible(append(append([]string{}, in.Path...), in.Service...)); err != nil {
		return nil, err
	}
	begun := s.Complete.Begin(ctx, complete.Range{Since: since, Until: until, Paths: in.Path, Services: in.Service})
	return &completenessOutput{RangeCompleteness{begun.End(complete.Facts{Found: true})}}, nil
}
