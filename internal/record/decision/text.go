package decision

import (
	"bytes"
	"unicode/utf8"
)

func isHigh(unit rune) bool { return unit >= 0xD800 && unit <= 0xDBFF }

func isLow(unit rune) bool { return unit >= 0xDC00 && unit <= 0xDFFF }

// hexUnit reads the \uXXXX at the start of b.
func hexUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var unit rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}

func hasEscape(raw []byte) bool { return bytes.IndexByte(raw, '\\') >= 0 }

// appendText appends the text of raw, the inside of a scanned string. A lone surrogate becomes its three bytes in the
// style of UTF-8, so that two different ones stay different.
func appendText(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		raw = raw[i:]
		if raw[1] != 'u' {
			dst = append(dst, unescaped[raw[1]])
			raw = raw[2:]
			continue
		}
		unit, _ := hexUnit(raw)
		raw = raw[6:]
		if low, ok := hexUnit(raw); ok && isHigh(unit) && isLow(low) {
			unit = (unit-0xD800)<<10 + (low - 0xDC00) + 0x10000
			raw = raw[6:]
		}
		if isHigh(unit) || isLow(unit) {
			dst = append(dst, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F)
			continue
		}
		dst = utf8.AppendRune(dst, unit)
	}
}

var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
