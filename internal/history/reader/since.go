package reader

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"docket/internal/history/state"
	"docket/internal/record/subject"
)

// Around has the decisions around one: others of the same subject and path.
type Around struct {
	Before, After []Decision // the nearest first
	// Otherwise is the last before it that ended otherwise. First is the first after that, which ended as it did.
	Otherwise, First *Decision
	// SameInput is the last before it with the same input that ended otherwise.
	SameInput *Decision
	// Looked is the number of decisions before it that were read for Otherwise; 0: the store searched all by verdict.
	Looked int
	// All says that there were no more decisions.
	All bool
	// Kept is the time before which all that was stored is in the state from which Otherwise and First are; zero: they
	// were searched.
	Kept time.Time
	// Searched says that others were searched at all.
	Searched bool
	// Short says that the store ran out of time.
	Short bool
	// InputTooLong says that SameInput could not be searched.
	InputTooLong bool
	// Archives says that archived days were searched, too.
	Archives bool
	// NotLooked are archived days that were not read completely.
	NotLooked []Gap

	parts Parts // shards that some search missed
}

// met notes how far a page looked into archives.
func (a *Around) met(found Found) {
	a.Archives = a.Archives || found.Archives
	for _, g := range found.NotLooked {
		if !slices.Contains(a.NotLooked, g) {
			a.NotLooked = append(a.NotLooked, g)
		}
	}
}

// Since says since when a subject's decisions of a path end as this one did.
type Since struct {
	// Otherwise is the last decision before it that ended otherwise; nil: the search found none.
	Otherwise *Neighbour `json:"otherwise,omitempty"`
	// FirstID and FirstTime are of the first that ended as this one did: after Otherwise, or of all that were
	// searched.
	FirstID   string     `json:"first_decision_id,omitempty"`
	FirstTime *time.Time `json:"first_timestamp,omitempty"`
	// FirstBundles are those of the first; this decision may have others.
	FirstBundles []Bundle `json:"first_bundles"`
	// Bundles, OPAVersion, Input and Result are the changes between Otherwise and this decision. An error is part of
	// the result.
	Bundles    Differences `json:"bundles_changed"`
	OPAVersion Differences `json:"opa_version_changed"`
	Input      Differences `json:"input_changed"`
	Result     Differences `json:"result_changed"`
	// SameInput is the last before it with the same input that ended otherwise. It is Otherwise itself, or else the
	// result of the question's own search.
	SameInput *Neighbour `json:"same_input,omitempty"`
	// Searched says what was searched, and so what a missing answer means.
	Searched string `json:"searched"`
}

// lookBack is the number of decisions that are read if columns do not tell how they ended. They are read lookPage at
// a time, or heavyPage if a page has more than heavyBytes.
const (
	lookBack   = 500
	lookPage   = 100
	heavyPage  = 10
	heavyBytes = 1 << 20
	// lookPages limits the further requests after short pages. A store ends a page early when it has searched for
	// long.
	lookPages = 20
)

// Why explains a decision by those that store has around it. A [*PartialError] comes with an explanation by what the
// other shards have.
func Why(ctx context.Context, store Store, d Decision, q Question) (Explanation, error) {
	r := parseDecision(d, q) // once: a payload may be large
	around, err := find(ctx, store, d, r, q)
	if err != nil {
		return Explanation{}, err
	}
	x := explain(d, r, around, q)
	x.Incomplete = around.Short || Lacking(around.NotLooked)
	return x, around.parts.Err()
}

// by returns the subject setting for a decision: an extractor for its path wins over the question's.
func (r parsedDecision) by(q Question) subject.Spec {
	for _, one := range q.Extractors.of(r.path, RoleSubject) {
		return subject.Spec{Kind: subject.Input, Pointer: one.Pointer}
	}
	return q.Subject
}

