package reader

import (
	"fmt"

	"docket/internal/record/escape"
)

// mostSameID limits the notes about other decisions with the same id.
const mostSameID = 5

// NoteOthers notes the rows among all that have the id of the explained decision and are other ones: with another time, or in
// another shard. It repeats no note.
func (x *Explanation) NoteOthers(explained Decision, all []Decision) {
	noted := map[string]bool{}
	for _, note := range x.Notes {
		noted[note] = true
	}
	others := 0
	for i := range all {
		d := &all[i]
		if d.Archived != nil || d.ID != explained.ID || d.Time.Equal(explained.Time) && d.Shard == explained.Shard {
			continue
		}
		if others++; others > mostSameID {
			continue
		}
		note := fmt.Sprintf("another stored decision has this id: %s, %s", escape.Instant(d.Time), d.Verdict)
		if d.Shard != "" {
			note += ", in shard " + d.Shard
		}
		if !noted[note] {
			x.Notes = append(x.Notes, note)
		}
	}
	if more := fmt.Sprintf("%d further stored decisions have this id: docket logs lists all", others-mostSameID); others > mostSameID && !noted[more] {
		x.Notes = append(x.Notes, more)
	}
}
