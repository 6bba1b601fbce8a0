package api

import (
	"context"
	"net/http"
	"time"

	"docket/internal/history/reader"
)

// Places writes and reads places to follow from. The text to read is a stranger's. A place that was read skips
// nothing, and may repeat decisions that were stored shortly before it was written.
type Places interface {
	TailText(t reader.Tail) (string, error)
	// ParseTail returns [reader.ErrCursor] for an invalid place.
	ParseTail(text string) (reader.Tail, error)
}

type followInput struct {
	DecisionQuery
	Tail  string `query:"tail" maxLength:"8192" doc:"The tail of the answer before; without it: from now on"`
	Wait  int    `query:"wait" minimum:"0" maximum:"25" default:"20" doc:"Seconds to wait for something, fewer than any proxy waits"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"With payload 100 at most"`
}

// Stored are the decisions stored since a place.
type Stored struct {
	Decisions    []Decision `json:"decisions" nullable:"false" doc:"In the order in which they were stored"`
	EditsUnknown string     `json:"edits_unknown,omitempty" doc:"Why it is not known which of these an edit of the last minutes produced, and who edited"`
	Tail         string     `json:"tail" doc:"Where to go on"`
	More         bool       `json:"more,omitempty" doc:"There may be more already: ask again at once"`
	Settled      *time.Time `json:"settled_before,omitempty" doc:"Decisions stored before it never come again. After a restart of the desk, later ones can come twice"`
	Partly
}

type followOutput struct{ Body Stored }

// Settling tells until when a follower is done with all that was stored, wherever its place is read again. It is zero
// where that is not known. [Places] may have it.
type Settling interface {
	SettledBefore(t reader.Tail) time.Time
}

// Brimming tells whether there may be more at a place already, though the answer has fewer than the limit. [Places] may
// have it.
type Brimming interface {
	MoreAfter(t reader.Tail) bool
}

// maxFollowedPayloads limits the decisions of an answer with payloads.
const maxFollowedPayloads = 100

func (s *api) followed(places Places) func(context.Context, caller, *followInput) (*followOutput, error) {
	return func(ctx context.Context, c caller, in *followInput) (*followOutput, error) {
		f, err := in.filter(c, s.Now())
		if err != nil {
			return nil, err
		}
		at, err := s.tails.open(in.Tail, places)
		if err != nil {
			p := faulty("query.tail", "the tail of an answer before")
			p.Hint = "follow from now on, and search for what was before"
			return nil, p
		}
		defer s.tails.keep(at)
		select {
		case s.follow <- struct{}{}:
			defer func() { <-s.follow }()
		default:
			return nil, problem(http.StatusServiceUnavailable, "too many follow just now", "try again with the same tail, or follow less").later(retryAfter)
		}
		if in.Payload {
			in.Limit = min(in.Limit, maxFollowedPayloads)
		}
		found, next, err := s.wait(ctx, f, at.tail, in)
		if err != nil {
			return nil, ofReader(err)
		}
		at.tail = next
		if len(found) > 0 {
			at.turn++
		}
		text, err := at.text(places)
		if err != nil {
			return nil, err
		}
		if (in.Payload || len(f.Matches) > 0) && len(found) > 0 {
			s.read(c, "follow-decisions", found, in.Payload)
		}
		unknown := s.edits(ctx, found, in.Payload)
		out := Stored{Decisions: decisionsOf(found), EditsUnknown: unknown, Tail: text, More: len(found) >= in.Limit}
		if of, can := places.(Brimming); can {
			out.More = out.More || of.MoreAfter(next)
		}
		if of, can := places.(Settling); can {
			out.Settled = moment(of.SettledBefore(next))
		}
		return &followOutput{out}, nil
	}
}

// wait looks until a decision was stored, the wait is over, or the server stops.
func (s *api) wait(ctx context.Context, f reader.Filter, tail reader.Tail, in *followInput) ([]reader.Decision, reader.Tail, error) {
	over := time.NewTimer(time.Duration(in.Wait) * time.Second)
	defer over.Stop()
	tick := time.NewTicker(s.FollowEvery)
	defer tick.Stop()
	for {
		found, next, err := s.Decisions.Follow(ctx, f, tail, in.Limit, in.Payload)
		if err != nil || len(found) > 0 || in.Tail == "" {
			return found, next, err
		}
		tail = next
		select {
		case <-ctx.Done():
			return nil, tail, ctx.Err()
		case <-over.C:
			return nil, tail, nil
		case <-stopping(ctx):
			return nil, tail, nil
		case <-tick.C:
		}
	}
}
