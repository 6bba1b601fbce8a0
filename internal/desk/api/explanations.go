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
	"docket/internal/record/escape"
	"docket/internal/record/subject"
)

type whyInput struct {
	DecisionPath
	Timestamp  time.Time `query:"timestamp" doc:"Which one, where the same id came with several; without it the newest"`
	Neighbours int       `query:"neighbours" minimum:"0" maximum:"50" default:"3" doc:"How many decisions before it and behind it of the same subject and path"`
	Subject    string    `query:"subject" maxLength:"4096" doc:"The field that identifies the subject: requested_by, requested_by:host, label:NAME or input:/POINTER; without it DOCKET_READER_SUBJECT"`
	Elsewhere  bool      `query:"elsewhere" default:"true" doc:"Also look for the id in the other homes; without it the answer does not have them, and says less of how complete it is"`
	SameInput  bool      `query:"same_input" doc:"When the very same input ended otherwise last; it may take longer"`
}

// which returns the index of the decision that is asked for, below 0 if none is. Stored times have microseconds.
func (in *whyInput) which(all []reader.Decision) int {
	if in.Timestamp.IsZero() {
		return len(all) - 1
	}
	return slices.IndexFunc(all, func(d reader.Decision) bool { return d.Time.Equal(in.Timestamp.Truncate(time.Microsecond)) })
}

// Explained is an explanation, and other records with the id.
type Explained struct {
	reader.Explanation
	Incomplete bool `json:"incomplete,omitempty" doc:"The decisions around it were not searched completely; notes say why"`
	Elsewhere
	reader.Completeness
	Partly
}

type whyOutput struct{ Body Explained }

type diffInput struct {
	A   string `query:"a" required:"true" minLength:"1" maxLength:"4096" doc:"A decision_id, or its first 6 characters or more"`
	B   string `query:"b" required:"true" minLength:"1" maxLength:"4096" doc:"Another one"`
	All bool   `query:"all" doc:"What differs between any two decisions, too, as ids and times"`
}

// Difference lists the differences in B.
type Difference struct {
	A       DecisionName    `json:"a"`
	B       DecisionName    `json:"b"`
	Changes []reader.Change `json:"changes" nullable:"false" doc:"In the order of B's names. They may be personal data"`
	More    int             `json:"more" doc:"How many more there are"`
	Partly
}

// DecisionName names one decision; of several with an id the newest.
type DecisionName struct {
	ID        string    `json:"decision_id"`
	Timestamp time.Time `json:"timestamp"`
	Exact     []string  `json:"exact_not_looked,omitempty" doc:"The asked id is the beginning of this one. Places that were not looked at completely for a decision of exactly that id, and why. It can be there"`
}

type diffOutput struct{ Body Difference }

func (s *api) explanations() {
	register(s, route{role: Auditor, method: http.MethodGet, path: "/decisions/{id}/why", id: "explain-decision",
		summary: "Explain a stored decision: its verdict, what spoke, and what was different before",
		text:    "It shows parts of payloads, which may be personal data: each look is logged with your name.", errors: []int{http.StatusNotFound, http.StatusConflict}}, s.why)
	register(s, route{role: Auditor, method: http.MethodGet, path: "/decisions/diff", id: "diff-decisions",
		summary: "Show how two stored decisions differ", text: "It shows parts of payloads, which may be personal data: each look is logged with your name.",
		errors: []int{http.StatusNotFound, http.StatusConflict}}, s.diff)
}

func (s *api) why(ctx context.Context, c caller, in *whyInput) (*whyOutput, error) {
	out, _, err := s.explain(ctx, c, in)
	return out, err
}

// explain also returns the decision that it explains.
func (s *api) explain(ctx context.Context, c caller, in *whyInput) (*whyOutput, reader.Decision, error) {
	none := reader.Decision{}
	begun := s.Complete.Begin(ctx, complete.Range{})
	find := s.everyHome
	if !in.Elsewhere {
		find = s.rowsFirst
	}
	all, a, err := find(ctx, in.ID, begun)
	n := in.which(all)
	if err == nil && n < 0 && !in.Elsewhere { // an archived day may have it
		all, a, err = s.everyHome(ctx, in.ID, begun)
		n = in.which(all)
	}
	if err != nil {
		return nil, none, err
	}
	if n < 0 {
		return nil, none, ofNoTime(ctx, a, begun)
	}
	ctx = reader.WithHeld(ctx, all)
	d := all[n]
	q := s.Question
	q.Neighbours, q.SameInput = in.Neighbours, in.SameInput
	if in.Subject != "" {
		if q.Subject, err = subject.Parse(in.Subject); err != nil {
			return nil, none, faulty("query.subject", subject.ErrForm.Error())
		}
	}
	one := []reader.Decision{d}
	unknown := s.edits(ctx, one, true)
	d = one[0]
	q.ArchiveBy = time.Now().Add(archivesFor)
	x, err := reader.Why(ctx, s.Decisions, d, q)
	if err != nil {
		return nil, none, ofReader(err)
	}
	if unknown != "" {
		x.Notes = append(x.Notes, unknown)
	}
	x.NoteOthers(d, all)
	a.Shown(d)
	s.read(c, "explain-decision", append([]reader.Decision{d}, neighbours(x)...), true)
	return &whyOutput{Explained{Explanation: x, Incomplete: x.Incomplete, Elsewhere: elsewhereOf(a), Completeness: begun.End(complete.FactsOf(one, x.Incomplete || !a.Complete()))}}, d, nil
}

// ofNoTime is the problem that none of the decisions of an id is of the asked time.
func ofNoTime(ctx context.Context, a *lookup.Answer, begun complete.Begun) error {
	p := problem(http.StatusNotFound, "no decision of that id is of that time", "leave timestamp away, or take it from GET /api/v1/decisions/{id}")
	if !a.Complete() {
		p.Detail, p.Hint = "no decision of that id that was found is of that time; if another place has one is not known", "see not_looked for the places that were not looked at completely"
	}
	return p.lacking(ctx, a, begun)
}

// archivesFor limits the search of archived days for decisions around one.
const archivesFor = 5 * time.Second

// neighbours are the other decisions in an explanation.
func neighbours(x reader.Explanation) []reader.Decision {
	told := append(append([]reader.Neighbour{}, x.Before...), x.After...)
	if x.Since != nil {
		for _, n := range []*reader.Neighbour{x.Since.Otherwise, x.Since.SameInput} {
			if n != nil {
				told = append(told, *n)
			}
		}
	}
	var all []reader.Decision
	for _, n := range told {
		all = append(all, reader.Decision{Row: reader.Row{ID: n.DecisionID}})
	}
	return all
}

func (s *api) diff(ctx context.Context, c caller, in *diffInput) (*diffOutput, error) {
	var two [2]reader.Decision
	var names [2]DecisionName
	for i, id := range []string{in.A, in.B} {
		all, _, exact, err := s.byID(ctx, id, complete.Begun{})
		if err != nil {
			return nil, err
		}
		d := all[len(all)-1]
		two[i], names[i] = d, DecisionName{d.ID, escape.Time(d.Time), lookup.Gaps(exact)}
	}
	found, err := reader.Diff(two[0].Raw, two[1].Raw, reader.DiffOptions{All: in.All})
	if errors.Is(err, reader.ErrNotJSON) {
		return nil, problem(http.StatusInternalServerError, "what is stored is no JSON", hintOf(http.StatusInternalServerError))
	}
	if err != nil {
		return nil, err
	}
	s.read(c, "diff-decisions", two[:], true)
	return &diffOutput{Difference{A: names[0], B: names[1], Changes: found.Changes, More: found.More}}, nil
}
