package decision

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth is how many containers may be open at once, the decision's own braces included.
// With its default max_stack_depth of 2MB, Postgres 15 reads jsonb some 13,000 deep.
const maxDepth = 10_000

// span is a stretch of scanner.src.
type span struct{ start, end int }

// scanner walks over JSON as RFC 8259 has it, without recursion. Its methods return false on a syntax error and leave
// pos at the fault.
type scanner struct {
	src []byte
	pos int
	// beyond is where the first thing stands that is JSON but not for Postgres, or -1. Whoever starts a decision
	// resets it.
	beyond int
	// escaped says that the key that was scanned last has escapes.
	escaped bool
	// objects has a bit for each open container: set for an object, clear for an array.
	objects  [maxDepth/64 + 1]uint64
	inflated int    // see Record
	draft    draft  // of the decision that is being read
	parts    []Part // all that were returned and are still good, with room for more behind them
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (s *scanner) atEnd() bool { return s.pos == len(s.src) }

// peek returns the next byte, and at the end a zero, which JSON has no use for outside of strings either.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	if s.pos < len(s.src) && s.src[s.pos] > ' ' { // compact JSON has none
		return
	}
	s.spaces()
}

func (s *scanner) spaces() {
	for s.pos < len(s.src) && isSpace(s.src[s.pos]) {
		s.pos++
	}
}

// ends tells whether nothing but white space follows.
func (s *scanner) ends() bool {
	s.space()
	return s.atEnd()
}

// mark remembers the first thing that Postgres would refuse.
func (s *scanner) mark(at int) {
	if s.beyond < 0 {
		s.beyond = at
	}
}

// value scans the JSON value that starts at s.pos, depth containers being open around it.
func (s *scanner) value(depth int) bool {
	floor := depth
	for {
		c := s.peek()
		switch c {
		case '{', '[':
			if depth == maxDepth {
				return false
			}
			s.pos++
			s.space()
			if s.peek() == c+2 { // ASCII: ']' and '}' are two behind their opening brackets
				s.pos++
				break
			}
			depth++
			s.enter(depth, c == '{')
			if !s.entry(c == '{') {
				return false
			}
			continue
		default:
			if !s.scalar(c) {
				return false
			}
		}
		for depth > floor {
			object := s.inObject(depth)
			more, ok := s.next(object)
			if !ok || more && !s.entry(object) {
				return false
			}
			if more {
				break
			}
			depth--
		}
		if depth == floor {
			return true
		}
	}
}

func (s *scanner) enter(depth int, object bool) {
	bit := uint64(1) << (depth % 64)
	if object {
		s.objects[depth/64] |= bit
	} else {
		s.objects[depth/64] &^= bit
	}
}

func (s *scanner) inObject(depth int) bool {
	return s.objects[depth/64]>>(depth%64)&1 != 0
}

// entry scans what stands before a value in a container: in an object its key.
func (s *scanner) entry(object bool) bool {
	if !object {
		return true
	}
	_, ok := s.key()
	return ok
}

// next goes on behind a value in a container: more is true where a comma says that another entry follows, with s.pos at
// its start, and false where the container ended, with s.pos behind its bracket.
func (s *scanner) next(object bool) (more, ok bool) {
	s.space()
	switch s.peek() {
	case ',':
		s.pos++
		s.space()
		return true, true
	case '}':
		ok = object
	case ']':
		ok = !object
	}
	if ok {
		s.pos++
	}
	return false, ok
}

// key scans an object's key and the colon behind it. The span is what stands between the quotes.
func (s *scanner) key() (span, bool) {
	if s.peek() != '"' {
		return span{}, false
	}
	start := s.pos + 1
	s.escaped = false
	if !s.text() {
		return span{}, false
	}
	key := span{start, s.pos - 1}
	s.space()
	if s.peek() != ':' {
		return span{}, false
	}
	s.pos++
	s.space()
	return key, true
}

func (s *scanner) scalar(c byte) bool {
	switch c {
	case '"':
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

// text scans a string, opening quote to closing quote.
func (s *scanner) text() bool {
	s.pos++
	for {
		s.plain()
		c := s.peek()
		switch {
		case c == '"':
			s.pos++
			return true
		case c == '\\':
			s.escaped = true
			if !s.escape() {
				return false
			}
		case c < utf8.RuneSelf: // a control character, or the end of the input
			return false
		default:
			if _, size := utf8.DecodeRune(s.src[s.pos:]); size > 1 {
				s.pos += size
			} else {
				return false
			}
		}
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain skips ASCII that stands for itself in a string, eight bytes at a time. A subtraction borrows from the byte
// above only where the byte below is special already, so the lowest bit that is set is always a true one.
func (s *scanner) plain() {
	i := s.pos
	for ; i+8 <= len(s.src); i += 8 {
		w := binary.LittleEndian.Uint64(s.src[i:])
		special := (w | (w - 0x20*ones) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones)) & highs
		if special != 0 {
			s.pos = i + bits.TrailingZeros64(special)/8
			return
		}
	}
	for i < len(s.src) && s.src[i] >= 0x20 && s.src[i] < utf8.RuneSelf && s.src[i] != '"' && s.src[i] != '\\' {
		i++
	}
	s.pos = i
}

// escape scans the escape sequence at s.pos; a surrogate pair is one.
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
