package decision

import (
	"encoding/binary"
	"math/bits"
)

// run walks from a place until the value ends, or until it meets input that is uncommon in compact JSON of short
// strings and numbers. The caller handles that input and calls run again.
//
// It is a machine of three states, each a label and a [place]: value (one begins), after (behind one in a container)
// and key (one begins). In each of them pos is at the next byte, and white space may come first. After a fault, pos
// is at the fault. Every container is pushed on s.open. An object with visible members gets a node for its opening
// brace, one for each key, and one for its closing brace.
//
// Most of the time of a decision is spent here. So it is one function without calls, which keeps its variables in
// registers: a call in any branch would make the compiler spill them in all branches. It writes s.pos and s.tape.n
// back when it stops. The variables kinds and nodes follow s.open and s.tape whenever these change.
func (s *scanner) run(from place) (why place) {
	var (
		src, pos = s.src, s.pos
		n        = s.tape.n     // number of nodes
		nodes    = s.tape.room  // empty while the open containers are too deep for visible members
		kinds    = s.open.kinds // of the open containers
		i        int
		m        uint64 // a bit for each of the next eight bytes that is special
		c        byte
	)
	if s.open.depth > s.tape.deepest {
		nodes = nodes[:0]
	}
	switch from {
	case atKey:
		goto key
	case afterValue:
		goto after
	}

value:
	if uint(pos) >= uint(len(src)) {
		goto fault
	}
	c = src[pos]
	if c == '"' { // text handles escapes, non-ASCII and the last seven bytes
		for i = pos + 1; i <= len(src)-8; i += 8 {
			if m = special(binary.LittleEndian.Uint64(src[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				if uint(i) < uint(len(src)) && src[i] == '"' {
					pos = i + 1
					goto after
				}
				break
			}
		}
		pos, why = i, inText
		goto out
	}
	if c-'0' <= 9 && pos <= len(src)-8 { // up to seven digits are an integer that fits anything
		if m = nonDigits(binary.LittleEndian.Uint64(src[pos:])); m == 0 {
			goto number
		}
		i = bits.TrailingZeros64(m) >> 3
		if c == '0' && i > 1 {
			goto number
		}
		if c = src[pos+i]; c == '.' || c|0x20 == 'e' {
			goto number
		}
		pos += i
		goto after
	}
	switch c {
	case '{':
		if s.open.depth == maxDepth {
			goto fault
		}
		i = pos + 1
		if uint(i) < uint(len(src)) && src[i] != '"' {
			for ; i < len(src) && isSpace(src[i]); i++ {
			}
			if uint(i) < uint(len(src)) && src[i] == '}' {
				pos = i + 1
				goto empty
			}
		}
		if s.open.depth >= s.tape.deepest {
			nodes = nodes[:0]
		} else {
			if n >= len(nodes) {
				why = fullAtValue
				goto out
			}
			nodes[n] = node{uint32(pos), opened | uint32(s.open.node)} // the outer object, until this one closes
			s.open.node = n
			n++
		}
		s.open.push(1)
		kinds = s.open.kinds
		pos = i
		goto key
	case '[':
		if s.open.depth == maxDepth {
			goto fault
		}
		for pos++; pos < len(src) && isSpace(src[pos]); pos++ {
		}
		if uint(pos) < uint(len(src)) && src[pos] == ']' {
			pos++
			goto empty
		}
		if s.open.depth >= s.tape.deepest {
			nodes = nodes[:0]
		}
		s.open.push(0)
		kinds = s.open.kinds
		goto value
	case 't':
		if len(src)-pos >= 4 && string(src[pos:pos+4]) == "true" {
			pos += 4
			goto after
		}
		goto fault
	case 'f':
		if len(src)-pos >= 5 && string(src[pos:pos+5]) == "false" {
			pos += 5
			goto after
		}
		goto fault
	case 'n':
		if len(src)-pos >= 4 && string(src[pos:pos+4]) == "null" {
			pos += 4
			goto after
		}
		goto fault
	case ' ', '\n', '\r', '\t':
		for pos++; pos < len(src) && isSpace(src[pos]); pos++ {
		}
		goto value
	}
number:
	why = atNumber
	goto out

empty:
	if s.open.depth == 0 {
		goto end
	}
after:
	if uint(pos) >= uint(len(src)) {
		goto fault
	}
	c = src[pos]
	if c == ',' {
		pos++
		if kinds&1 == 0 {
			goto value
		}
		goto key
	}
	if c == ']'|byte(kinds&1)<<5 { // in ASCII '}' is ']' with one more bit
		if kinds&1 != 0 && s.open.depth <= s.tape.deepest {
			if n >= len(nodes) {
				why = fullAfterValue
				goto out
			}
			nodes[n] = node{uint32(pos), closed}
			i = s.open.node
			s.open.node = int(nodes[i].end &^ opened)
			nodes[i].end = opened | uint32(n)
			n++
		}
		pos++
		s.open.pop()
		kinds = s.open.kinds
		if s.open.depth == 0 {
			goto end
		}
		if s.open.depth == s.tape.deepest {
			nodes = s.tape.room
		}
		goto after
	}
	if isSpace(c) {
		for pos++; pos < len(src) && isSpace(src[pos]); pos++ {
		}
		goto after
	}
fault:
	why = atFault
	goto out

key:
	if uint(pos) >= uint(len(src)) {
		goto fault
	}
	if src[pos] != '"' {
		if !isSpace(src[pos]) {
			goto fault
		}
		for pos++; pos < len(src) && isSpace(src[pos]); pos++ {
		}
		goto key
	}
	for i = pos + 1; i <= len(src)-8; i += 8 {
		if m = special(binary.LittleEndian.Uint64(src[i:])); m != 0 {
			i += bits.TrailingZeros64(m) >> 3
			if uint(i) >= uint(len(src)) || src[i] != '"' {
				break
			}
			if n < len(nodes) {
				nodes[n] = node{uint32(pos + 1), uint32(i)}
				n++
			} else if s.open.depth <= s.tape.deepest {
				why = fullAtKey
				goto out
			}
			for pos = i + 1; pos < len(src) && isSpace(src[pos]); pos++ {
			}
			if uint(pos) < uint(len(src)) && src[pos] == ':' {
				pos++
				goto value
			}
			goto fault
		}
	}
	s.keyed = pos + 1
	pos, why = i, inKey
	goto out

end:
	why = atEnd
	s.tape.nodes = s.tape.room[:n]
out:
	s.pos, s.tape.n = pos, n
	return why
}
