package reader

import "fmt"

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
