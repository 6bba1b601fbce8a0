package api

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/history/state"
	"docket/internal/record/escape"
)

// SubjectState is the newest answer of a subject on a path.
type SubjectState struct {
	Subject   string         `json:"subject"`
	Path      string         `json:"path"`
	Verdict   reader.Verdict `json:"verdict" enum:"allowed,denied,undefined,error,other"`
	Revision  string         `json:"revision" doc:"Bundles of the newest decision, as name@revision; empty: none"`
	Hash      string         `json:"hash" doc:"Equal for answers that are equal in verdict, revision and result"`
	Since     time.Time      `json:"since" doc:"Timestamp of the first decision with this verdict. It is doubtful if late is above 0"`
	SinceID   string         `json:"since_decision_id"`
	LastSeen  time.Time      `json:"last_seen" doc:"Timestamp of the newest decision"`
	Decisions int64          `json:"decisions" doc:"All decisions that were stored, late ones included"`
	VersionTS time.Time      `json:"version_ts" doc:"Timestamp and id of the newest decision: none that is older changes verdict, revision or hash"`
	VersionID string         `json:"version_id"`
	Before    *StateBefore   `json:"before,omitempty" doc:"The last decision before since; without it none is known"`
	Late      int64          `json:"late" doc:"Decisions that were stored after newer ones, and had another verdict after since"`
	// SinceAtLatest and Shards are only in answers of several shards.
	SinceAtLatest bool     `json:"since_at_latest,omitempty" doc:"Several shards had the verdict: it may be older than since, though newer than before"`
	Shards        []string `json:"shards,omitempty" doc:"Shards with decisions of the subject on the path. Without shards it is missing"`
	// Lacks is only in answers of several shards.
	Lacks *StateLacks `json:"lacks,omitempty" doc:"Which fields are not exact, because a shard removed states that were not seen for long, or had no room. Without it all are as exact as late and since_at_latest say"`
}

// StateLacks says what is not exact of a state of several shards.
type StateLacks struct {
	Fields []string   `json:"fields" nullable:"false" doc:"Names of the fields that may be wrong; decisions may be too low"`
	Shards []string   `json:"shards" nullable:"false" doc:"They may have had decisions that are in no state"`
	Before *time.Time `json:"before,omitempty" doc:"These decisions are older; without it they may be of any time"`
}

// StateBefore is the last decision before a state began.
type StateBefore struct {
	Verdict    reader.Verdict `json:"verdict" enum:"allowed,denied,undefined,error,other"`
	Timestamp  time.Time      `json:"timestamp"`
	DecisionID string         `json:"decision_id"`
}

// StatesAsOf says what states and flips have.
type StatesAsOf struct {
	StoredBefore time.Time  `json:"stored_before" doc:"Decisions that were stored before then are in the answer; those of the last seconds are not"`
	StoredSince  time.Time  `json:"stored_since" doc:"Decisions that were stored before then are in no state: they were archived or removed before states were kept. Of flips: or the flips of then were removed (DOCKET_STATES_KEEP_FLIPS)"`
	SubjectsBy   string     `json:"subjects_by" doc:"Where subjects are: PATH=PLACE, by comma; the first that fits counts"`
	FullAt       *time.Time `json:"full_at,omitempty" doc:"When a subject last got no state on a path, as there were DOCKET_STATES_MAX; the answer may lack states and flips then, and is PARTIAL"`
	// TrimmedBefore is missing if no state was removed.
	TrimmedBefore *time.Time `json:"trimmed_before,omitempty" doc:"States that were last seen before then may have been removed (DOCKET_STATES_IDLE). One that came again counts from there on"`
	Shards        []string   `json:"shards,omitempty" doc:"Shards that the answer has. The other fields are of the one that knows the least. Without shards it is missing"`
}

func asOf(m state.Mark) StatesAsOf {
	return StatesAsOf{StoredBefore: m.StoredBefore, StoredSince: m.StoredSince, SubjectsBy: m.SubjectsBy, FullAt: m.FullAt, TrimmedBefore: m.TrimmedBefore, Shards: m.Shards}
}

// SubjectStates are the states of a subject.
type SubjectStates struct {
	States []SubjectState `json:"states" nullable:"false" doc:"In the order of their paths"`
	More   bool           `json:"more" doc:"There are more: choose some by path"`
	StatesAsOf
	reader.Completeness
	Partly
}

