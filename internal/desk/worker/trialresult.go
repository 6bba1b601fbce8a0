package worker

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"docket/internal/errclass"
	"docket/internal/record/decision"
)

// TrialResult is the predicted result of a retry. Each letter is counted once. A letter with several decisions counts
// by the worst of them.
type TrialResult struct {
	Total       int64                     `json:"total"`
	Would       int64                     `json:"would_be_stored"`
	There       int64                     `json:"stored_already"` // the row exists with an equal payload: a retry ends stored
	Conflict    int64                     `json:"id_conflict"`    // a row of that identity exists with another payload
	StillFail   []TrialFault              `json:"still_fail,omitempty"`
	Undecodable map[decision.Reason]int64 `json:"undecodable,omitempty"`
	// Unwell says that the table takes nothing now. Then all counts are zero, because nothing is known about any
	// letter.
	Unwell *TrialUnwell `json:"unwell,omitempty"`
}

// TrialFault counts the letters that would fail for one reason.
type TrialFault struct {
	Code       string `json:"code"` // a SQLSTATE or one of Docket's codes
	Constraint string `json:"constraint,omitempty"`
	Column     string `json:"column,omitempty"`
	Letters    int64  `json:"letters"`
}

// TrialUnwell says why the table does not take a known-good row.
type TrialUnwell struct {
	Code string `json:"code"`
	Hint string `json:"hint,omitempty"` // advice, or empty
}

// Fails returns how many letters would be dead again.
func (r TrialResult) Fails() int64 {
	n := r.Conflict
	for _, f := range r.StillFail {
		n += f.Letters
	}
	for _, k := range r.Undecodable {
		n += k
	}
	return n
}

// String returns the result in one line.
func (r TrialResult) String() string { return strings.Join(r.Findings(), ", ") }

// Findings returns the parts of the result in words, each about different letters. There is one if nothing was tried.
func (r TrialResult) Findings() []string {
	if r.Unwell != nil {
		line := "nothing was tested: the table does not accept a known-good row (" + r.Unwell.Code + ")"
		if r.Unwell.Hint != "" {
			line += "; " + r.Unwell.Hint
		}
		return []string{line}
	}
	said := []string{thousands(r.Would) + " would be stored"}
	if r.There > 0 {
		said = append(said, thousands(r.There)+verb(r.There, " has its", " have their")+" row already")
	}
	for _, f := range r.StillFail {
		said = append(said, thousands(f.Letters)+" still "+verb(f.Letters, "fails", "fail")+" with "+f.Code+f.names())
	}
	if r.Conflict > 0 {
		said = append(said, thousands(r.Conflict)+" still "+verb(r.Conflict, "fails", "fail")+" with id_conflict (stored with another payload)")
	}
	for _, reason := range r.reasons() {
		said = append(said, thousands(r.Undecodable[reason])+" cannot be read ("+string(reason)+")")
	}
	return said
}

// reasons are those of Undecodable, the most frequent first.
func (r TrialResult) reasons() []decision.Reason {
	reasons := make([]decision.Reason, 0, len(r.Undecodable))
	for reason := range r.Undecodable {
		reasons = append(reasons, reason)
	}
	slices.SortFunc(reasons, func(a, b decision.Reason) int {
		return cmp.Or(cmp.Compare(r.Undecodable[b], r.Undecodable[a]), cmp.Compare(a, b))
	})
	return reasons
}

func (f TrialFault) names() string {
	switch {
	case f.Constraint != "":
		return " (constraint " + f.Constraint + ")"
	case f.Column != "":
		return " (column " + f.Column + ")"
	}
	return ""
}

func verb(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// thousands formats a number for people: 4,819.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// trialFaultOf names a refusal.
func trialFaultOf(err error) TrialFault {
	f := TrialFault{Code: errclass.Classify(err).Code}
	if named, ok := errors.AsType[interface {
		error
		ConstraintName() string
	}](err); ok {
		f.Constraint = named.ConstraintName()
	}
	if named, ok := errors.AsType[interface {
		error
		ColumnName() string
	}](err); ok {
		f.Column = named.ColumnName()
	}
	return f
}

// compareFaults orders faults, the most frequent first.
func compareFaults(a, b TrialFault) int {
	return cmp.Or(cmp.Compare(b.Letters, a.Letters), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Constraint, b.Constraint), cmp.Compare(a.Column, b.Column))
}
