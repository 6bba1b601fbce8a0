package client

import (
	"context"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"

	"docket/internal/desk/api"
	"docket/internal/history/sharded"
	"docket/internal/history/state"
)

// States is a [state.Store] of a desk.
type States struct{ client *Client }

// States returns the newest answers of subjects that the desk keeps.
func (c *Client) States() States { return States{c} }

// States asks for the states of a subject. A [reader.PartialError] comes with an answer that lacks shards.
func (s States) States(ctx context.Context, subject string, paths []string, limit int) ([]state.State, state.Mark, error) {
	// A desk shows fewer than one asks a database for, and says if there are more.
	q := url.Values{"subject": {subject}, "path": paths, "limit": {strconv.Itoa(max(1, limit-1))}}
	var list api.SubjectStates
	if err := s.client.ask(ctx, get("/states", q), &list); err != nil {
		return nil, state.Mark{}, ofStates(err)
	}
	var all []state.State
	for i := range list.States {
		all = append(all, stateOf(&list.States[i]))
	}
	if list.More && len(all) > 0 && len(all) < limit {
		all = append(all, all[len(all)-1]) // stands for the others, which the caller counts and does not show
	}
	return all, markOf(list.StatesAsOf), partly(ctx, list.Partly)
}

// Flips asks for flips. A [reader.PartialError] comes with an answer that lacks shards.
func (s States) Flips(ctx context.Context, f state.FlipQuery) ([]state.Flip, state.Mark, error) {
	q := url.Values{"path": f.Paths, "limit": {strconv.Itoa(f.Limit)}, "order": {"oldest"}}
	if f.Subject != "" {
		q.Set("subject", f.Subject)
	}
	if f.Backward {
		q.Set("order", "newest")
	}
	if !f.Since.IsZero() {
		q.Set("since", instant(f.Since))
	}
	switch {
	case f.Places != nil:
		q.Set("places", sharded.PlacesText(f.Places))
	case f.After > 0:
		q.Set("after", strconv.FormatInt(f.After, 10))
	case f.Before > 0:
		q.Set("before", strconv.FormatInt(f.Before, 10))
	}
	var list api.StateFlips
	if err := s.client.ask(ctx, get("/flips", q), &list); err != nil {
		return nil, state.Mark{}, ofStates(err)
	}
	var all []state.Flip
	for i := range list.Flips {
		all = append(all, flipOf(&list.Flips[i]))
	}
	mark := markOf(list.StatesAsOf)
	var err error
	if mark.Places, err = placesOf(list.NextPlaces); err != nil {
		return nil, state.Mark{}, err
	}
	if mark.Newest, err = placesOf(list.NewestPlaces); err != nil {
		return nil, state.Mark{}, err
	}
	return all, mark, partly(ctx, list.Partly)
}

// placesOf reads places of an answer; nil if it has none.
func placesOf(text string) (p state.Places, err error) {
	if text != "" {
		p, err = sharded.ParsePlaces(text)
	}
	return p, err
}

// ofStates returns [state.ErrNone] where the desk keeps no states.
func ofStates(err error) error {
	if problemOf(err, http.StatusNotFound) != nil {
		return state.ErrNone
	}
	return err
}

func markOf(m api.StatesAsOf) state.Mark {
	return state.Mark{StoredBefore: m.StoredBefore, StoredSince: m.StoredSince, SubjectsBy: m.SubjectsBy, FullAt: m.FullAt, TrimmedBefore: m.TrimmedBefore, Shards: m.Shards}
}

func stateOf(s *api.SubjectState) state.State {
	out := state.State{
		Key: state.Key{Subject: s.Subject, Path: s.Path}, Verdict: s.Verdict, Revision: s.Revision, Since: state.Version{Time: s.Since, ID: s.SinceID}, LastSeen: s.LastSeen,
		Decisions: s.Decisions, Version: state.Version{Time: s.VersionTS, ID: s.VersionID}, Late: s.Late,
		SinceAtLatest: s.SinceAtLatest, Shards: s.Shards,
	}
	if hash, err := hex.DecodeString(s.Hash); err == nil {
		copy(out.Hash[:], hash)
	}
	if l := s.Lacks; l != nil {
		out.Lacks = &state.Lacks{Fields: l.Fields, Shards: l.Shards, Before: l.Before}
	}
	if b := s.Before; b != nil {
		out.Before = &state.Before{Verdict: b.Verdict, Version: state.Version{Time: b.Timestamp, ID: b.DecisionID}}
	}
	return out
}

func flipOf(f *api.StateFlip) state.Flip {
	return state.Flip{
		ID: f.ID, Key: state.Key{Subject: f.Subject, Path: f.Path}, Was: f.Was, Verdict: f.Verdict, WasRevision: f.WasRevision, Revision: f.Revision,
		Version: state.Version{Time: f.Timestamp, ID: f.DecisionID}, WasVersion: state.Version{Time: f.WasTimestamp, ID: f.WasID}, StoredAt: f.StoredAt, Late: f.Late, Shard: f.Shard,
	}
}
