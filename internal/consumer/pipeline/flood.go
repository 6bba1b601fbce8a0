package pipeline

import (
	"docket/internal/record/decision"
	"docket/internal/record/home"
)

// flood counts what the decoder refused of one record. Beyond MaxRefused of them the refused decisions of the record share a dead letter, so that a
// small record cannot become a hundred thousand letters.
type flood struct {
	alone  int // that are forwarded alone
	shared []refusedPart
}

// refusedPart is a refused decision that shares a dead letter.
type refusedPart struct {
	entry *home.Entry
	part  decision.Part // without its log
}

// takes says whether a refused decision shares a dead letter, and notes it then.
func (f *flood) takes(most int, part *decision.Part, entry *home.Entry) bool {
	if most <= 0 || f.alone < most {
		f.alone++
		return false
	}
	f.shared = append(f.shared, refusedPart{entry, decision.Part{Index: part.Index, Value: part.Value, Err: part.Err}})
	return true
}
