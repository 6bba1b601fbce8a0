package reader

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Missed is a shard that could not be asked, and why.
type Missed struct {
	Shard string
	Err   error
}

func (m Missed) String() string { return "shard " + m.Shard + ": " + m.Err.Error() }

// PartialError comes with an answer that lacks what some shards have. A caller that does not know it refuses the
// answer, so a gap is never silent.
type PartialError struct{ Missed []Missed }

func (e *PartialError) Error() string {
	texts := make([]string, len(e.Missed))
	for i, m := range e.Missed {
		texts[i] = m.String()
	}
	return "not every shard was asked: " + strings.Join(texts, "; ")
}

// Unwrap returns the errors of the shards.
func (e *PartialError) Unwrap() []error {
	all := make([]error, len(e.Missed))
	for i, m := range e.Missed {
		all[i] = m.Err
	}
	return all
}

// Missing returns the names of the shards.
func (e *PartialError) Missing() []string {
	names := make([]string, len(e.Missed))
	for i, m := range e.Missed {
		names[i] = m.Shard
	}
	return names
}

// Parts collects the shards that several questions of one answer missed. Its zero value has none.
type Parts struct{ missed []Missed }

// Pass notes a [PartialError], so that the caller can use the answer that came with it. It returns any other error.
func (p *Parts) Pass(err error) error {
	partial := AsPartial(err)
	if partial == nil {
		return err
	}
	for _, m := range partial.Missed {
		if !slices.ContainsFunc(p.missed, func(o Missed) bool { return o.Shard == m.Shard }) {
			p.missed = append(p.missed, m)
		}
	}
	return nil
}

// Err returns a [*PartialError] of all that was noted, nil if nothing was.
func (p *Parts) Err() error {
	if len(p.missed) == 0 {
		return nil
	}
	return &PartialError{p.missed}
}

// Lack says that the answer is without some shards. Until when it is complete, and what waits there, is then unknown.
// Nil parts, or parts that lack nothing, change nothing.
func (c *Completeness) Lack(p *Parts) {
	if len(p.NotAsked()) > 0 {
		*c = Completeness{Freshness: Partial}
	}
}

type partsKey struct{}

// WithParts returns a context in which stores note the shards that they miss, and answer without an error. The parts are
// for one goroutine.
func WithParts(ctx context.Context) (context.Context, *Parts) {
	parts := &Parts{}
	return context.WithValue(ctx, partsKey{}, parts), parts
}

// PartsOf returns the parts of a context of [WithParts], else nil.
func PartsOf(ctx context.Context) *Parts {
	parts, _ := ctx.Value(partsKey{}).(*Parts)
	return parts
}

// NotAsked returns the names of the shards that were noted. Nil parts have none.
func (p *Parts) NotAsked() []string {
	if p == nil || len(p.missed) == 0 {
		return nil
	}
	return (&PartialError{p.missed}).Missing()
}

// AsPartial returns the [PartialError] of an error; nil: it is none, and there is no answer.
func AsPartial(err error) *PartialError {
	var partial *PartialError
	if errors.As(err, &partial) {
		return partial
	}
	return nil
}
