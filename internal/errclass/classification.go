package errclass

import (
	"slices"
	"strings"

	"github.com/jackc/pgerrcode"
)

// Classification says whose fault a code is, and how it is treated.
type Classification struct {
	// Code is a SQLSTATE or one of Docket's codes.
	Code string
	// Name is Postgres's condition name, or a name in the same style for one of Docket's codes. It never holds text
	// of the server.
	Name string
	// Class is whose fault it is.
	Class Class
	// Rule is how such a fault is treated.
	Rule Rule
	// Why says how the code comes about here. For data faults it is part of a dead letter's message. So it is part of
	// the fingerprint that groups dead letters: a change of the text splits their groups.
	Why string
}

// Effect returns one sentence on what happens to the batch. It is the rule's, except for the few codes that name
// their record already.
func (v Classification) Effect() string {
	if own, ok := ownEffects[v.Code]; ok {
		return own
	}
	return v.Rule.Effect()
}

// OfTheMoment reports whether the same request can succeed later without a repair of the database. It is true for the
// class Transient, and for CodeDescriptors, which is Systemic only so that the pipeline holds and parks nothing.
func (v Classification) OfTheMoment() bool {
	return v.Class == Transient || v.Code == CodeDescriptors
}

// noPartition is the classification of 23514 if Postgres names no constraint: the table has no partition for the row.
var noPartition = classification(pgerrcode.CheckViolation, Hold,
	"No constraint is named, so the cause is not a CHECK: the table has no partition for the row's time, and nothing creates one.")

// BeforeCut is the CHECK that the table has while it is being partitioned. It is Docket's only CHECK.
const BeforeCut = "decision_logs_before_cut"

// beforeCut is the classification of 23514 if it names that CHECK.
var beforeCut = classification(pgerrcode.CheckViolation, Await,
	"The constraint is "+BeforeCut+": a migration partitions the table. Until it is done, the table rejects decisions more than one day ahead.")

var (
	byCode  = map[string]Classification{}
	inOrder []Classification
)

func init() {
	for _, group := range sqlstates {
		for code := range strings.FieldsSeq(group.codes) {
			add(classification(code, group.rule, group.why))
		}
	}
	slices.SortFunc(inOrder, func(a, b Classification) int { return strings.Compare(a.Code, b.Code) })
	for _, v := range ownCodes {
		v.Class = classOf(v)
		add(v)
	}
}

func add(v Classification) {
	if _, twice := byCode[v.Code]; twice {
		panic("errclass: two classifications of " + v.Code)
	}
	byCode[v.Code] = v
	inOrder = append(inOrder, v)
}

func classification(code string, rule Rule, why string) Classification {
	return Classification{Code: code, Name: conditionNames[code], Class: rules[rule].class, Rule: rule, Why: why}
}

func classOf(v Classification) Class {
	if v.Code == CodeInternal {
		return Unknown
	}
	return rules[v.Rule].class
}

// Lookup returns the classification of a SQLSTATE or one of Docket's codes. A SQLSTATE without its own gets the
// default of its class. In an unknown class the probe decides. ok is false for anything else: not five characters of
// 0-9 and A-Z, and not one of Docket's codes.
//
// A code alone does not tell everything. Classify also checks which constraint 23514 names, and whether a code of
// success came as an error.
func Lookup(code string) (v Classification, ok bool) {
	if v, ok = byCode[code]; ok {
		return v, true
	}
	if !isSQLState(code) {
		return Classification{}, false
	}
	class := code[:2]
	rule, known := classDefaults[class]
	if !known {
		return Classification{Code: code, Name: "unlisted", Class: Data, Rule: ProbeBisect,
			Why: "A code of no class that Postgres documents, most likely raised by a trigger or function of your own."}, true
	}
	return Classification{Code: code, Name: conditionNames[class+"000"], Class: rules[rule].class, Rule: rule,
		Why: "Not a code that this version knows; it takes the verdict of its class, " + class + "."}, true
}

// Table returns every classification: the SQLSTATEs in order, then Docket's codes. It has 23514 twice more, without a
// constraint and with [BeforeCut].
func Table() []Classification {
	at := slices.IndexFunc(inOrder, func(v Classification) bool { return v.Code == noPartition.Code })
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
