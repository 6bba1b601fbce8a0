//go:build integration

package sqlstates

import (
	"strings"
	"testing"

	"docket/internal/errclass"
)

// treatment is how a SQLSTATE is treated, by the letters of the table of error codes.
type treatment string

const (
	retryPark  treatment = "R -> P"           // the moment: again after each pause, then parked
	halvesPark treatment = "R in halves -> P" // as before, each try in smaller parts
	park       treatment = "P"                // the moment, but another try in a second does not help
	slow       treatment = "R -> P; alone D"  // 57014: the moment, unless one record is slow by itself
	data       treatment = "D"                // the record
	dataLater  treatment = "P once, then D"   // 23503: the record, once it has waited for its parent
	dataOnce   treatment = "R, then D or H"   // XX000: tried again before a record is accused
	hold       treatment = "H"                // the set-up
	bug        treatment = "B"                // ours, treated as the set-up's
	retryHold  treatment = "R, then H"        // the set-up, if a fresh connection does not cure it
	echo       treatment = "as P0001"         // 00000 cannot be raised: PL/pgSQL takes it for no code at all
)

// treatments is the table B1, row by row.
var treatments = []struct {
	codes string
	treatment
}{
	{"00000", echo},
	{"01000 01003 01004 01006 01007 01008 0100C 01P01 02000 02001", bug}, // a warning as an error
	{"03000", bug},
	{"08000 08001 08003 08004 08006 08007 08P01", retryPark},
	{"09000 27000 20000", data},
	{"0A000", retryHold},
	{"0B000 0F000 0F001 0L000 0LP01 0P000 0Z000 0Z002 21000", bug},
	{"22001 22003 22007 22008 22009 22015", data},
	{"22021 22P05 22P02 22P06 22018 22019 22024 22025 2200B 2200C 2200D 2200F", data},
	{"22030 22031 22032 22033 22034 22035 22036 22037 22038 22039", data},
	{"2203A 2203B 2203C 2203D 2203E 2203F 2203G", data},
	{"22000 22002 22004 22005 22010 22011 22012 22014 22016 22022 22023 22026 22027 2201B 2201E 2201F 2201G 22P01 2202E", data},
	{"2200G 2200L 2200M 2200N 2200S 2200T 22013 2201W 2201X 2202G 2202H", data},
	{"2200H 22P03 22P04", hold},
	{"23000 23001 23P01 23502 23514", data}, // 23514 as the trigger raises it: with a constraint's name
	{"23503", dataLater},
	{"23505", hold}, // never on the identity: that is a duplicate or a conflict before it comes to an error
	{"24000 34000", bug},
	{"25000 25001 25002 25003 25004 25005 25007 25008 25P01 25P02", bug},
	{"25006", retryHold},
	{"25P03 25P04", retryPark},
	{"26000 42P05", retryHold},
	{"28000 28P01", hold},
	{"2B000 2BP01 2D000 3B000 3B001", bug},
	{"2F000 2F002 2F003 2F004 2F005 38000 38001 38002 38003 38004 39000 39001 39004 39P01 39P02 39P03", data},
	{"3D000 3F000", hold},
	{"40000 40001 40P01 40003", retryPark},
	{"40002", data},
	{"42501 42P10", hold},
	{"428C9 42703 42P01 42704 42883 42804 42846 42P18 42P21 42P22 42P02 42P08 42601 42000", hold},
	{"42602 42611 42622 42701 42702 42710 42712 42723 42725 42803 42809 42830 42939", hold},
	{"42P03 42P04 42P06 42P07 42P09 42P11 42P12 42P13 42P14 42P15 42P16 42P17 42P19 42P20", hold},
	{"44000", data},
	{"53000 53200 53400", halvesPark},
	{"53100", hold},
	{"53300", retryPark},
	{"54000 54001", data},
	{"54011 54023", bug},
	{"55000 55006 55P02 55P04", hold},
	{"55P03", retryPark},
	{"57014", slow},
	{"57000 57P01 57P02 57P03 57P05 57P04", retryPark},
	{"58000 58030 58P01 58P02 F0000 F0001", hold},
	{"72000", retryPark},
	{"HV000 HV001 HV002 HV004 HV005 HV006 HV007 HV008 HV009 HV00A HV00B HV00C HV00D HV00J HV00K HV00L HV00M HV00N", park},
	{"HV00P HV00Q HV00R HV010 HV014 HV021 HV024 HV090 HV091", park},
	{"P0000 P0001 P0004 P0002 P0003", data},
	{"XX000", dataOnce},
	{"XX001 XX002", hold},
}

