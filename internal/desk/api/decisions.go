package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/record/escape"
)

// Decision is a stored decision.
type Decision struct {
	ID          string             `json:"decision_id"`
	Timestamp   time.Time          `json:"timestamp"`
	Verdict     reader.Verdict     `json:"verdict" enum:"allowed,denied,undefined,error,other"`
	Allowed     *bool              `json:"allowed,omitempty" doc:"Without it the result says neither"`
	Path        *string            `json:"path,omitempty"`
	Service     *string            `json:"service,omitempty"`
	RequestedBy *string            `json:"requested_by,omitempty"`
	ReqID       *int64             `json:"req_id,omitempty"`
	OPAID       *string            `json:"opa_id,omitempty"`
	OPAVersion  *string            `json:"opa_version,omitempty"`
	Labels      json.RawMessage    `json:"labels,omitempty"`
	Bundles     json.RawMessage    `json:"bundles,omitempty"`
	Origin      Origin             `json:"origin"`
	StoredAt    time.Time          `json:"stored_at"`
	Shard       string             `json:"shard,omitempty" doc:"The shard that has it. Without shards it is missing"`
	UploadedBy  *string            `json:"uploaded_by,omitempty" doc:"The client of the collector: the name of its token or certificate. Missing where no collector took the decision, or where no key proves it"`
	Edited      *reader.Edit       `json:"edited,omitempty" doc:"The edit of a dead letter that produced it: it is not what OPA sent. What changed and the original are there where the payload is"`
	Ahead       int64              `json:"ahead_seconds,omitempty" doc:"How much later its timestamp is than when it was stored, where that is more than an hour: a clock was wrong, or the timestamp was made up"`
	Unfaithful  []string           `json:"unfaithful,omitempty" doc:"JSON pointers to where the payload is not what came, as jsonb cannot hold that. The empty one points to all of it"`
	Unreadable  bool               `json:"unreadable,omitempty" doc:"The payload, labels and bundles are missing: an earlier release stored numbers whose text takes far more memory than they do"`
	Archived    *reader.ArchivedIn `json:"archived,omitempty" doc:"The archive that it was read from, as the table does not have it"`
	Decision    json.RawMessage    `json:"decision,omitempty" doc:"All of it, where it was asked for. It may be personal data"`
}

func decisionOf(d reader.Decision) Decision {
	return Decision{
		ID: d.ID, Timestamp: escape.Time(d.Time), Verdict: d.Verdict, Allowed: d.Allowed, Path: d.Path, Service: d.Service, RequestedBy: d.RequestedBy, ReqID: d.ReqID,
		OPAID: d.OPAID, OPAVersion: d.OPAVersion, Labels: d.Labels, Bundles: d.Bundles, StoredAt: escape.Time(d.StoredAt), Shard: d.Shard, UploadedBy: d.UploadedBy, Edited: d.Edit, Ahead: int64(d.Ahead() / time.Second), Decision: d.Raw, Unfaithful: d.Unfaithful, Unreadable: d.Unreadable, Archived: d.Archived,
		Origin: Origin{Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, Index: &d.Index},
	}
}

func decisionsOf(all []reader.Decision) []Decision {
	out := make([]Decision, 0, len(all))
	for _, d := range all {
		out = append(out, decisionOf(d))
	}
	return out
}

// RangeQuery chooses a time range, and paths or services.
type RangeQuery struct {
	Since   string   `query:"since" maxLength:"40" doc:"Only decisions since then: how long ago (2h, 7d), a day (yesterday, monday, 2026-11-21) or RFC 3339; days begin at 00:00 UTC"`
	Until   string   `query:"until" maxLength:"40" doc:"Only decisions before then"`
	Path    []string `query:"path,explode" nullable:"false" maxItems:"200" doc:"One of these, or below it: a/b/*"`
	Service []string `query:"service,explode" nullable:"false" maxItems:"200" doc:"One of these"`
}

func (q RangeQuery) between(now time.Time) (since, until time.Time, err error) {
	for _, end := range []struct {
		name, text string
		to         *time.Time
	}{{"since", q.Since, &since}, {"until", q.Until, &until}} {
		if end.text == "" {
			continue
		}
		if *end.to, err = reader.ParseTime(end.text, now); err != nil {
			return since, until, faulty("query."+end.name, err.Error())
		}
	}
	if !since.IsZero() && !until.IsZero() && !since.Before(until) {
		return since, until, faulty("query.until", "a time after since")
	}
	return since, until, nil
}

