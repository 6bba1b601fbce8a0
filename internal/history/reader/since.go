package reader

import (
	"context"
	"fmt"
	"slices"
	"time"

	"docket/internal/record/subject"
)

// Around is what was found beside a decision: others of the same subject and path.
type Around struct {
	Before, After []Decision // the nearest first
	// Otherwise is the last before it that ended otherwise, First the first behind that which ended as it did.
	Otherwise, First *Decision
	// SameInput is the last before it of the very same input that ended otherwise.
	SameInput *Decision
	// Looked is how many decisions before it were read for Otherwise; 0: the store was asked by verdict, for all it has.
	Looked int
	// All says that there were no more to look at.
	All bool
	// Searched says that others were looked for at all.
	Searched bool
	// Short says that a store ran out of time before it had looked at everything.
	Short bool
	// InputTooLong says that SameInput could not be asked for.
	InputTooLong bool
}

// Since is since when a subject's decisions of a path end as this one did.
type Since struct {
	// Otherwise is the last decision before it that ended otherwise; none: there is none in what was searched.
	Otherwise *Neighbour `json:"otherwise,omitempty"`
	// FirstID and FirstTime are of the first that ended as this one did, behind Otherwise or, without it, of all that was searched.
	FirstID   string     `json:"first_decision_id,omitempty"`
	FirstTime *time.Time `json:"first_timestamp,omitempty"`
	// FirstBundles are those that spoke then; those that speak in this decision may be others.
	FirstBundles []Bundle `json:"first_bundles"`
	// Bundles, OPAVersion, Input and Result say what of it changed between Otherwise and this decision; an error is part of the result.
	Bundles    Differences `json:"bundles_changed"`
	OPAVersion Differences `json:"opa_version_changed"`
	Input      Differences `json:"input_changed"`
	Result     Differences `json:"result_changed"`
	// SameInput is the last one before it of the very same input that ended otherwise: Otherwise itself where that is so, else as
	// far as the question asked for it.
	SameInput *Neighbour `json:"same_input,omitempty"`
	// Searched says what was looked at, and so what a missing answer means.
	Searched string `json:"searched"`
}

// lookBack is how many decisions are read where columns do not tell how they ended, lookPage how many at a time, and
// heavyPage how many where those of a page have more than heavyBytes.
const (
	lookBack   = 500
	lookPage   = 100
	heavyPage  = 10
	heavyBytes = 1 << 20
	// lookPages is how often a store is asked to go on where its pages are short: it stops when it has looked for long.
	lookPages = 20
)

// Why explains a decision by what store has around it.
func Why(ctx context.Context, store Store, d Decision, q Question) (Explanation, error) {
	around, err := find(ctx, store, d, q)
	if err != nil {
		return Explanation{}, err
	}
	return Explain(d, around, q), nil
}

// by is the subject that counts for a decision: an extractor's for its path stands above the question's.
func (r reads) by(q Question) subject.Spec {
	for _, one := range q.Extractors.of(r.path, RoleSubject) {
		return subject.Spec{Kind: subject.Input, Pointer: one.Pointer}
	}
	return q.Subject
}

// who is the subject of a decision, and the part of a filter that finds it.
func (r reads) who(q Question) (string, Filter, bool) {
	by := r.by(q)
	switch by.Kind {
	case subject.RequestedBy, subject.RequestedByHost:
		who := r.whole.get("requested_by").str()
		if by.Kind == subject.RequestedByHost {
			who = subject.Host(who)
		}
		return who, Filter{RequestedBy: []string{who}}, who != ""
	case subject.Label:
		who := r.whole.get("labels").get(by.Label).str()
		return who, Filter{Labels: map[string]string{by.Label: who}}, who != ""
	case subject.Input:
		steps, err := ParsePointer(by.Pointer)
		n := r.whole.get("input").at(steps...)
		who := n.scalar()
		if err != nil || who == "" || len(who) > MaxMatchBytes/2 {
			return "", Filter{}, false
		}
		text, _ := n.json(MaxMatchBytes)
		return who, Filter{Matches: []Match{{In: "input", Pointer: by.Pointer, Value: text}}}, true
	default:
		return "", Filter{}, false
	}
}

