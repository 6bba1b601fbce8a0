package reader

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"docket/internal/record/subject"
)

// PathSubject says where the decisions of some paths have their subject.
type PathSubject struct {
	Path string // as in [Extractor]: whole, or all below one if it ends in "/*"; "*" is all
	subject.Spec
}

// Subjects lists where decisions have their subjects. The first whose path fits counts. The last fits every path.
func (q Question) Subjects() []PathSubject {
	var out []PathSubject
	for _, one := range q.Extractors {
		if one.Role == RoleSubject {
			out = append(out, PathSubject{one.Path, subject.Spec{Kind: subject.Input, Pointer: one.Pointer}})
		}
	}
	slices.SortStableFunc(out, func(a, b PathSubject) int {
		return Extractor{Path: b.Path}.closeness() - Extractor{Path: a.Path}.closeness()
	})
	return append(out, PathSubject{"*", q.Subject})
}

// SubjectsBy writes the settings of [Question.Subjects] as one text. Equal texts find equal subjects.
func (q Question) SubjectsBy() string {
	var out []string
	for _, s := range q.Subjects() {
		out = append(out, s.Path+"="+s.String())
	}
	return strings.Join(out, ",")
}

// SubjectBy returns the subject that all decisions of the filter have by a setting, or an empty one. Only a place of the
// input gives one: subjects are of payloads, and other conditions are about columns of the table. Only a text gives one:
// a number can be written in several ways. A text that JSON cannot hold has a replacement character, and gives none.
func (f Filter) SubjectBy(setting string) (who string, by subject.Spec) {
	by, err := subject.Parse(setting)
	if err != nil || by.Kind != subject.Input {
		return "", by
	}
	for _, m := range f.Matches {
		at := m.Pointer
		if m.In != "raw" {
			at = "/" + m.In + at
		}
		if at == by.FullPointer() && json.Unmarshal(m.Value, &who) == nil && who != "" && !strings.ContainsRune(who, utf8.RuneError) {
			return who, by
		}
	}
	return "", by
}

// RevisionOf returns the bundles of a decision in one line, as explanations do: name@revision. bundles is its column.
// old is its top-level revision, which OPA wrote before bundles had names; empty: none.
func RevisionOf(bundles json.RawMessage, old string) string {
	r := parsedDecision{whole: &node{kind: isObject}}
	if n := parse(bundles); n != nil {
		r.whole.keys, r.whole.kids = append(r.whole.keys, "bundles"), append(r.whole.kids, n)
	}
	all := r.bundles()
	if len(all) == 0 && old != "" {
		all = append(all, Bundle{Revision: cutText(old)})
	}
	return Revision(all)
}
