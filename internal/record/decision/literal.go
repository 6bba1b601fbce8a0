package decision

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// scalar scans a string, a number or a literal name.
func (s *scanner) scalar() bool {
	switch s.peek() {
	case '"':
		s.pos++
		return s.text()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

func (s *scanner) literal(word string) bool {
	end := s.pos + len(word)
	if end > len(s.src) || string(s.src[s.pos:end]) != word {
		return false
	}
	s.pos = end
	return true
}

// text scans the rest of a string to behind its closing quote.
func (s *scanner) text() bool {
	for {
		s.plain()
		c := s.peek()
		switch {
		case c == '"':
			s.pos++
			return true
		case c == '\\':
			s.escapes = true
			if !s.escape() {
				return false
			}
		case c < utf8.RuneSelf: // a control character, or the end of the input
			return false
		default:
			if !s.runes() {
				return false
			}
		}
	}
}

// runes skips characters that are not ASCII; false is a byte that is not UTF-8.
func (s *scanner) runes() bool {
	for s.peek() >= utf8.RuneSelf {
		_, size := utf8.DecodeRune(s.src[s.pos:])
		if size == 1 {
			return false
		}
		s.pos += size
	}
	return true
}

// plain skips ASCII that needs no escape in a string.
func (s *scanner) plain() {
	i := s.pos
	for ; i+8 <= len(s.src); i += 8 {
		if m := special(binary.LittleEndian.Uint64(s.src[i:])); m != 0 {
			s.pos = i + bits.TrailingZeros64(m)/8
			return
		}
	}
	for i < len(s.src) && s.src[i] >= 0x20 && s.src[i] < utf8.RuneSelf && s.src[i] != '"' && s.src[i] != '\\' {
		i++
	}
	s.pos = i
}

// escape scans the escape sequence at s.pos; a surrogate pair counts as one.
func (s *scanner) escape() bool {
	if s.pos+1 == len(s.src) {
		return false
	}
	switch s.src[s.pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return true
	case 'u':
	default:
		return false
	}
	unit, ok := hexUnit(s.src[s.pos:])
	if !ok {
		return false
	}
	if isHigh(unit) {
		if low, ok := hexUnit(s.src[s.pos+6:]); ok && isLow(low) {
			s.pos += 12
			return true
		}
	}
	if unit == 0 || isHigh(unit) || isLow(unit) {
		s.mark(s.pos)
	}
	s.pos += 6
	return true
}
