package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"docket/internal/record/verdict"
)

// Denial is the first denied decision of a path, in the order of storing.
type Denial struct {
	Path string
	Version
	StoredAt time.Time
}

// PathRevision names a revision of a path's policies.
type PathRevision struct{ Path, Revision string }

// Rate counts the decisions of a path and revision.
type Rate struct {
	PathRevision
	First, Last     time.Time // stored_at
	Allowed, Denied int64
}

// DenyRate is the share of denied decisions among those that were allowed or denied, 0 to 1; 0 if there are none.
func (r *Rate) DenyRate() float64 {
	if r.Allowed+r.Denied == 0 {
		return 0
	}
	return float64(r.Denied) / float64(r.Allowed+r.Denied)
}

// Comparison is a revision and the one before it on the same path.
type Comparison struct {
	Rate
	Judged Judgement // the last one; zero: there was none
	Before *Rate     // nil: there is none with as many decisions
}

// Since counts the decisions since the last judgement.
func (c *Comparison) Since() Rate {
	r := c.Rate
	r.Allowed, r.Denied = r.Allowed-c.Judged.Allowed, r.Denied-c.Judged.Denied
	return r
}

// Judgement says what a revision had when it was compared with the one before it.
type Judgement struct {
	PathRevision
	Allowed, Denied int64 // so far
	Told            bool  // people were told that it denies more, and need no second message
}

// pathFold is what a fold has for a path.
type pathFold struct {
	name      string
	states    map[string]*folded // by subject
	stateless *folded            // decisions without a state; nil: none yet
	denied    *order             // the first denied decision; nil: none
	rates     map[string]*rated  // by revision
	last      *rated
}

// rated is a [Rate] with times as they are read.
type rated struct {
	revision        string
	first, last     int64
	allowed, denied int64
}

// count notes a decision for the alerts. Decisions come in any order.
func (p *pathFold) count(h *held) {
	denied := h.said.Verdict == verdict.Denied
	if denied && (p.denied == nil || h.compare(*p.denied) < 0) {
		first := h.order
		p.denied = &first
	}
	if h.said.Revision == "" || !denied && h.said.Verdict != verdict.Allowed {
		return
	}
	of := p.rate(h)
	of.first, of.last = min(of.first, h.storedAt), max(of.last, h.storedAt)
	if denied {
		of.denied++
	} else {
		of.allowed++
	}
}

// rate returns the counts of a decision's revision. Most decisions have the revision of the one before.
func (p *pathFold) rate(h *held) *rated {
	if p.last != nil && p.last.revision == h.said.Revision {
		return p.last
	}
	if p.last = p.rates[h.said.Revision]; p.last == nil {
		p.last = &rated{revision: h.said.Revision, first: h.storedAt, last: h.storedAt}
		p.rates[h.said.Revision] = p.last
	}
	return p.last
}

// Denials returns the first denial of each path, in the order of paths.
func (f *Fold) Denials() []Denial {
	var out []Denial
	for _, p := range f.paths {
		if p.denied != nil {
			out = append(out, Denial{p.name, Version{micro(p.denied.time), p.denied.id}, micro(p.denied.storedAt)})
		}
	}
	slices.SortFunc(out, func(a, b Denial) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// Rates returns the counts of the fold, in the order of paths and revisions.
func (f *Fold) Rates() []Rate {
	var out []Rate
	for _, p := range f.paths {
		for _, r := range p.rates {
			out = append(out, Rate{PathRevision{p.name, r.revision}, micro(r.first), micro(r.last), r.allowed, r.denied})
		}
	}
	slices.SortFunc(out, func(a, b Rate) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Revision, b.Revision))
	})
	return out
}
