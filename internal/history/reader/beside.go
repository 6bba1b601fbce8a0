package reader

import (
	"fmt"
	"strings"
	"time"

	"docket/internal/record/escape"
)

// beside adds the decisions around.
func (x *Explanation) beside(r parsedDecision, around Around, q Question) {
	for _, d := range around.Before {
		x.Before = append(x.Before, neighbour(d, r, q, true))
	}
	for _, d := range around.After {
		x.After = append(x.After, neighbour(d, r, q, false))
	}
	if !around.Searched {
		return
	}
	none := Differences{Changes: []Change{}}
	s := Since{Bundles: none, OPAVersion: none, Input: none, Result: none}
	if first := around.First; first != nil {
		at := escape.Time(first.Time)
		s.FirstID, s.FirstTime, s.FirstBundles = first.ID, &at, parseDecision(*first, q).bundles()
	} else {
		s.FirstID, s.FirstTime, s.FirstBundles = x.DecisionID, &x.Timestamp, x.Bundles
	}
	if o := around.Otherwise; o != nil {
		n := neighbour(*o, r, q, true)
		s.Otherwise = &n
		other := parseDecision(*o, q)
		s.Bundles = part(other, r, "bundles")
		s.OPAVersion = part(other, r, "labels", "version")
		s.Input = part(other, r, "input")
		s.Result = part(other, r, "result")
		failed := part(other, r, "error")
		s.Result.Changes, s.Result.More = append(s.Result.Changes, failed.Changes...), s.Result.More+failed.More
	}
	equal := around.SameInput
	if o := around.Otherwise; o != nil && r.sameInput(*o, q) {
		equal = o
	}
	if equal != nil {
		n := neighbour(*equal, r, q, true)
		s.SameInput = &n
	}
	s.Searched = searched(around)
	for _, gap := range GapTexts(around.NotLooked) {
		x.Notes = append(x.Notes, "not searched for other decisions of this subject: "+gap)
	}
	if around.Short {
		x.Notes = append(x.Notes, "the search ran out of time: there may be more than it found")
	}
	if q.SameInput && around.InputTooLong {
		x.Notes = append(x.Notes, "the input is too long to search for")
	} else if q.SameInput && equal == nil {
		x.Notes = append(x.Notes, "no decision with the same input, subject and path but another verdict was found in what was searched")
	}
	x.Since = &s
}

func searched(a Around) string {
	switch {
	case !a.Kept.IsZero():
		return "the state of this subject and path, with the decisions stored before " + a.Kept.UTC().Format(time.RFC3339)
	case a.Looked == 1 && a.Otherwise != nil:
		return "the last decision of this subject and path before this one"
	case a.Looked == 1 && a.All:
		return "the only stored decision of this subject and path before this one"
	case a.Looked > 0 && !a.All && a.Otherwise == nil:
		return fmt.Sprintf("the last %d decisions of this subject and path before this one; older ones were not searched", a.Looked)
	case a.Looked > 0 && a.Otherwise == nil:
		return fmt.Sprintf("all %d stored decisions of this subject and path before this one", a.Looked)
	case a.Looked > 0:
		return fmt.Sprintf("the last %d decisions of this subject and path before this one", a.Looked)
	}
	switch {
	case a.Archives && len(a.NotLooked) == 0:
		return "the stored and archived decisions of this subject and path before this one"
	case a.Archives:
		return "the stored and archived decisions of this subject and path before this one; not all archived days"
	}
	return "the stored decisions of this subject and path before this one; not archived ones"
}

// sameInput reports whether another decision had the same input.
func (r parsedDecision) sameInput(other Decision, q Question) bool {
	input := r.whole.get("input")
	return input != nil && same(input, parseDecision(other, q).whole.get("input"))
}

// part returns the changes of one part of a decision, none if both are equal.
func part(old, now parsedDecision, steps ...string) Differences {
	was, is := old.whole.at(steps...), now.whole.at(steps...)
	at := pointer("", steps...)
	d := differ{most: nearChanges, left: aligned, found: Differences{Changes: []Change{}}}
	switch {
	case was == nil && is == nil:
	case was == nil:
		d.tell(at, Added, nil, is)
	case is == nil:
		d.tell(at, Removed, was, nil)
	default:
		d.diff(at, was, is)
	}
	return d.found
}

func neighbour(d Decision, r parsedDecision, q Question, earlier bool) Neighbour {
	other := parseDecision(d, q)
	n := Neighbour{DecisionID: d.ID, Timestamp: escape.Time(d.Time), Verdict: other.said.verdict, Bundles: other.bundles(), Changes: []Change{}}
	if other.whole == nil || r.whole == nil {
		return n
	}
	was, is := r.whole, other.whole
	if earlier {
		was, is = is, was
	}
	found := diff(was, is, DiffOptions{Most: nearChanges})
	n.Changes, n.More = found.Changes, found.More
	return n
}

// Revision lists a decision's bundles in one line: name@revision.
func Revision(bundles []Bundle) string {
	var out []string
	for _, b := range bundles {
		text := b.Name
		if b.Revision != "" {
			text = strings.TrimPrefix(text+"@"+b.Revision, "@")
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
