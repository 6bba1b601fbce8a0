package pipeline

import (
	"docket/internal/record/decision"
	"docket/internal/record/home"
)

// flood counts the refused decisions of one record. Beyond MaxRefused they share a dead letter, so that a small
// record cannot become a hundred thousand dead letters.
type flood struct {
	alone  int // forwarded alone
	shared []refusedPart
}

// refusedPart is a refused decision that shares a dead letter.
type refusedPart struct {
	entry *home.Entry
	part  decision.Part // without its log
}

// takes reports whether a refused decision shares a dead letter. If so, it keeps the decision.
func (f *flood) takes(most int, part *decision.Part, entry *home.Entry) bool {
	if most <= 0 || f.alone < most {
		f.alone++
		return false
	}
	f.shared = append(f.shared, refusedPart{entry, decision.Part{Index: part.Index, Value: part.Value, Err: part.Err}})
	return true
}