// DecisionQuery chooses decisions. Parameters are joined by and, the values of a repeated one by or. All values of
// label and match must hold.
type DecisionQuery struct {
	RangeQuery
	Verdict     []reader.Verdict `query:"verdict,explode" nullable:"false" enum:"allowed,denied,undefined,error,other" maxItems:"5"`
	RequestedBy []string         `query:"requested_by,explode" nullable:"false" maxItems:"200" doc:"Without a port: every port of that host"`
	Label       []string         `query:"label,explode" nullable:"false" maxItems:"200" doc:"NAME=VALUE"`
	Match       []string         `query:"match,explode" nullable:"false" maxItems:"200" doc:"input:/POINTER=VALUE, result:… or raw:…; without =VALUE anything there. It asks what a payload holds, so it needs the role auditor"`
	Payload     bool             `query:"payload" doc:"Whole decisions, which may be personal data; it needs the role auditor and is logged with your name"`
}

// manyOfDecisions are the parameters that may be repeated.
var manyOfDecisions = []string{"path", "service", "verdict", "requested_by", "label", "match"}

// filter returns the filter of q, if the caller may use it.
func (q DecisionQuery) filter(c caller, now time.Time) (reader.Filter, error) {
	f := reader.Filter{Paths: q.Path, Services: q.Service, Verdicts: q.Verdict, RequestedBy: q.RequestedBy}
	if c.Role < Auditor && (q.Payload || len(q.Match) > 0) {
		return f, problem(http.StatusForbidden, "payload and match need the role "+Auditor.String()+"; yours is "+c.Role.String(),
			"leave them away, or ask somebody with that role, or for that role")
	}
	var err error
	if f.Since, f.Until, err = q.between(now); err != nil {
		return f, err
	}
	for _, text := range q.Label {
		name, value, err := reader.ParseLabel(text)
		if err != nil {
			return f, faulty("query.label", err.Error())
		}
		if was, twice := f.Labels[name]; twice && was != value {
			return f, faulty("query.label", "each label once")
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		f.Labels[name] = value
	}
	for _, text := range q.Match {
		m, err := reader.ParseMatch(text)
		if err != nil {
			return f, faulty("query.match", err.Error())
		}
		f.Matches = append(f.Matches, m)
	}
	for _, text := range append(append(append([]string{}, q.Path...), q.Service...), q.RequestedBy...) {
		if strings.ContainsRune(text, 0) || strings.ToValidUTF8(text, "") != text {
			return f, faulty("query", "text in UTF-8 without U+0000")
		}
	}
	return f, nil
}

type searchInput struct {
	DecisionQuery
	After string `query:"after" maxLength:"8192" doc:"The next of the page before, with the same parameters"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"With payload there may be fewer, and next"`
	Order string `query:"order" enum:"newest,oldest" default:"newest" doc:"What comes first"`
}

// DecisionList is a part of the result of a search.
type DecisionList struct {
	Decisions    []Decision `json:"decisions" nullable:"false"`
	Next         string     `json:"next,omitempty" doc:"Give it as after to get the next page; it is missing on the last page"`
	Later        *time.Time `json:"later,omitempty" doc:"On the first page without until, the newest first: decisions that fit, or may fit, are dated from here on, more than an hour ahead of now, and are left out. Ask with since for them"`
	EditsUnknown string     `json:"edits_unknown,omitempty" doc:"Why it is not known which of these an edit of the last minutes produced, and who edited"`
	NotLooked    []string   `json:"not_looked,omitempty" doc:"Archived days of the asked range that were not read completely, and why. Other decisions that fit can be there"`
	Gaps         []Gap      `json:"gaps,omitempty" doc:"The places of not_looked, in parts"`
	Reached      *time.Time `json:"reached,omitempty" doc:"The search came as far as this, because its time ended before the page was full. Continue with next"`
	reader.Completeness
	// ReadOn says how complete the page is for a caller that reads the next one: a search that ran out of time continues there.
	ReadOn reader.Completeness `json:"-"`
	Partly
}

type searchOutput struct{ Body DecisionList }

// DecisionPath names a decision.
type DecisionPath struct {
	ID string `path:"id" minLength:"1" maxLength:"4096" doc:"Whole, or its first 6 characters or more where no other stored decision begins with them"`
}

// DecisionsOfID are the decisions with one id.
type DecisionsOfID struct {
	Decisions    []Decision `json:"decisions" nullable:"false" minItems:"1" doc:"The oldest first; more than one where the same id came with several timestamps"`
	EditsUnknown string     `json:"edits_unknown,omitempty" doc:"Why it is not known whether an edit of the last minutes produced them, and who edited"`
	Elsewhere
	reader.Completeness
	Partly
}

type decisionsOutput struct{ Body DecisionsOfID }

func (s *api) decisions() {
	if s.Decisions == nil {
		return
	}
	register(s, route{role: Viewer, method: http.MethodGet, path: "/decisions", id: "search-decisions", many: manyOfDecisions,
		summary: "Search stored decisions, the newest first",
		text:    "The parameters are joined by and, the values of a repeated one by or; of label and match all hold."}, s.search)
	register(s, route{role: Auditor, method: http.MethodGet, path: "/decisions/{id}", id: "show-decision",
		summary: "Show a stored decision, with its payload", text: "It may be personal data: each look is logged with your name. Do not cache it.",
		errors: []int{http.StatusNotFound, http.StatusConflict}}, s.decision)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/decisions/stats", id: "count-decisions", many: []string{"path", "service"},
		summary: "Count stored decisions by path or service, over time"}, s.rates)
	if places, ok := s.Decisions.(Places); ok {
		register(s, route{role: Viewer, method: http.MethodGet, path: "/decisions/follow", id: "follow-decisions", many: manyOfDecisions,
			summary: "Follow what is stored, in that order",
			text: "A long poll: it answers as soon as something was stored, or with nothing once wait is over. Ask again with the tail of the answer. " +
				"Without tail it answers at once with the place that is now. Nothing is left out, however long you are away between two requests. " +
				"After two minutes, an answer that was lost, or where another desk answers, the last decisions can come again: drop those whose decision_id and timestamp you have."}, s.followed(places))
	}
	s.explanations()
	s.rows()
}

