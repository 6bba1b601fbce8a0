package pgmodel

import (
	"bytes"
	"slices"
	"strconv"
)

// Limits of numeric: a display scale of 14 bits, a weight of 16 bits in digits of base 10,000, and half an int32 of
// exponent.
const (
	maxScale    = 16_383
	maxLeading  = 131_071
	maxExponent = 1<<30 - 1
)

func (p *jsonReader) digits() []byte {
	from := p.pos
	for p.pos < len(p.src) && p.src[p.pos]-'0' <= 9 {
		p.pos++
	}
	return p.src[from:p.pos]
}

// number reads a number. Its normal form is its digits without zeros at the ends, and the power of ten of the first.
func (p *jsonReader) number(out []byte) ([]byte, *failure) {
	negative := p.peek() == '-'
	if negative {
		p.pos++
	}
	integer := p.digits()
	if len(integer) == 0 || len(integer) > 1 && integer[0] == '0' {
		return nil, p.syntax()
	}
	var fraction []byte
	if p.peek() == '.' {
		p.pos++
		if fraction = p.digits(); len(fraction) == 0 {
			return nil, p.syntax()
		}
	}
	exponent, f := p.exponent()
	if f != nil {
		return nil, f
	}
	if c := p.peek(); c|0x20-'a' < 26 || c == '_' || c == '.' || c >= 0x80 {
		return nil, p.syntax()
	}
	all := slices.Concat(integer, fraction)
	first := slices.IndexFunc(all, func(c byte) bool { return c != '0' })
	power := len(integer) - 1 - first + exponent // of the first digit that is not 0
	if exponent > maxExponent || exponent < -maxExponent || len(fraction)-exponent > maxScale || first >= 0 && power > maxLeading {
		return nil, fail("22003", "value overflows numeric format")
	}
	if p.check {
		return out, nil
	}
	if first < 0 {
		return append(out, '0'), nil
	}
	sign := byte('+')
	if negative {
		sign = '-'
	}
	out = append(out, sign)
	out = append(out, bytes.TrimRight(all[first:], "0")...)
	return append(strconv.AppendInt(append(out, 'e'), int64(power), 10), ';'), nil
}

func (p *jsonReader) exponent() (int, *failure) {
	if p.peek()|0x20 != 'e' {
		return 0, nil
	}
	p.pos++
	sign := 1
	switch p.peek() {
	case '-':
		sign = -1
		p.pos++
	case '+':
		p.pos++
	}
	digits := p.digits()
	if len(digits) == 0 {
		return 0, p.syntax()
	}
	n := 0
	for _, c := range digits {
		n = min(n*10+int(c-'0'), maxExponent+1)
	}
	return sign * n, nil
}
