package api

import (
	"context"
	"encoding/json"
	"net/http"

	"docket/internal/desk/ledger"
	"docket/internal/history/complete"
	"docket/internal/history/reader"
)

// Inside answers the questions of the API without HTTP, for the console. Roles, limits, completeness, errors and the
// log of payload looks are those of the API. Every error is a [*Problem].
type Inside struct{ s *api }

// Inside returns the API without HTTP.
func (h *Handler) Inside() Inside { return Inside{h.api} }

// Questions of the API. Their fields have the limits and defaults of the document, which the asker applies.
type (
	// SearchQuery asks for search-decisions.
	SearchQuery = searchInput
	// WhyQuery asks for explain-decision.
	WhyQuery = whyInput
	// DiffQuery asks for diff-decisions.
	DiffQuery = diffInput
	// StatsQuery asks for count-decisions.
	StatsQuery = statsInput
	// StatesQuery asks for show-states.
	StatesQuery = statesInput
	// FlipsQuery asks for list-flips.
	FlipsQuery = flipsInput
	// ListQuery asks for list-dead-letters.
	ListQuery = listInput
)

// Has reports whether the API has an operation: some need a port.
func (i Inside) Has(operation string) bool {
	_, known := i.s.routes[operation]
	return known
}

// ask performs an operation of the API for a caller. It checks the role again, whatever the caller of this checked.
func ask[I, O any](ctx context.Context, s *api, operation string, c Caller, in *I, handle func(context.Context, caller, *I) (*O, error)) (*O, error) {
	r, known := s.routes[operation]
	switch {
	case !known:
		return nil, problem(http.StatusNotFound, "this desk does not have that", "ask its operator for the setting behind it")
	case c.Role < r.role || r.role == Nobody:
		return nil, problem(http.StatusForbidden, "this needs the role "+r.role.String()+"; yours is "+c.Role.String(), "ask somebody with that role, or for that role")
	}
	return perform(ctx, s, r, c, in, handle)
}

// Search is search-decisions.
func (i Inside) Search(ctx context.Context, c Caller, q SearchQuery) (DecisionList, error) {
	out, err := ask(ctx, i.s, "search-decisions", c, &q, i.s.search)
	if err != nil {
		return DecisionList{}, err
	}
	return out.Body, nil
}

// Rates is count-decisions.
func (i Inside) Rates(ctx context.Context, c Caller, q StatsQuery) (Rates, error) {
	out, err := ask(ctx, i.s, "count-decisions", c, &q, i.s.rates)
	if err != nil {
		return Rates{}, err
	}
	return out.Body, nil
}

// WhyAnswer is an explanation, and the decision that it explains.
type WhyAnswer struct {
	Explained
	Raw json.RawMessage // all of it; it may be personal data
}

type insideWhy struct {
	whyOutput
	raw json.RawMessage
}

// Why is explain-decision.
func (i Inside) Why(ctx context.Context, c Caller, q WhyQuery) (WhyAnswer, error) {
	q.Elsewhere = true
	out, err := ask(ctx, i.s, "explain-decision", c, &q, func(ctx context.Context, c caller, in *whyInput) (*insideWhy, error) {
		found, d, err := i.s.explain(ctx, c, in)
		if err != nil {
			return nil, err
		}
		return &insideWhy{*found, d.Raw}, nil
	})
	if err != nil {
		return WhyAnswer{}, err
	}
	return WhyAnswer{out.Body, out.raw}, nil
}

// Columns returns the decisions of an id without their payloads, and where else the id is. It needs the role of a
// search.
func (i Inside) Columns(ctx context.Context, c Caller, id string) (DecisionsOfID, error) {
	out, err := ask(ctx, i.s, "search-decisions", c, &DecisionPath{id}, i.s.columns)
	if err != nil {
		return DecisionsOfID{}, err
	}
	return out.Body, nil
}