// StateFlip is a change of the verdict of a subject on a path.
type StateFlip struct {
	ID           int64          `json:"flip_id" doc:"In the order of storing"`
	Subject      string         `json:"subject"`
	Path         string         `json:"path"`
	Was          reader.Verdict `json:"was" enum:"allowed,denied,undefined,error,other"`
	Verdict      reader.Verdict `json:"verdict" enum:"allowed,denied,undefined,error,other"`
	WasRevision  string         `json:"was_revision"`
	Revision     string         `json:"revision"`
	Timestamp    time.Time      `json:"timestamp"`
	DecisionID   string         `json:"decision_id"`
	WasTimestamp time.Time      `json:"was_timestamp"`
	WasID        string         `json:"was_decision_id"`
	StoredAt     time.Time      `json:"stored_at"`
	Late         bool           `json:"late" doc:"The decision was stored after a newer one, and did not change the state"`
	Shard        string         `json:"shard,omitempty" doc:"It noted the flip, between two of its own decisions. Without shards it is missing"`
}

// StateFlips are flips.
type StateFlips struct {
	Flips      []StateFlip `json:"flips" nullable:"false"`
	Next       int64       `json:"next,omitempty" doc:"Give it as after, or as before with order=newest; without it there are no more now"`
	NextPlaces string      `json:"next_places,omitempty" doc:"With shards, in the place of next: give it as places, in the same order"`
	// NewestPlaces is only in answers of several shards.
	NewestPlaces string `json:"newest_places,omitempty" doc:"With shards and order=newest: to follow new flips, give it as places with order=oldest"`
	StatesAsOf
	reader.Completeness
	Partly
}

type statesInput struct {
	Subject string   `query:"subject" required:"true" minLength:"1" maxLength:"1000" doc:"The whole subject"`
	Path    []string `query:"path,explode" nullable:"false" maxItems:"200" doc:"One of these, or below it: a/b/*"`
	Limit   int      `query:"limit" minimum:"1" maximum:"999" default:"100"`
}

type statesOutput struct{ Body SubjectStates }

