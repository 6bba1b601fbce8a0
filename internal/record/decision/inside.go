package decision

import (
	"encoding/binary"
	"math/bits"
)

// Inside iterates over the members of an object or the elements of an array, in JSON that was read before. It finds
// the ends of values and does not check them. All places are positions in the bytes that [Into] was given.
//
//	for in := decision.Into(src, at); in.Next(); {
//		if in.Is("name") { … src[in.Value:in.End] … }
//	}
type Inside struct {
	src   []byte
	pos   int
	state insideState
	array bool

	// Start is the start of the member with its name, or of the element. Value is the start of its value, and End its
	// end.
	Start, Value, End int
	// Index is the position in the container, from 0.
	Index int

	name []byte // between its quotes, as written
}

type insideState uint8

const (
	insideFirst insideState = iota // before the first member
	insideMore                     // behind a member
	insideEnded                    // behind the closing bracket
	insideTorn                     // the input is not JSON there, or not a container
)

// Into starts at the value at pos, after white space. A value that is not a container has no members, and Torn
// reports it.
func Into(src []byte, pos int) Inside {
	pos = spaces(src, pos)
	in := Inside{src: src, pos: pos + 1, Index: -1}
	switch byteAt(src, pos) {
	case '{':
	case '[':
		in.array = true
	default:
		in.state = insideTorn
	}
	return in
}

// Next moves to the next member or element. false is the end, or input that is not JSON, see [Inside.Torn].
func (in *Inside) Next() bool {
	closing := byte('}')
	if in.array {
		closing = ']'
	}
	if in.state > insideMore {
		return false
	}
	in.pos = spaces(in.src, in.pos)
	switch c := byteAt(in.src, in.pos); {
	case c == closing:
		in.state = insideEnded
		in.pos++
		return false
	case in.state == insideFirst:
	case c == ',':
		in.pos = spaces(in.src, in.pos+1)
	default:
		return in.torn()
	}
	in.state = insideMore
	in.Start, in.Value = in.pos, in.pos
	if !in.array {
		end := stringEnd(in.src, in.pos)
		colon := spaces(in.src, max(end, 0))
		if end < 0 || byteAt(in.src, colon) != ':' {
			return in.torn()
		}
		in.name = in.src[in.pos+1 : end-1]
		in.Value = spaces(in.src, colon+1)
	}
	if in.End = valueEnd(in.src, in.Value); in.End < 0 {
		return in.torn()
	}
	in.pos = in.End
	in.Index++
	return true
}

func (in *Inside) torn() bool {
	in.state = insideTorn
	return false
}

// Array reports whether the container is an array.
func (in *Inside) Array() bool { return in.array }

// Torn reports whether Next ended at input that is not JSON.
func (in *Inside) Torn() bool { return in.state == insideTorn }

// Behind returns the place behind the closing bracket, after Next has returned false and nothing was torn.
func (in *Inside) Behind() int { return in.pos }

// Is reports whether the member has this name, however it is written. An element has no name.
func (in *Inside) Is(name string) bool {
	switch {
	case in.array || len(in.name) < len(name): // an escape is longer than what it stands for
		return false
	case string(in.name) == name:
		return !hasEscape(in.name)
	case len(in.name) == len(name):
		return false
	}
	return hasEscape(in.name) && string(appendText(nil, in.name)) == name
}

// Text returns the text of a JSON string that still has its quotes.
func Text(raw []byte) string {
	if raw = raw[1 : len(raw)-1]; hasEscape(raw) {
		return string(appendText(nil, raw))
	}
	return string(raw)
}

// valueEnd returns the end of the value at pos, or -1.
func valueEnd(src []byte, pos int) int {
	switch c := byteAt(src, pos); c {
	case '"':
		return stringEnd(src, pos)
	case '{', '[':
		return containerEnd(src, pos)
	default:
		end := pos
		for end < len(src) && isScalar(src[end]) {
			end++
		}
		if end == pos {
			return -1
		}
		return end
	}
}

// isScalar reports whether a number, true, false or null can contain this byte.
func isScalar(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.'
}

// containerEnd returns the end of the object or array at pos, or -1. Deep nesting takes no more memory.
func containerEnd(src []byte, pos int) int {
	depth := 0
	for pos < len(src) {
		switch structural[src[pos]] {
		case 0:
			pos++
			continue
		case opens:
			depth++
		case closes:
			if depth--; depth == 0 {
				return pos + 1
			}
		case quotes:
			if pos = stringEnd(src, pos); pos < 0 {
				return -1
			}
			continue
		}
		pos++
	}
	return -1
}

const (
	opens = 1 + iota
	closes
	quotes
)

var structural = [256]byte{'{': opens, '[': opens, '}': closes, ']': closes, '"': quotes}

// stringEnd returns the place behind the closing quote of the string at pos, or -1. Most strings are too short for
// bytes.IndexByte to be faster.
func stringEnd(src []byte, pos int) int {
	if byteAt(src, pos) != '"' {
		return -1
	}
	i := pos + 1
	for {
		for i+8 <= len(src) {
			w := binary.LittleEndian.Uint64(src[i:])
			quote, slash := w^'"'*ones, w^'\\'*ones
			m := ((quote-ones)&^quote | (slash-ones)&^slash) & highs // the lowest set bit is always right, see special
			if m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		for i < len(src) && src[i] != '"' && src[i] != '\\' {
			i++
		}
		switch {
		case i >= len(src):
			return -1
		case src[i] == '"':
			return i + 1
		}
		if i += 2; i > len(src) {
			return -1
		}
	}
}

// byteAt returns zero behind the end. JSON has no zero bytes.
func byteAt(src []byte, pos int) byte {
	if pos < len(src) {
		return src[pos]
	}
	return 0
}
