package decision

import (
	"math"
	"time"
)

// judge returns the decision's first fault, or its time.
func (d *draft) judge(s *scanner, start int) (time.Time, *Refusal) {
	if refusal := d.judgeNames(s, start); refusal != nil {
		return time.Time{}, refusal
	}
	if f := d.mistyped(s); f != otherField {
		return time.Time{}, d.refuse(WrongType, f, start)
	}
	at, ok := parseTime(d.text(s, fieldTimestamp))
	if !ok {
		return time.Time{}, d.refuse(WrongType, fieldTimestamp, start)
	}
	if id := d.raw(s, fieldID); s.beyond >= 0 && !isStorable(id) || len(id) > mostID && len(d.text(s, fieldID)) > mostID {
		return time.Time{}, d.refuse(OutOfRange, fieldID, start)
	}
	return at, nil
}

// mostID limits the bytes of a decision_id. An entry of a B-tree holds 2,704 (nbtree.h, BTMaxItemSize), and it also
// has the time.
const mostID = 2000

// judgeNames looks for repeated and missing names.
func (d *draft) judgeNames(s *scanner, start int) *Refusal {
	if d.repeatedField != otherField {
		return &Refusal{Reason: DuplicateKey, Field: fieldNames[d.repeatedField], Offset: int(d.repeated) - start}
	}
	if at := d.others.repeated(s.src); at >= 0 {
		return &Refusal{Reason: DuplicateKey, Offset: at - start}
	}
	if id := d.values[fieldID]; !d.has(fieldID) || d.first[fieldID] == '"' && id.end-id.start == 2 {
		return &Refusal{Reason: MissingField, Field: fieldNames[fieldID]}
	}
	if !d.has(fieldTimestamp) {
		return &Refusal{Reason: MissingField, Field: fieldNames[fieldTimestamp]}
	}
	return nil
}

// mistyped returns the first field with the wrong JSON type.
func (d *draft) mistyped(s *scanner) field {
	for f := fieldID; f < fieldResult; f++ {
		if d.first[f] == firstOf[f] || !d.has(f) || f == fieldReqID && isInteger(d.raw(s, f)) {
			continue
		}
		return f
	}
	return otherField
}

// firstOf is the first byte of a field's value; a number has several.
var firstOf = [fieldCount]byte{
	fieldID: '"', fieldTimestamp: '"', fieldPath: '"', fieldRequestedBy: '"', fieldReqID: 'x', fieldLabels: '{', fieldBundles: '{',
}

// has reports whether a field is present and not null.
func (d *draft) has(f field) bool { return d.first[f] != 0 && d.first[f] != 'n' }

func (d *draft) refuse(reason Reason, f field, start int) *Refusal {
	return &Refusal{Reason: reason, Field: fieldNames[f], Offset: int(d.values[f].start) - start}
}

// raw returns a field's exact bytes, nil if it is absent or null.
func (d *draft) raw(s *scanner, f field) []byte { return d.values[f].raw(s.src) }

// raw returns the bytes of a value, nil if there is none or it is null.
func (v span) raw(src []byte) []byte {
	if v.start == v.end || src[v.start] == 'n' {
		return nil
	}
	return src[v.start:v.end:v.end]
}

// text returns the text of a string field.
func (d *draft) text(s *scanner, f field) []byte {
	raw := d.raw(s, f)
	raw = raw[1 : len(raw)-1]
	if s.escapes && hasEscape(raw) {
		return appendText(nil, raw)
	}
	return raw
}

func isInteger(number []byte) bool {
	for i, c := range number {
		if c-'0' > 9 && (c != '-' || i != 0) {
			return false
		}
	}
	return true
}

// parseInt reads an integer literal. fits is false for any other literal, and for none.
func parseInt(literal []byte) (n int64, fits bool) {
	if len(literal) == 0 || !isInteger(literal) {
		return 0, false
	}
	digits := literal
	limit := uint64(math.MaxInt64)
	negative := len(literal) > 0 && literal[0] == '-'
	if negative {
		digits = literal[1:]
		limit++
	}
	if len(digits) > 19 { // 19 digits cannot overflow a uint64
		return 0, false
	}
	var size uint64
	for _, c := range digits {
		size = size*10 + uint64(c-'0')
	}
	if size > limit {
		return 0, false
	}
	if negative {
		return -int64(size), true // for limit+1 the conversion wraps to the least int64, whose negation is itself
	}
	return int64(size), true
}
