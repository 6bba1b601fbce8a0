package errclass

import (
	"github.com/jackc/pgerrcode"
)

// weight orders the findings in a tree of errors. The heaviest finding decides; of equals the first wins,
// outer before inner.
type weight uint8

const (
	weighsNothing weight = iota
	weighsNetwork
	weighsTimeout
	weighsDNS
	weighsTLS
	weighsDescriptors
	weighsCircumstance // a mark that says when it failed and not why
	weighsEcho         // 25P02, which only repeats that there was an error before
	weighsCause        // a SQLSTATE, or a mark
	weighsCancelled    // above a SQLSTATE: a cancellation from this program makes the server report 57014
)

type finding struct {
	weight         weight
	classification Classification
	marked         bool
}

func (f finding) or(other finding) finding {
	if other.weight > f.weight {
		return other
	}
	return f
}

// Classify classifies err by everything in its tree, wrapped and joined:
//
//   - A cancelled context is the program's own shutdown, whatever other errors it caused. A caller that was not stopped
//     treats it as Transient.
//   - Then the first SQLSTATE that is not 25P02, or the mark of As around it.
//   - Then the failures without a SQLSTATE: no file descriptor left, TLS, a host that does not exist, timeouts, the
//     network.
//   - Everything else is CodeInternal with class Unknown.
//
// A nil error is OK.
func Classify(err error) Classification {
	if err == nil {
		return Classification{Code: pgerrcode.SuccessfulCompletion, Name: conditionNames[pgerrcode.SuccessfulCompletion],
			Class: OK, Rule: Pass, Why: "There is no error."}
	}
	found := search(err)
	if found.weight == weighsNothing {
		return byCode[CodeInternal]
	}
	return found.classification
}

func search(err error) finding {
	mark, isMark := err.(*marked)
	if isMark && !mark.circumstance() {
		return finding{weighsCause, byCode[mark.code], true}
	}
	found := examine(err)
	for _, inner := range unwrap(err) {
		if inner != nil {
			found = found.or(search(inner))
		}
	}
	if isMark && (found.marked || found.weight < weighsCircumstance) {
		return finding{weighsCircumstance, byCode[mark.code], true}
	}
	return found
}

func unwrap(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}

// examine judges one error of the tree without those below it.
func examine(err error) finding {
	if v, ok := sqlState(err); ok {
		if v.Code == pgerrcode.InFailedSQLTransaction {
			return finding{weight: weighsEcho, classification: v}
		}
		return finding{weight: weighsCause, classification: v}
	}
	if is := stateless(err); is.weight != weighsNothing {
		return finding{weight: is.weight, classification: byCode[is.code]}
	}
	return finding{}
}

// sqlState classifies an error that itself has a SQLSTATE.
func sqlState(err error) (Classification, bool) {
	carrier, ok := err.(interface{ SQLState() string })
	if !ok {
		return Classification{}, false
	}
	code := carrier.SQLState()
	if !isSQLState(code) {
		return Classification{}, false
	}
	v, _ := Lookup(code)
	if v.Rule == Pass { // it is still an error: taken for success it would lose the record
		v.Rule, v.Class = Bug, rules[Bug].class
	}
	if code == pgerrcode.CheckViolation {
		if c, ok := err.(interface{ ConstraintName() string }); ok {
			switch c.ConstraintName() {
			case "":
				v = noPartition
			case BeforeCut:
				v = beforeCut
			}
		}
	}
	return v, true
}