// newer is the treatment of a code that the table does not list: usually that of its class. In an unknown class the
// probe decides.
var newer = map[string]treatment{
	"01": bug, "02": bug, "03": bug, "08": retryPark, "0A": retryHold, "0B": bug, "0F": bug, "0L": bug, "0P": bug, "0Z": bug,
	"21": bug, "24": bug, "25": bug, "26": retryHold, "28": hold, "2B": bug, "2D": bug, "34": bug, "3B": bug, "3D": hold, "3F": hold,
	"40": retryPark, "42": hold, "53": halvesPark, "55": hold, "57": retryPark, "58": hold, "72": retryPark, "F0": hold, "HV": park, "XX": dataOnce,
}

func treatmentOf(code string) treatment {
	for _, row := range treatments {
		if strings.Contains(" "+row.codes+" ", " "+code+" ") {
			return row.treatment
		}
	}
	if v, ok := newer[code[:2]]; ok {
		return v
	}
	return data
}

// class returns the contract's class of a treatment.
func (v treatment) class() errclass.Class {
	switch v {
	case retryPark, halvesPark, park, slow:
		return errclass.Transient
	case data, dataLater, dataOnce, echo:
		return errclass.Data
	default:
		return errclass.Systemic
	}
}

// place is the expected place of a record.
type place string

const (
	row          place = "row"
	deadLetter   place = "dead_letter"
	parked       place = "parked"
	exhausted    place = "exhausted"
	rowOrParked  place = "row or parked" // the parts of a batch that fared well have rows
	wholeBatches       = 3               // DOCKET_PARK_BATCHES
)

// expectation is the expected result of a code, by section 5 of the contract.
type expectation struct {
	// One record among good ones, while the probe row is taken.
	odd, neighbours place  // when the consumer is done
	end             place  // of the odd one when the replayer is done; the neighbours have rows by then
	code            string // of the odd one's header
	retries         string // "0", "2" or ">0"

	// All records, the probe row among them.
	reason string // of the hold
	held   string // its code, and that of what is parked before it
	parks  bool   // that many whole batches first
}

// expect derives the expectation.
//
//   - transient: the moment is to blame, so the whole batch is parked, with its neighbours. The replayer searches while the
//     probe passes and gives the neighbours their rows. The odd one spends its attempts. If all fail, only so many whole
//     batches are parked, and then the outage is waited out (rule 3).
//   - data: only the odd one is dead-lettered. If the probe row is refused too, no record is to blame: hold (rule 1).
//   - systemic: hold if all fail. While the probe passes, some record is the cause: only that one is parked, so that it does
//     not stop a partition (rule 1). So 08P01 and 57P04 may come to the replayer more than once.
func expect(code string) expectation {
	v := treatmentOf(code)
	var e expectation
	switch v.class() {
	case errclass.Transient:
		e = expectation{odd: parked, neighbours: parked, end: exhausted, code: code, retries: "2", reason: "database_away", parks: true}
	case errclass.Data:
		e = expectation{odd: deadLetter, neighbours: row, end: deadLetter, code: code, retries: "0", reason: "database_refuses"}
	default:
		e = expectation{odd: parked, neighbours: row, end: exhausted, code: code, retries: "0", reason: "database_refuses"}
	}
	switch v {
	case halvesPark:
		e.neighbours = rowOrParked
	case park:
		e.retries = "0"
	case slow: // fails again and again while the probe passes: one record is too slow
		e.odd, e.neighbours, e.end, e.code, e.retries = deadLetter, row, deadLetter, "too_slow", ">0"
	case dataLater: // the parent row may still arrive: parked first, in the replay it is a record like any other
		e.odd, e.end = parked, deadLetter
	case dataOnce:
		e.code, e.retries = "internal", ">0"
	case retryHold:
		e.retries = ">0"
	case echo:
		e.code = "P0001"
	}
	if e.held = code; v == echo {
		e.held = e.code
	}
	if code == "25006" {
		e.reason = "read_only"
	}
	return e
}

func TestTreatments_AreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	listed := 0
	for _, r := range treatments {
		for code := range strings.FieldsSeq(r.codes) {
			listed++
			got, ok := errclass.Lookup(code)
			want := r.class()
			if got.Class == errclass.OK {
				got.Class, want = errclass.OK, errclass.OK // raised as an error it is a bug; see the run
			}
			if !ok || got.Class != want {
				t.Errorf("%s is %s, want %s (%s)", code, got.Class, want, r.treatment)
			}
		}
	}
	if listed != 261 {
		t.Errorf("%d codes, want the 260 of Postgres 15 and 25P04", listed)
	}
}