type flipsInput struct {
	Subject string   `query:"subject" maxLength:"1000" doc:"Only this subject"`
	Path    []string `query:"path,explode" nullable:"false" maxItems:"200" doc:"One of these, or below it: a/b/*"`
	Since   string   `query:"since" maxLength:"40" doc:"Only decisions since then: how long ago (2h, 7d), a day (yesterday, monday, 2026-11-21) or RFC 3339; days begin at 00:00 UTC"`
	After   int64    `query:"after" minimum:"0" doc:"Only flips with a higher flip_id. With shards it is refused: use places"`
	Before  int64    `query:"before" minimum:"0" doc:"Only flips with a lower flip_id. With shards it is refused: use places"`
	Places  string   `query:"places" maxLength:"10000" doc:"With shards, in the place of after and before: the next_places or newest_places of an answer. Without shards it is refused"`
	Order   string   `query:"order" enum:"newest,oldest" default:"newest" doc:"Which end of the order of storing comes first"`
	Limit   int      `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}

type flipsOutput struct{ Body StateFlips }

func (s *api) states() {
	if s.States == nil {
		return
	}
	// A subject may be a part of a payload, so a viewer sees none.
	register(s, route{role: Auditor, method: http.MethodGet, path: "/states", id: "show-states", many: []string{"path"},
		summary: "Show the newest answer of a subject on each path, and since when it gets it",
		text:    "A desk keeps them where DOCKET_STATES is true. Subjects may be personal data: each look is logged with your name.", errors: []int{http.StatusNotFound}}, s.subjectStates)
	register(s, route{role: Auditor, method: http.MethodGet, path: "/flips", id: "list-flips", many: []string{"path"},
		summary: "List changes of verdicts, in the order of storing",
		text:    "To follow them, ask with order=oldest, and again with the next of the answer as after, or its next_places as places. Of several shards, each notes flips between its own decisions. Subjects may be personal data: each look is logged with your name.", errors: []int{http.StatusNotFound}}, s.flips)
}

func (s *api) subjectStates(ctx context.Context, c caller, in *statesInput) (*statesOutput, error) {
	if err := legible(append([]string{in.Subject}, in.Path...)); err != nil {
		return nil, err
	}
	begun := s.Complete.Begin(ctx, complete.Range{Paths: in.Path})
	all, mark, err := s.States.States(ctx, in.Subject, in.Path, in.Limit+1)
	if err != nil {
		return nil, ofStates(err)
	}
	out := SubjectStates{States: []SubjectState{}, More: len(all) > in.Limit, StatesAsOf: asOf(mark), Completeness: begun.EndStates(complete.Facts{Found: len(all) > 0, Partly: mark.FullAt != nil}, mark.StoredBefore)}
	for i := range all[:min(len(all), in.Limit)] {
		out.States = append(out.States, stateOf(&all[i]))
	}
	s.log.Info().Str("operator", c.Name).Str("operation", "show-states").Int("states", len(out.States)).Msg("states read")
	return &statesOutput{out}, nil
}

func (s *api) flips(ctx context.Context, c caller, in *flipsInput) (*flipsOutput, error) {
	if err := legible(append([]string{in.Subject}, in.Path...)); err != nil {
		return nil, err
	}
	q := state.FlipQuery{After: in.After, Before: in.Before, Subject: in.Subject, Paths: in.Path, Limit: in.Limit, Backward: in.Order == "newest"}
	if in.Since != "" {
		var err error
		if q.Since, err = reader.ParseTime(in.Since, s.Now()); err != nil {
			return nil, faulty("query.since", err.Error())
		}
	}
	if in.Places != "" {
		var err error
		if q.Places, err = sharded.ParsePlaces(in.Places); err != nil {
			return nil, faulty("query.places", err.Error())
		}
	}
	begun := s.Complete.Begin(ctx, complete.Range{Since: q.Since, Paths: in.Path})
	all, mark, err := s.States.Flips(ctx, q)
	if err != nil {
		return nil, ofStates(err)
	}
	if err := placed(in, mark); err != nil {
		return nil, err
	}
	out := StateFlips{Flips: []StateFlip{}, StatesAsOf: asOf(mark), Completeness: begun.EndStates(complete.Facts{Found: len(all) > 0, Partly: mark.FullAt != nil}, mark.StoredBefore)}
	for i := range all {
		out.Flips = append(out.Flips, flipOf(&all[i]))
	}
	if n := len(all); n == in.Limit && mark.Places == nil {
		out.Next = all[n-1].ID
	}
	if len(all) == in.Limit || in.Order == "oldest" {
		out.NextPlaces = sharded.PlacesText(mark.Places)
	}
	if in.Order == "newest" {
		out.NewestPlaces = sharded.PlacesText(mark.Newest)
	}
	s.log.Info().Str("operator", c.Name).Str("operation", "list-flips").Int("flips", len(out.Flips)).Msg("flips read")
	return &flipsOutput{out}, nil
}

// placed refuses a place that the stores do not know: each shard numbers its own flips, and one database has no places.
func placed(in *flipsInput, mark state.Mark) error {
	var p *Problem
	switch {
	case mark.Places == nil && in.Places != "":
		p = faulty("query.places", "nothing, as this desk has no shards")
		p.Hint = "ask with after or before: the next of the answer before"
	case mark.Places != nil && in.After > 0:
		p = faulty("query.after", "nothing, as each shard numbers its own flips")
		p.Hint = hintPlaces
	case mark.Places != nil && in.Before > 0:
		p = faulty("query.before", "nothing, as each shard numbers its own flips")
		p.Hint = hintPlaces
	default:
		return nil
	}
	return p
}

const hintPlaces = "use places: the next_places or newest_places of the answer before"

func stateOf(s *state.State) SubjectState {
	out := SubjectState{
		Subject: s.Subject, Path: s.Path, Verdict: s.Verdict, Revision: s.Revision, Hash: hex.EncodeToString(s.Hash[:]), Since: escape.Time(s.Since.Time), SinceID: s.Since.ID,
		LastSeen: escape.Time(s.LastSeen), Decisions: s.Decisions, VersionTS: escape.Time(s.Version.Time), VersionID: s.Version.ID, Late: s.Late,
		SinceAtLatest: s.SinceAtLatest, Shards: s.Shards,
	}
	if b := s.Before; b != nil {
		out.Before = &StateBefore{b.Verdict, escape.Time(b.Time), b.ID}
	}
	if l := s.Lacks; l != nil {
		out.Lacks = &StateLacks{l.Fields, l.Shards, l.Before}
	}
	return out
}

func flipOf(f *state.Flip) StateFlip {
	return StateFlip{
		ID: f.ID, Subject: f.Subject, Path: f.Path, Was: f.Was, Verdict: f.Verdict, WasRevision: f.WasRevision, Revision: f.Revision,
		Timestamp: escape.Time(f.Time), DecisionID: f.Version.ID, WasTimestamp: escape.Time(f.WasVersion.Time), WasID: f.WasVersion.ID, StoredAt: f.StoredAt, Late: f.Late, Shard: f.Shard,
	}
}

// legible refuses text that no column can hold.
func legible(all []string) error {
	for _, text := range all {
		if strings.ContainsRune(text, 0) || strings.ToValidUTF8(text, "") != text {
			return faulty("query", "text in UTF-8 without U+0000")
		}
	}
	return nil
}

func ofStates(err error) error {
	if errors.Is(err, state.ErrNone) {
		return problem(http.StatusNotFound, "no desk keeps states, or none has followed a decision yet", "set DOCKET_STATES=true in docket desk")
	}
	return err
}