func (s *api) columns(ctx context.Context, _ caller, in *DecisionPath) (*decisionsOutput, error) {
	begun := s.Complete.Begin(ctx, complete.Range{})
	all, a, err := s.everyHome(ctx, in.ID, begun)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Raw = nil
	}
	around := elsewhereOf(a)
	unknown := s.edits(ctx, all, false)
	return &decisionsOutput{DecisionsOfID{Decisions: decisionsOf(all), EditsUnknown: unknown, Elsewhere: around, Completeness: begun.End(complete.FactsOf(all, len(around.NotLooked) > 0))}}, nil
}

// Diff is diff-decisions.
func (i Inside) Diff(ctx context.Context, c Caller, q DiffQuery) (Difference, error) {
	out, err := ask(ctx, i.s, "diff-decisions", c, &q, i.s.diff)
	if err != nil {
		return Difference{}, err
	}
	return out.Body, nil
}

// States is show-states.
func (i Inside) States(ctx context.Context, c Caller, q StatesQuery) (SubjectStates, error) {
	out, err := ask(ctx, i.s, "show-states", c, &q, i.s.subjectStates)
	if err != nil {
		return SubjectStates{}, err
	}
	return out.Body, nil
}

// Flips is list-flips.
func (i Inside) Flips(ctx context.Context, c Caller, q FlipsQuery) (StateFlips, error) {
	out, err := ask(ctx, i.s, "list-flips", c, &q, i.s.flips)
	if err != nil {
		return StateFlips{}, err
	}
	return out.Body, nil
}

// WhereIs is where-is.
func (i Inside) WhereIs(ctx context.Context, c Caller, query string) (Whereabouts, error) {
	out, err := ask(ctx, i.s, "where-is", c, &whereInput{query}, i.s.whereIs)
	if err != nil {
		return Whereabouts{}, err
	}
	return out.Body, nil
}

// NowAnswer is the state of things at At.
type NowAnswer struct {
	reader.Completeness
	Report
	Partly
}

type nowOutput struct{ Body NowAnswer }

func (o *nowOutput) lack(p *reader.Parts) { o.Body.Partly = partlyOf(p); o.Body.Lack(p) }

// Now is report, with how complete an answer about everything would be. It does not ask Kafka: see [Inside.Horizon].
func (i Inside) Now(ctx context.Context, c Caller) (NowAnswer, error) {
	out, err := ask(ctx, i.s, "report", c, &nothing{}, func(ctx context.Context, _ caller, _ *nothing) (*nowOutput, error) {
		begun := i.s.Complete.Begin(ctx, complete.Range{})
		r, err := i.s.unresolved(ctx)
		if err != nil {
			return nil, err
		}
		return &nowOutput{NowAnswer{Completeness: begun.End(complete.Facts{Found: true}), Report: r}}, nil
	})
	if err != nil {
		return NowAnswer{}, err
	}
	return out.Body, nil
}

type horizonOutput struct{ Body []HorizonLine }

// Horizon is that of report: how long topics hold what is needed. It asks Kafka, and is empty where the desk does not
// look at the topics.
func (i Inside) Horizon(ctx context.Context, c Caller) ([]HorizonLine, error) {
	out, err := ask(ctx, i.s, "report", c, &nothing{}, func(ctx context.Context, _ caller, _ *nothing) (*horizonOutput, error) {
		return &horizonOutput{i.s.horizon(ctx)}, nil
	})
	if err != nil {
		return nil, err
	}
	return out.Body, nil
}

// FollowQuery asks for follow-decisions.
type FollowQuery = followInput

// Follow is follow-decisions.
func (i Inside) Follow(ctx context.Context, c Caller, q FollowQuery) (Stored, error) {
	places, can := i.s.Decisions.(Places)
	if !can {
		return Stored{}, problem(http.StatusNotFound, "this desk cannot follow decisions", "search for them")
	}
	out, err := ask(ctx, i.s, "follow-decisions", c, &q, i.s.followed(places))
	if err != nil {
		return Stored{}, err
	}
	return out.Body, nil
}

// OperatorLimit is the largest limit of a job of a caller who is not an admin.
func (i Inside) OperatorLimit() int64 { return i.s.OperatorLimit }

// Filtered returns the filter of the ledger as the API shows it.
func Filtered(f ledger.Filter) Filter { return filterOf(f) }
