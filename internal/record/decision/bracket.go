package decision

import "bytes"

// OnLines reports whether the decoder reads an upload of several decisions as lines, and not as an array.
func OnLines(plain []byte) bool {
	plain = trim(plain)
	if len(plain) == 0 || plain[0] != '[' {
		return len(plain) > 0
	}
	s := scanner{src: plain}
	return s.lineOfBracket()
}

// MayBeLines is [OnLines] by the bytes at line breaks alone, without reading JSON. false is certain.
func MayBeLines(plain []byte) bool {
	plain = trim(plain)
	if len(plain) == 0 || plain[0] != '[' {
		return len(plain) > 0
	}
	end := 0
	for line := range bytes.Lines(plain) {
		start := end
		end += len(line)
		if text := trim(line); len(text) > 0 && text[0] == '{' && !inArray(plain[:start], plain[end:]) {
			return true
		}
	}
	return false
}

// lineOfBracket reports whether a value that begins with a bracket, but did not read as an array, is lines. Two facts
// decide:
//
//   - No array can begin with the first line and continue on the next: the line closes its bracket, or has a syntax
//     error.
//   - Another line counts as in hasObjectLine, and the text around it is not that around a value in an array.
//
// If both an array and lines are possible, the value is an array. So an element of a broken array is a line only if
// two marks are missing as well: the comma before it, and the comma or bracket behind it.
func (s *scanner) lineOfBracket() bool {
	if !s.hasObjectLine(true) {
		return false
	}
	value := s.src
	defer func() { s.src = value }()
	start := spaces(value, 0)
	s.src, s.pos = value[start:start+bytes.IndexByte(value[start:], '\n')+1], 0
	return s.skip() || !s.atEnd() // at the end, behind the line break, the array is open and has no fault yet
}

// inArray reports whether the bytes before or behind a line are those around a value inside an array.
func inArray(before, behind []byte) bool {
	const space = " \t\r\n"
	before, behind = bytes.TrimRight(before, space), bytes.TrimLeft(behind, space)
	if n := len(before); n > 0 && bytes.IndexByte([]byte("[,:"), before[n-1]) >= 0 {
		return true
	}
	return len(behind) > 0 && bytes.IndexByte([]byte(",]}"), behind[0]) >= 0
}
