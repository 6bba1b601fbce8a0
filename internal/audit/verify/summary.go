package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"docket/internal/record/home"
)

// State is the result for one invariant.
type State string

// The states.
const (
	Held      State = "held"
	Broken    State = "broken"
	Warned    State = "warned"    // a violation whose cause may be outside Docket
	Undecided State = "undecided" // the evidence does not decide it
)

// Finding is one violation.
type Finding struct {
	Place   Place    // zero if it is about no record
	ID      string   // decision id or key; empty if there is none
	What    string   // a description without payload
	History []string // all facts about the record, one a line
}

// String returns the finding in one line, without its history.
func (f Finding) String() string {
	switch {
	case f.Place == Place{}:
		return f.What
	case f.ID == "":
		return fmt.Sprintf("%v: %s", f.Place, f.What)
	}
	return fmt.Sprintf("%v (%s): %s", f.Place, f.ID, f.What)
}

// Result is the result for one invariant, with its findings.
type Result struct {
	Invariant string // I1 to I18
	Name      string
	State     State
	Note      string    // why it is undecided, or what was left out
	Checked   int       // number of checked things
	Findings  int       // number of violations
	Found     []Finding // the first of them, the very first with its history
}

// String returns the result in one line.
func (v Result) String() string {
	text := fmt.Sprintf("%-3s %-9s %s", v.Invariant, v.State, v.Name)
	switch {
	case v.State == Undecided:
		return text + ": " + v.Note
	case v.Findings > 0:
		text += fmt.Sprintf(": %d of %d, first %v", v.Findings, v.Checked, v.Found[0])
	default:
		text += fmt.Sprintf(" (%d)", v.Checked)
	}
	if v.Note != "" {
		text += "; " + v.Note
	}
	return text
}

// Summary has the results of [Decide].
type Summary struct {
	Seed, Build string            // of the run, if known
	Results     []Result          // I1 to I18, in order
	Decisions   int               // in the truth
	Homes       map[home.Home]int // each decision once, by its furthest home; home.None: it has none
}

// Of returns the result for one invariant, such as "I7".
func (r *Summary) Of(invariant string) Result {
	for _, v := range r.Results {
		if v.Invariant == invariant {
			return v
		}
	}
	return Result{Invariant: invariant, State: Undecided, Note: "not looked at"}
}

// ErrBroken is wrapped by the error of a summary with a broken invariant.
var ErrBroken = errors.New("an invariant is broken")

// Err returns nil unless an invariant is broken. It names all broken ones, each with its first finding and that
// record's history, and the seed and the build if they are known.
func (r *Summary) Err() error {
	var lines []string
	for _, v := range r.Results {
		if v.State != Broken {
			continue
		}
		lines = append(lines, v.String())
		for _, h := range v.Found[0].History {
			lines = append(lines, "      "+h)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if r.Seed != "" || r.Build != "" {
		lines = append(lines, fmt.Sprintf("seed %s, build %s", r.Seed, r.Build))
	}
	return fmt.Errorf("%w:\n%s", ErrBroken, strings.Join(lines, "\n"))
}

// joined joins two notes, without repeats.
func joined(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "" || strings.Contains(a, b):
		return a
	}
	return a + "; " + b
}

// weight orders the results of parts of one source. A part that was checked and is undecided makes the whole
// undecided. A part without anything to check does not.
func (v Result) weight() int {
	switch {
	case v.State == Broken:
		return 4
	case v.State == Warned:
		return 3
	case v.State == Undecided && v.Checked > 0:
		return 2
	case v.State == Held:
		return 1
	}
	return 0
}

// Merge adds another part of the same check: numbers add up, the worse result stays.
func (r *Summary) Merge(o *Summary) {
	r.Decisions += o.Decisions
	if r.Homes == nil {
		r.Homes = make(map[home.Home]int)
	}
	for h, n := range o.Homes {
		r.Homes[h] += n
	}
	for _, v := range o.Results {
		i := slices.IndexFunc(r.Results, func(mine Result) bool { return mine.Invariant == v.Invariant })
		if i < 0 {
			r.Results = append(r.Results, v)
			continue
		}
		r.Results[i] = r.Results[i].merge(v)
	}
}

func (v Result) merge(o Result) Result {
	graver, lesser := v, o
	if o.weight() > v.weight() {
		graver, lesser = o, v
	}
	graver.Checked, graver.Findings = v.Checked+o.Checked, v.Findings+o.Findings
	graver.Found = append(graver.Found[:len(graver.Found):len(graver.Found)], lesser.Found[:min(len(lesser.Found), kept-min(kept, len(graver.Found)))]...)
	if lesser.weight() > 0 {
		graver.Note = joined(graver.Note, lesser.Note)
	}
	return graver
}
