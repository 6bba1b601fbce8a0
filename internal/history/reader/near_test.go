package reader_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"docket/internal/history/reader"
)

// both is a store whose searches wait until both sides of a decision are asked for. It misses a shard on one of them.
type both struct {
	reader.Store
	oldest bool // the side that misses it
	missed error

	sides chan bool
}

func (b *both) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	select {
	case b.sides <- p.Oldest: // one waits for the other
	case of := <-b.sides:
		if of == p.Oldest {
			return reader.Found{}, fmt.Errorf("the side oldest=%t is asked for twice", of)
		}
	case <-ctx.Done():
		return reader.Found{}, context.Cause(ctx)
	}
	found, err := b.Store.Search(ctx, f, p)
	if err == nil && b.missed != nil && p.Oldest == b.oldest {
		err = reader.Told(ctx, &reader.PartialError{Missed: []reader.Missed{{Shard: "two", Err: b.missed}}})
	}
	return found, err
}

// TestWhy_BothSidesAtOnce: a person waits for one search, not for one after another. A gap on either side is told.
func TestWhy_BothSidesAtOnce(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for _, c := range []struct {
		name   string
		oldest bool
		missed error
		parts  bool // the caller collects what is missing
	}{
		{name: "all there"},
		{name: "a shard misses those before", missed: away},
		{name: "a shard misses those behind", oldest: true, missed: away},
		{name: "collected, before", missed: away, parts: true},
		{name: "collected, behind", oldest: true, missed: away, parts: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := day(t, fmt.Sprintf(alice, 1, 7, 1, 1, "true"), fmt.Sprintf(alice, 1, 7, 1, 1, "false"), fmt.Sprintf(alice, 1, 7, 1, 1, "true"))
			found, err := s.ByID(t.Context(), "d-1")
			if err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithTimeout(t.Context(), time.Minute)
			defer end()
			var parts *reader.Parts
			if c.parts {
				ctx, parts = reader.WithParts(ctx)
			}
			x, err := reader.Why(ctx, &both{Store: s, oldest: c.oldest, missed: c.missed, sides: make(chan bool)}, found[0], reader.Question{Subject: spec(t, byIn), Neighbours: 2})
			if partial := reader.AsPartial(err); err != nil && partial == nil {
				t.Fatal(err)
			}
			if c.parts {
				err = parts.Err()
			}
			if !errors.Is(err, c.missed) || (err == nil) != (c.missed == nil) {
				t.Errorf("%v is told", err)
			}
			if len(x.Before) != 1 || x.Before[0].DecisionID != "d-0" || len(x.After) != 1 || x.After[0].DecisionID != "d-2" {
				t.Errorf("before %+v, after %+v", x.Before, x.After)
			}
		})
	}
}

// TestWhy_TurnBesideIt: the turn is searched for only if it is not among the decisions before, and then beyond them. The
// answer is the same.
func TestWhy_TurnBesideIt(t *testing.T) {
	t.Parallel()
	s := day(t, fmt.Sprintf(alice, 1, 7, 1, 1, "false"), fmt.Sprintf(alice, 1, 7, 1, 1, "true"), fmt.Sprintf(alice, 1, 7, 2, 1, "false"), fmt.Sprintf(alice, 1, 7, 3, 1, "false"), fmt.Sprintf(alice, 1, 7, 4, 1, "false"))
	for neighbours, searches := range []int{2, 4, 4, 2, 2} {
		before := len(s.Asked())
		x := ask(t, s, "d-4", reader.Question{Subject: spec(t, byIn), Neighbours: neighbours})
		if x.Since.Otherwise == nil || x.Since.Otherwise.DecisionID != "d-1" || x.Since.FirstID != "d-2" || reader.Revision(x.Since.FirstBundles) != "authz@r2" {
			t.Errorf("%d neighbours: %+v", neighbours, x.Since)
		}
		if n := len(s.Asked()) - before; n != searches {
			t.Errorf("%d neighbours: %d searches, want %d", neighbours, n, searches)
		}
	}
	if x := ask(t, s, "d-3", reader.Question{Subject: spec(t, byIn), Neighbours: 3}); x.Since.Otherwise.DecisionID != "d-1" || x.Since.FirstID != "d-2" {
		t.Errorf("one between: %+v", x.Since)
	}
	// It is right before.
	if x := ask(t, s, "d-2", reader.Question{Subject: spec(t, byIn), Neighbours: 1}); x.Since.Otherwise.DecisionID != "d-1" || x.Since.FirstID != "d-2" || x.Since.SameInput == nil {
		t.Errorf("%+v", x.Since)
	}
	// Several at the time of the last that was read.
	same := day(t, fmt.Sprintf(alice, 1, 7, 1, 1, "false"))
	for id, result := range map[string]string{"a": "true", "b": "false"} {
		if err := same.AddRaw(fmt.Appendf(nil, `{"decision_id":%q,"timestamp":"2026-11-21T09:59:00Z",%s}`, id, fmt.Sprintf(alice, 1, 7, 1, 1, result))); err != nil {
			t.Fatal(err)
		}
	}
	if x := ask(t, same, "d-0", reader.Question{Subject: spec(t, byIn), Neighbours: 1}); x.Since.Otherwise == nil || x.Since.Otherwise.DecisionID != "a" {
		t.Errorf("%+v", x.Since)
	}
}
