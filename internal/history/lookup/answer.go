package lookup

import (
	"slices"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/history/reader"
)

// Answer is the result for an id.
type Answer struct {
	ID string
	At time.Time
	// Rows are the decisions in the table. They are read after the places from which records move there, and before
	// archived days, to which they move.
	Rows []reader.Decision
	// Archived are decisions of archived days with an identity that no row has, oldest first, with their payload.
	Archived []reader.Decision
	// Letters are dead letters of the ledger with the id that are other decisions than the rows, the newest failure first.
	Letters []ledger.Entry
	// MoreLetters is how many such dead letters are not in Letters. Of an id, a ledger is asked for the newest 1,000.
	MoreLetters int
	// Found are records elsewhere with the id.
	Found []Found
	More  bool // there are more than those in Found
	// Looked are the places that were searched completely, and NotLooked the others.
	Looked    []Searched
	NotLooked []Gap
	// Exact are the places that were not searched completely for the id that was asked for, if that is the beginning of ID.
	Exact []Gap
	// Whole says that it is the answer of [Look.All], which asks every place, and not of [Look.Around].
	Whole bool
}

// ManyLetters reports whether a ledger was asked for no more, so that there may be more letters than are counted.
func (a *Answer) ManyLetters() bool { return len(a.Letters)+a.MoreLetters >= mostClaims }

// shorten keeps the first letters and counts the others.
func (a *Answer) shorten() {
	if n := len(a.Letters) - mostLetters; n > 0 {
		a.Letters, a.MoreLetters = a.Letters[:mostLetters], a.MoreLetters+n
	}
}

// Complete reports whether every place that this host can see was searched completely, but for forgotten ones.
func (a *Answer) Complete() bool { return !reader.Lacking(a.NotLooked) }

// Forgets reports whether the id may have been in a place that was forgotten on purpose.
func (a *Answer) Forgets() bool {
	return slices.ContainsFunc(a.NotLooked, func(g Gap) bool { return g.Forgotten })
}

// Nowhere reports that no searched place has the id. Only without gaps it does not exist.
func (a *Answer) Nowhere() bool {
	return len(a.Rows)+len(a.Archived)+len(a.Letters)+len(a.Found) == 0
}

// near drops what is far, forgotten or in spools of other hosts where a decision is stored. The answer tells such places
// only of an id that may have been there alone. An id that is found, maybe in another shard, is whole.
func (a *Answer) near() {
	if len(a.Rows)+len(a.Archived) > 0 {
		a.NotLooked = slices.DeleteFunc(a.NotLooked, func(g Gap) bool { return g.Far || g.Spools || g.Forgotten })
	}
	if !a.Nowhere() {
		a.NotLooked = slices.DeleteFunc(a.NotLooked, func(g Gap) bool { return g.Shortened })
	}
}

// Stored returns the decisions of the table and of archived days, oldest first.
func (a *Answer) Stored() []reader.Decision { return Join(a.Rows, a.Archived) }

// Shown moves archived decisions that are not among the shown ones to Found. Other answers may share the array of Found.
func (a *Answer) Shown(shown ...reader.Decision) {
	a.Found = slices.Clip(a.Found)
	for _, d := range a.Archived {
		if !slices.ContainsFunc(shown, func(s reader.Decision) bool { return s.ID == d.ID && s.Time.Equal(d.Time) }) {
			a.Found = append(a.Found, InArchiveOf(d))
		}
	}
}

// Join merges decisions of the table with those of archived days that have another identity, oldest first.
func Join(rows, archived []reader.Decision) []reader.Decision {
	all := slices.Clone(rows)
	for _, d := range archived {
		if !slices.ContainsFunc(rows, func(r reader.Decision) bool { return r.ID == d.ID && r.Time.Equal(d.Time) }) {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b reader.Decision) int { return reader.SpotOf(a).Compare(reader.SpotOf(b)) })
	return all
}

// Elsewhere returns those of Found that are other decisions than the rows.
func (a *Answer) Elsewhere() []Found {
	return slices.DeleteFunc(slices.Clone(a.Found), func(f Found) bool { return f.Same })
}

// Copies returns those of Found that are the decision of a row.
func (a *Answer) Copies() []Found {
	return slices.DeleteFunc(slices.Clone(a.Found), func(f Found) bool { return !f.Same })
}
