package reader

import (
	"fmt"
	"slices"
)

// ArchivedIn is the archive that a decision was read from.
type ArchivedIn struct {
	Day     string `json:"day" doc:"YYYY-MM-DD, in UTC"`
	Archive string `json:"archive" doc:"Its name, as docket archive list has it"`
	File    string `json:"file" doc:"The file of that archive"`
}

// Gap is a place that was not searched completely.
type Gap struct {
	Name string
	Why  string
	// Rows says that it is a part of the table, so that until when the answer is complete is not known.
	Rows bool
	// Far says that this host cannot see the place, and that nothing says that it has anything.
	Far bool
	// Spools says that the place is spools of other hosts, which may have something.
	Spools bool
	// Forgotten says that an operator gave the place up on purpose, so that nothing has it any more.
	Forgotten bool
	// Shortened says that the place was searched for the id, and would need the whole one if it is shortened.
	Shortened bool
}

// Lacking reports whether an answer with these gaps is incomplete. It is complete without places that are far or forgotten.
func Lacking(all []Gap) bool {
	return slices.ContainsFunc(all, func(g Gap) bool { return !g.Far && !g.Forgotten })
}

// RowsLack reports whether a part of the table is among the gaps.
func RowsLack(all []Gap) bool {
	return slices.ContainsFunc(all, func(g Gap) bool { return g.Rows })
}

func (g Gap) String() string { return g.Name + ": " + g.Why }

// GapTexts returns the gaps in words, each once.
func GapTexts(all []Gap) []string {
	var out []string
	seen := map[Gap]bool{}
	for _, g := range all {
		if !seen[g] {
			seen[g] = true
			out = append(out, g.String())
		}
	}
	return out
}

// String names the place for people.
func (a *ArchivedIn) String() string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf("%s, archived day %s", a.File, a.Day)
}