// A page with payloads is gathered in parts, so that large decisions cannot fill the memory.
const (
	payloadPart  = 10
	payloadBytes = 8 << 20 // limit of a page
)

func (s *api) search(ctx context.Context, c caller, in *searchInput) (*searchOutput, error) {
	f, err := in.filter(c, s.Now())
	if err != nil {
		return nil, err
	}
	p := reader.Page{Limit: in.Limit, After: in.After, Oldest: in.Order == "oldest", Payload: in.Payload}
	bounded, later := reader.Bound(f, p.Oldest, s.Now())
	begun := s.Complete.Begin(ctx, rangeOf(f))
	found, err := s.page(ctx, bounded, p)
	if err != nil {
		return nil, ofReader(err)
	}
	if p.After != "" || !reader.Later(ctx, s.Decisions, f, later) {
		later = time.Time{}
	}
	if in.Payload || len(f.Matches) > 0 {
		s.read(c, "search-decisions", found.Decisions, in.Payload)
	}
	unknown := s.edits(ctx, found.Decisions, in.Payload)
	facts := complete.FactsOf(found.Decisions, reader.Lacking(found.NotLooked))
	facts.RowsLack = reader.RowsLack(found.NotLooked)
	readOn := begun.End(facts)
	facts.Partly = facts.Partly || !found.Reached.IsZero()
	return &searchOutput{DecisionList{Decisions: decisionsOf(found.Decisions), Next: found.Next, Later: moment(later), EditsUnknown: unknown, NotLooked: reader.GapTexts(found.NotLooked), Gaps: gapsOf(found.NotLooked), Reached: moment(found.Reached),
		Completeness: begun.End(facts), ReadOn: readOn}}, nil
}

// rangeOf returns the part of a filter that counts what waits.
func rangeOf(f reader.Filter) complete.Range {
	return complete.Range{Since: f.Since, Until: f.Until, Paths: f.Paths, Services: f.Services}
}

func (s *api) page(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	if !p.Payload {
		return s.Decisions.Search(ctx, f, p)
	}
	var all reader.Found
	for size, limit := 0, p.Limit; ; {
		p.Limit = min(payloadPart, limit-len(all.Decisions))
		part, err := s.Decisions.Search(ctx, f, p)
		if err != nil {
			return reader.Found{}, err
		}
		all.Decisions = append(all.Decisions, part.Decisions...)
		all.Next, all.Reached, p.After = part.Next, part.Reached, part.Next
		for _, g := range part.NotLooked {
			if !slices.Contains(all.NotLooked, g) { // each part may miss the same day
				all.NotLooked = append(all.NotLooked, g)
			}
		}
		for _, d := range part.Decisions {
			size += len(d.Raw)
		}
		if part.Next == "" || !part.Reached.IsZero() || len(all.Decisions) >= limit || size >= payloadBytes {
			return all, nil
		}
	}
}

func (s *api) decision(ctx context.Context, c caller, in *DecisionPath) (*decisionsOutput, error) {
	begun := s.Complete.Begin(ctx, complete.Range{})
	all, a, err := s.everyHome(ctx, in.ID, begun)
	if err != nil {
		return nil, err
	}
	around := elsewhereOf(a)
	s.read(c, "show-decision", all, true)
	unknown := s.edits(ctx, all, true)
	return &decisionsOutput{DecisionsOfID{Decisions: decisionsOf(all), EditsUnknown: unknown, Elsewhere: around, Completeness: begun.End(complete.FactsOf(all, len(around.NotLooked) > 0))}}, nil
}

