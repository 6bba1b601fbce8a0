package reader

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Missed is a shard that could not be asked, or a place of the table that was not read, and why.
type Missed struct {
	Shard string // empty: it is a place
	Place string // "archived day 2026-03-04"
	Err   error
}

func (m Missed) String() string {
	if m.Shard == "" {
		return m.Place + ": " + m.Err.Error()
	}
	return "shard " + m.Shard + ": " + m.Err.Error()
}

// same reports whether both are of one place.
func (m Missed) same(o Missed) bool { return m.Shard == o.Shard && m.Place == o.Place }

// Gap returns a place that was not read. Why is in the words of its error.
func (m Missed) Gap() Gap { return Gap{Name: m.Place, Why: m.Err.Error(), Rows: true} }

// PartialError comes with an answer that lacks what some shards or places have. A caller that does not know it refuses the
// answer, so a gap is never silent.
type PartialError struct{ Missed []Missed }

func (e *PartialError) Error() string {
	texts := make([]string, len(e.Missed))
	for i, m := range e.Missed {
		texts[i] = m.String()
	}
	return "not every place was asked: " + strings.Join(texts, "; ")
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
func (e *PartialError) Missing() (names []string) {
	for _, m := range e.Missed {
		if m.Shard != "" {
			names = append(names, m.Shard)
		}
	}
	return names
}

// Parts collects the shards and places that several questions of one answer missed. Its zero value has none.
type Parts struct{ missed []Missed }

// Pass notes a [PartialError], so that the caller can use the answer that came with it. It returns any other error.
func (p *Parts) Pass(err error) error {
	partial := AsPartial(err)
	if partial == nil {
		return err
	}
	for _, m := range partial.Missed {
		if !slices.ContainsFunc(p.missed, func(o Missed) bool { return o.same(m) }) {
			p.missed = append(p.missed, m)
		}
	}
	return nil
}

// Miss notes a place that was not read. Without an error nothing is noted.
func (p *Parts) Miss(place string, err error) {
	if err != nil {
		_ = p.Pass(&PartialError{[]Missed{{Place: place, Err: err}}}) // it takes it
	}
}

// Err returns a [*PartialError] of all that was noted, nil if nothing was.
func (p *Parts) Err() error {
	if len(p.missed) == 0 {
		return nil
	}
	return &PartialError{p.missed}
}

// Lack says that the answer is without some shards or places. Until when it is complete, and what waits there, is then unknown.
// Nil parts, or parts that lack nothing, change nothing.
func (c *Completeness) Lack(p *Parts) {
	if p != nil && len(p.missed) > 0 {
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

// NotRead returns the places that were noted. Nil parts have none.
func (p *Parts) NotRead() (gaps []Gap) {
	if p == nil {
		return nil
	}
	for _, m := range p.missed {
		if m.Shard == "" {
			gaps = append(gaps, m.Gap())
		}
	}
	return gaps
}

// Told returns the error of an answer. For a caller that collects what is missing ([WithParts]), it notes a
// [PartialError] and returns nil.
func Told(ctx context.Context, err error) error {
	if parts := PartsOf(ctx); parts != nil {
		return parts.Pass(err)
	}
	return err
}

// AsPartial returns the [PartialError] of an error; nil: it is none, and there is no answer.
func AsPartial(err error) *PartialError {
	var partial *PartialError
	if errors.As(err, &partial) {
		return partial
	}
	return nil
}
