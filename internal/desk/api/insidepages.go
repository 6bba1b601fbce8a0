package api

import (
	"context"
	"net"
	"slices"
	"time"

	"docket/internal/history/reader"
)

// PageQuery asks for a page of decisions in either direction.
type PageQuery struct {
	SearchQuery
	// Back asks for the page that ends before After. After is then the Newer of a page.
	Back bool
}

// DecisionPage is a page of decisions, in the order that was asked for.
type DecisionPage struct {
	DecisionList
	// Back is the cursor of the page before this one; empty: this is the first.
	Back string
}

// lastTime is after every timestamp that a decision can have.
const lastTime = "9999-12-31T23:59:59Z"

// Page is search-decisions in either direction. A page that was asked backwards has the same order as the others.
func (i Inside) Page(ctx context.Context, c Caller, q PageQuery) (DecisionPage, error) {
	oldest := q.Order == "oldest"
	if !q.Back {
		list, err := i.Search(ctx, c, q.SearchQuery)
		out := DecisionPage{DecisionList: list}
		if n := len(list.Decisions); err == nil && q.After != "" && n > 0 {
			out.Back = i.cursorAt(&list.Decisions[0], !oldest)
		}
		return out, err
	}
	turned := q.SearchQuery
	turned.Order = "oldest"
	switch {
	case oldest && turned.Until == "":
		turned.Order, turned.Until = "newest", lastTime
	case oldest:
		turned.Order = "newest"
	case turned.Until == "": // pages of the newest leave out what is dated far ahead, and so does the way back
		since, _, err := turned.between(i.s.Now())
		if err != nil {
			return DecisionPage{}, err
		}
		if f, later := reader.Bound(reader.Filter{Since: since}, false, i.s.Now()); !later.IsZero() {
			turned.Until = f.Until.Format(time.RFC3339)
		}
	}
	list, err := i.Search(ctx, c, turned)
	if err != nil {
		return DecisionPage{}, err
	}
	slices.Reverse(list.Decisions)
	out := DecisionPage{DecisionList: list, Back: list.Next}
	out.Next = ""
	if n := len(list.Decisions); n > 0 {
		out.Next = i.cursorAt(&list.Decisions[n-1], oldest)
	}
	return out, nil
}

func (i Inside) cursorAt(d *Decision, oldest bool) string {
	return reader.CursorAt(i.s.Decisions, reader.Spot{Time: d.Timestamp, ID: d.ID}, d.Shard, oldest)
}

// Limits of facets. They come beside a page, so they may not keep it waiting.
const (
	facetSample   = 200
	facetPatience = 80 * time.Millisecond
)

// Facets count the values of the columns of decisions.
type Facets struct {
	Decisions   int  // that were counted: the first ones in the order of the question
	Whole       bool // these are all that fit
	Verdict     []FacetValue
	Path        []FacetValue
	Service     []FacetValue
	RequestedBy []FacetValue // hosts, without ports
}

// FacetValue is a value of a column, and how many decisions have it.
type FacetValue struct {
	Name  string // empty: decisions without one
	Count int64
}

type facetsOutput struct{ facets *Facets }

// Facets counts among the first 200 decisions that fit. It begins with the first page of the same question, and needs no other
// question if that page has all of them. It looks for the others in 80 ms, and leaves them out if there was no time. It needs
// the role of a search.
func (i Inside) Facets(ctx context.Context, c Caller, q SearchQuery, first *DecisionList) (*Facets, error) {
	q.After = first.Next
	out, err := ask(ctx, i.s, "search-decisions", c, &q, func(ctx context.Context, c caller, in *searchInput) (*facetsOutput, error) {
		return i.s.facets(ctx, c, in, first)
	})
	if err != nil {
		return nil, err
	}
	return out.facets, nil
}

func (s *api) facets(ctx context.Context, c caller, in *searchInput, first *DecisionList) (*facetsOutput, error) {
	all, whole := first.Decisions, first.Next == "" && !incomplete(first.Gaps)
	if first.Next != "" && len(all) < facetSample {
		f, err := in.filter(c, s.Now())
		if err != nil {
			return nil, err
		}
		oldest := in.Order == "oldest"
		f, _ = reader.Bound(f, oldest, s.Now())
		ctx, cancel := context.WithTimeout(ctx, facetPatience)
		defer cancel()
		page := reader.Page{Limit: facetSample - len(all), After: in.After, Oldest: oldest, ArchiveBy: time.Now()}
		if found, err := s.Decisions.Search(ctx, f, page); err == nil { // the page of the same question says what is wrong
			all = slices.Concat(all, decisionsOf(found.Decisions))
			whole = found.Next == "" && !reader.Lacking(found.NotLooked) && !incomplete(first.Gaps)
		}
	}
	return &facetsOutput{facetsOf(all, whole)}, nil
}

func facetsOf(all []Decision, whole bool) *Facets {
	counts := [4]map[string]int64{{}, {}, {}, {}}
	for i := range all {
		d := &all[i]
		counts[0][string(d.Verdict)]++
		counts[1][textOf(d.Path)]++
		counts[2][textOf(d.Service)]++
		counts[3][hostOf(textOf(d.RequestedBy))]++
	}
	return &Facets{Decisions: len(all), Whole: whole,
		Verdict: facetValues(counts[0]), Path: facetValues(counts[1]), Service: facetValues(counts[2]), RequestedBy: facetValues(counts[3])}
}

// hostOf removes a port, so that the filter of the value finds every port of the host.
func hostOf(who string) string {
	if host, port, err := net.SplitHostPort(who); err == nil && port != "" {
		return host
	}
	return who
}

// facetValues are values, the most frequent first.
func facetValues(counts map[string]int64) (all []FacetValue) {
	for name, n := range counts {
		all = append(all, FacetValue{name, n})
	}
	slices.SortFunc(all, func(a, b FacetValue) int {
		if a.Count != b.Count {
			return int(b.Count - a.Count)
		}
		return reader.CompareNames(a.Name, b.Name)
	})
	return all
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