// edits adds edits to decisions, and returns why they may be incomplete. It adds the changes only with payload.
func (s *api) edits(ctx context.Context, decisions []reader.Decision, payload bool) (unknown string) {
	switch err := reader.AddEdits(ctx, s.Decisions, decisions, payload); {
	case err == nil:
		return ""
	case errors.Is(err, reader.ErrEdits):
		return reader.ErrEdits.Error()
	default:
		s.log.Warn().Err(err).Msg("edits not read")
		return "the ledger could not be read just now"
	}
}

// everyHome returns the decisions of an id, or of the only id with these first characters: at least one, archived ones
// included. It also returns where else the id is.
func (s *api) everyHome(ctx context.Context, id string, begun complete.Begun) ([]reader.Decision, *lookup.Answer, error) {
	if s.Around != nil && begun.Told() && !reader.Shortened(id) && readable(id) {
		// Its answer has the rows, so that the table is asked once. If the database is away, each of its places would have to
		// wait, and the table alone tells sooner.
		a, err := s.around(ctx, id)
		switch {
		case err != nil:
			return nil, nil, err
		case reader.RowsLack(a.NotLooked): // the table says what it lacks
		case len(a.Rows) > 0:
			return lookup.Join(a.Rows, a.Archived), a, nil
		case a.Whole:
			all, a, err := s.stored(ctx, a, begun)
			return joined(all, a, err)
		default:
			all, a, err := s.absent(ctx, id, begun)
			return joined(all, a, err)
		}
	}
	all, a, exact, err := s.byID(ctx, id, begun)
	if err == nil && a == nil {
		a, err = s.around(reader.WithHeld(ctx, all), all[0].ID)
		a.Exact = exact
	}
	return joined(all, a, err)
}

// joined adds archived decisions to those with a row.
func joined(all []reader.Decision, a *lookup.Answer, err error) ([]reader.Decision, *lookup.Answer, error) {
	if err != nil {
		return nil, nil, err
	}
	return lookup.Join(all, a.Archived), a, nil
}

// rowsFirst is byID with the archived decisions that it met.
func (s *api) rowsFirst(ctx context.Context, id string, begun complete.Begun) ([]reader.Decision, *lookup.Answer, error) {
	all, a, exact, err := s.byID(ctx, id, begun)
	if a == nil {
		a = &lookup.Answer{Exact: exact}
	}
	return joined(all, a, err)
}

// readable reports whether a column of text can hold an id.
func readable(id string) bool { return !strings.ContainsRune(id, 0) && utf8.ValidString(id) }

// byID returns the decisions of an id, or of the only id with these first characters: at least one. The other homes are
// asked only if no row has exactly it. Then the answer may be theirs, else it is nil. Where the decisions have a longer
// id, exact are the places that may have exactly it.
func (s *api) byID(ctx context.Context, id string, begun complete.Begun) (all []reader.Decision, a *lookup.Answer, exact []lookup.Gap, err error) {
	if !readable(id) {
		return nil, nil, nil, faulty("path.id", "text in UTF-8 without U+0000")
	}
	all, err = reader.Named(ctx, s.Decisions, id)
	if reader.MayBeWhole(id, all, err) {
		whole, failed := s.everywhere(ctx, id)
		if failed != nil {
			return nil, nil, nil, failed
		}
		if !whole.Nowhere() {
			all, a, err = s.stored(ctx, whole, begun)
			return all, a, nil, err
		}
		if !whole.Complete() {
			exact = whole.NotLooked
		}
	}
	var several *reader.AmbiguousError
	switch {
	case errors.As(err, &several):
		return nil, nil, nil, problem(http.StatusConflict, "more than one decision begins like that", "give more characters of the id")
	case errors.Is(err, reader.ErrWhole):
		return nil, nil, nil, problem(http.StatusNotFound, "no decision of that id is stored, and there was no time to find one that begins like that", "give the whole id")
	case err != nil:
		return nil, nil, nil, ofReader(err)
	case len(all) == 0:
		all, a, err = s.absent(ctx, id, begun)
		return all, a, nil, err
	}
	return all, nil, exact, nil
}

// read logs who read which decisions. Without payload the request matched against payloads.
func (s *api) read(c caller, operation string, decisions []reader.Decision, payload bool) {
	ids := make([]string, len(decisions))
	for i, d := range decisions {
		ids[i] = d.ID
	}
	if payload {
		s.metrics.looks.Add(float64(len(ids)))
	}
	s.log.Info().Str("operator", c.Name).Str("operation", operation).Int("decisions", len(ids)).Bool("payload", payload).Strs("decision_ids", ids).Msg("decisions read")
}

// ofReader turns an error of the store into a problem.
func ofReader(err error) error {
	if errors.Is(err, reader.ErrCursor) {
		p := faulty("query.after", "the next of the page before, with the same order")
		p.Hint = "search again from the start"
		return p
	}
	return err
}