// subjectOf returns the subject of a decision, and the filter that finds it.
func (r parsedDecision) subjectOf(q Question) (string, Filter, bool) {
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

func find(ctx context.Context, store Store, d Decision, r parsedDecision, q Question) (Around, error) {
	var a Around
	who, f, ok := r.subjectOf(q)
	if !ok || r.path == "" {
		return a, nil
	}
	a.Searched = true
	f.Paths = []string{r.path}
	if n := min(max(q.Neighbours, 0), MaxNeighbours); n > 0 {
		if err := a.near(ctx, store, d, f, q, n); err != nil {
			return a, err
		}
	}
	if err := a.turn(ctx, store, d, r, state.Key{Subject: who, Path: r.path}, f, q); err != nil {
		return a, fmt.Errorf("find since when: %w", err)
	}
	return a, nil
}

// near finds the n decisions on each side. Both sides are searched at once, as neither leads to the other.
func (a *Around) near(ctx context.Context, store Store, d Decision, f Filter, q Question, n int) error {
	before, earlier := beyond(store, d, f, q.page(n, false))
	after, later := beyond(store, d, f, q.page(n, true))
	var behind Around
	both, at := errgroup.WithContext(ctx)
	apart, missed := WithParts(at) // those of ctx are for one goroutine
	both.Go(func() (err error) {
		if a.Before, err = a.search(at, store, before, earlier); err != nil {
			return fmt.Errorf("find decisions before: %w", err)
		}
		return nil
	})
	both.Go(func() (err error) {
		if a.After, err = behind.search(apart, store, after, later); err != nil {
			return fmt.Errorf("find decisions behind: %w", err)
		}
		return nil
	})
	if err := both.Wait(); err != nil {
		return err
	}
	a.met(Found{Archives: behind.Archives, NotLooked: behind.NotLooked})
	a.Short = a.Short || behind.Short
	for _, err := range []error{behind.parts.Err(), missed.Err()} {
		if err = a.parts.Pass(Told(ctx, err)); err != nil {
			return err
		}
	}
	return nil
}

// page chooses the first n decisions.
func (q Question) page(n int, oldest bool) Page {
	return Page{Limit: n, Payload: true, Oldest: oldest, ArchiveBy: q.ArchiveBy}
}

// beyond limits a search to the decisions on one side of d in the order of (ts, decision_id): to those before it, or to
// those behind it if the oldest come first. The cursor excludes d, and orders the decisions of its time. The filter has
// the time as well, so that a store leaves out the days on the other side.
func beyond(store Store, d Decision, f Filter, p Page) (Filter, Page) {
	if p.Oldest {
		f.Since = d.Time
	} else {
		f.Until = d.Time.Add(time.Microsecond) // stored times have no finer one
	}
	p.After = CursorAt(store, SpotOf(d), "", p.Oldest)
	return f, p
}

// search returns the first matching decisions of a page, even if a store's pages are short.
func (a *Around) search(ctx context.Context, store Store, f Filter, p Page) ([]Decision, error) {
	var all []Decision
	n := p.Limit
	for range lookPages {
		found, err := store.Search(ctx, f, p)
		if err = a.parts.Pass(err); err != nil {
			return nil, err
		}
		a.met(found)
		all = append(all, found.Decisions...)
		if p.After = found.Next; len(all) >= n || p.After == "" {
			return all[:min(n, len(all))], nil
		}
	}
	a.Short = true
	return all, nil
}

func (a *Around) one(ctx context.Context, store Store, f Filter, p Page) (*Decision, error) {
	found, err := a.search(ctx, store, f, p)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// turn finds where the decisions of a subject and a path changed to this verdict.
func (a *Around) turn(ctx context.Context, store Store, d Decision, r parsedDecision, key state.Key, f Filter, q Question) error {
	f, page := beyond(store, d, f, q.page(1, false))
	// For a boolean result the columns are right, or always inverted if the rule is called deny.
	if !r.said.column && !r.result.is(isBool) || d.Verdict == Other {
		return a.lookThrough(ctx, store, r, f, page, q)
	}
	a.All = true
	turned := a.turned(d)
	otherwise, same := f, f
	otherwise.Verdicts = slices.DeleteFunc(Verdicts(), func(v Verdict) bool { return v == d.Verdict })
	same.Verdicts = []Verdict{d.Verdict}
	known, err := turned, error(nil)
	if !known {
		known, err = a.kept(ctx, store, d, key, q)
	}
	if err != nil {
		return err
	}
	if !known {
		if n := len(a.Before); n > 0 {
			otherwise, page = beyond(store, a.Before[n-1], otherwise, page) // none of those before ended otherwise
		}
		if a.Otherwise, err = a.one(ctx, store, otherwise, page); err != nil {
			return err
		}
		oldest := q.page(1, true)
		if a.Otherwise != nil {
			same, oldest = beyond(store, *a.Otherwise, same, oldest)
		}
		if a.First, err = a.one(ctx, store, same, oldest); err != nil {
			return err
		}
		if a.First != nil && SpotOf(*a.First).Compare(SpotOf(d)) >= 0 {
			a.First = nil // it is d itself, or d has left the store
		}
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
	a.SameInput, err = a.one(ctx, store, otherwise, page)
	return err
}

// turned finds the turn in the decisions before, and reports whether it is there. They are the nearest, one after another.
func (a *Around) turned(d Decision) bool {
	for i := range a.Before {
		if a.Before[i].Verdict != d.Verdict {
			a.Otherwise = &a.Before[i]
			if i > 0 {
				a.First = &a.Before[i-1]
			}
			return true
		}
	}
	return false
}

// lookThrough reads decisions one after another, from a page on, if columns do not tell how they ended.
func (a *Around) lookThrough(ctx context.Context, store Store, r parsedDecision, f Filter, page Page, q Question) error {
	input := r.whole.get("input")
	done := func() bool { return a.Otherwise != nil && (!q.SameInput || a.SameInput != nil || input == nil) }
	page.Limit = heavyPage
	for range max(lookPages, lookBack/heavyPage) {
		found, err := store.Search(ctx, f, page)
		if err = a.parts.Pass(err); err != nil {
			return err
		}
		a.met(found)
		size := 0
		for _, earlier := range found.Decisions {
			a.Looked++
			size += len(earlier.Raw)
			other := parseDecision(earlier, q)
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

// endedAlike compares verdicts, and results if there are none.
func endedAlike(a, b parsedDecision) bool {
	if a.said.verdict == Other && b.said.verdict == Other {
		return same(a.result, b.result)
	}
	return a.said.verdict == b.said.verdict
}
