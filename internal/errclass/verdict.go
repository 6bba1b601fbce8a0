package errclass

import (
	"slices"
	"strings"

	"github.com/jackc/pgerrcode"
)

// Verdict is the judgement on one code.
type Verdict struct {
	// Code is a SQLSTATE or one of our own codes.
	Code string
	// Name is Postgres's condition name, or for a code of ours a name in the
	// same style. It never holds text of the server.
	Name string
	// Class is whose fault it is.
	Class Class
	// Rule is how such a fault is treated.
	Rule Rule
	// Why is one sentence on how the code comes about here.
	Why string
}

// Effect is one sentence on what happens to the batch. It is the rule's,
// except for the few codes that name their record already.
func (v Verdict) Effect() string {
	if own, ok := ownEffects[v.Code]; ok {
		return own
	}
	return v.Rule.Effect()
}

// noPartition is the verdict on 23514 when Postgres names no constraint: a
// row for which the partitioned table has no partition.
var noPartition = verdict(pgerrcode.CheckViolation, Hold,
	"No constraint is named, so this is not a CHECK: the table has no partition for the time of the row, and none will appear by itself.")

// BeforeCut is the CHECK that the table has while it is being made one of
// partitions. No other is Docket's.
const BeforeCut = "decision_logs_before_cut"

// beforeCut is the verdict on 23514 when it names that one.
var beforeCut = verdict(pgerrcode.CheckViolation, Await,
	"The constraint is "+BeforeCut+": a migration is partitioning the table; until it is done, the table takes no decision more than a day in the future.")

var (
	byCode  = map[string]Verdict{}
	inOrder []Verdict
)

func init() {
	for _, group := range sqlstates {
		for code := range strings.FieldsSeq(group.codes) {
			add(verdict(code, group.rule, group.why))
		}
	}
	slices.SortFunc(inOrder, func(a, b Verdict) int { return strings.Compare(a.Code, b.Code) })
	for _, v := range ownCodes {
		v.Class = classOf(v)
		add(v)
	}
}

func add(v Verdict) {
	if _, twice := byCode[v.Code]; twice {
		panic("errclass: two verdicts on " + v.Code)
	}
	byCode[v.Code] = v
	inOrder = append(inOrder, v)
}

func verdict(code string, rule Rule, why string) Verdict {
	return Verdict{Code: code, Name: conditionNames[code], Class: rules[rule].class, Rule: rule, Why: why}
}

func classOf(v Verdict) Class {
	if v.Code == CodeInternal {
		return Unknown
	}
	return rules[v.Rule].class
}

// Lookup has the verdict on a SQLSTATE or one of our own codes. A SQLSTATE
// without a verdict of its own takes its class's default, and one of an
// unknown class is for the probe to decide. ok is false for what is neither
// five characters of 0-9 and A-Z nor a code of ours.
//
// A code alone does not tell everything: Classify also sees whether 23514
// names a constraint, and which, and that a code of success came as an error.
func Lookup(code string) (v Verdict, ok bool) {
	if v, ok = byCode[code]; ok {
		return v, true
	}
	if !isSQLState(code) {
		return Verdict{}, false
	}
	class := code[:2]
	rule, known := classDefaults[class]
	if !known {
		return Verdict{Code: code, Name: "unlisted", Class: Data, Rule: ProbeBisect,
			Why: "A code of a class that Postgres does not document, most likely raised by a trigger or function."}, true
	}
	return Verdict{Code: code, Name: conditionNames[class+"000"], Class: rules[rule].class, Rule: rule,
		Why: "A code that this version does not know; it gets the verdict of its class, " + class + "."}, true
}

// Table has every verdict: the SQLSTATEs in their order, 23514 again for the
// case that names no constraint and the one that names [BeforeCut], then our own codes.
func Table() []Verdict {
	at := slices.IndexFunc(inOrder, func(v Verdict) bool { return v.Code == noPartition.Code })
	return slices.Insert(slices.Clone(inOrder), at+1, noPartition, beforeCut)
}

func isSQLState(code string) bool {
	if len(code) != 5 {
		return false
	}
	for i := range len(code) {
		if c := code[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}