func find(ctx context.Context, store Store, d Decision, q Question) (Around, error) {
	var a Around
	r := reading(d, q)
	_, f, ok := r.who(q)
	if !ok || r.path == "" {
		return a, nil
	}
	a.Searched = true
	f.Paths = []string{r.path}
	n := min(max(q.Neighbours, 0), MaxNeighbours)
	if n > 0 {
		var err error
		before := f
		before.Until = d.Time
		if a.Before, err = a.search(ctx, store, before, n, false, d); err != nil {
			return a, fmt.Errorf("find decisions before: %w", err)
		}
		after := f
		after.Since = d.Time
		if a.After, err = a.search(ctx, store, after, n, true, d); err != nil {
			return a, fmt.Errorf("find decisions behind: %w", err)
		}
	}
	if err := a.turn(ctx, store, d, r, f, q); err != nil {
		return a, fmt.Errorf("find since when: %w", err)
	}
	return a, nil
}

// search finds the first n decisions that fit, without self, however short a store's pages are.
func (a *Around) search(ctx context.Context, store Store, f Filter, n int, oldest bool, self Decision) ([]Decision, error) {
	var all []Decision
	p := Page{Limit: n + 1, Payload: true, Oldest: oldest}
	for range lookPages {
		found, err := store.Search(ctx, f, p)
		if err != nil {
			return nil, err
		}
		for _, d := range found.Decisions {
			if d.ID != self.ID || !d.Time.Equal(self.Time) {
				all = append(all, d)
			}
		}
		if p.After = found.Next; len(all) >= n || p.After == "" {
			return all[:min(n, len(all))], nil
		}
	}
	a.Short = true
	return all, nil
}

func (a *Around) one(ctx context.Context, store Store, f Filter, oldest bool) (*Decision, error) {
	found, err := a.search(ctx, store, f, 1, oldest, Decision{})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// turn finds where the decisions of a subject and a path turned into what this one is.
func (a *Around) turn(ctx context.Context, store Store, d Decision, r reads, f Filter, q Question) error {
	f.Until = d.Time
	// Of a boolean columns are right, or all of them the wrong way round where the rule is called deny.
	if !r.said.column && !r.result.is(isBool) || d.Verdict == Other {
		return a.lookThrough(ctx, store, d, r, f, q)
	}
	a.All = true
	otherwise, same := f, f
	otherwise.Verdicts = slices.DeleteFunc(Verdicts(), func(v Verdict) bool { return v == d.Verdict })
	same.Verdicts = []Verdict{d.Verdict}
	var err error
	if a.Otherwise, err = a.one(ctx, store, otherwise, false); err != nil {
		return err
	}
	if a.Otherwise != nil {
		same.Since = a.Otherwise.Time
	}
	if a.First, err = a.one(ctx, store, same, true); err != nil {
		return err
	}
	input := r.whole.get("input")
	if !q.SameInput || a.Otherwise == nil || input == nil || r.sameInput(*a.Otherwise, q) {
		return nil
	}
	text, whole := input.json(MaxMatchBytes)
	if a.InputTooLong = !whole; a.InputTooLong {
		return nil
	}
	otherwise.Matches = append(slices.Clone(f.Matches), Match{In: "input", Value: text})
	a.SameInput, err = a.one(ctx, store, otherwise, false)
	return err
}

// lookThrough reads decisions one after the other where columns do not tell how they ended.
func (a *Around) lookThrough(ctx context.Context, store Store, d Decision, r reads, f Filter, q Question) error {
	input := r.whole.get("input")
	done := func() bool { return a.Otherwise != nil && (!q.SameInput || a.SameInput != nil || input == nil) }
	page := Page{Limit: heavyPage, Payload: true}
	for range max(lookPages, lookBack/heavyPage) {
		found, err := store.Search(ctx, f, page)
		if err != nil {
			return err
		}
		size := 0
		for _, earlier := range found.Decisions {
			a.Looked++
			size += len(earlier.Raw)
			other := reading(earlier, q)
			if endedAlike(r, other) {
				if a.Otherwise == nil {
					a.First = &earlier
				}
				continue
			}
			if a.Otherwise == nil {
				a.Otherwise = &earlier
			}
			if q.SameInput && a.SameInput == nil && input != nil && same(input, other.whole.get("input")) {
				a.SameInput = &earlier
			}
			if done() {
				return nil
			}
		}
		if page.After = found.Next; page.After == "" || a.Looked >= lookBack {
			a.All = page.After == ""
			return nil
		}
		if page.Limit = min(lookPage, lookBack-a.Looked); size > heavyBytes {
			page.Limit = min(heavyPage, lookBack-a.Looked)
		}
	}
	a.Short = true
	return nil
}

// endedAlike compares verdicts, and results where there are none.
func endedAlike(a, b reads) bool {
	if a.said.verdict == Other && b.said.verdict == Other {
		return same(a.result, b.result)
	}
	return a.said.verdict == b.said.verdict
}
