package decision

import "bytes"

// MaxDecisions is the most decisions that one Kafka record may carry. An array of millions of empty elements is small
// and would take gigabytes once every element has its own home; no upload of OPA comes near.
const MaxDecisions = 100_000

// Decode reads the decisions out of a Kafka record's value. It inflates and reads at most maxBytes bytes. A Refusal
// condemns the whole record; a fault of one decision is that Part's Err. What it returns aliases value where value is
// not gzip, so value must not be written to afterwards. Beside those bytes it takes a few hundred for each Part, however
// small: an array of nothing but digits grows to some three hundred times its size while it is read.
func Decode(value []byte, maxBytes int64) (Record, *Refusal) {
	if isGzip(value) {
		plain, refusal := gunzip(value, maxBytes)
		if refusal != nil {
			return Record{}, refusal
		}
		value = plain
	} else if int64(len(value)) > maxBytes {
		return Record{}, &Refusal{Reason: TooLarge}
	}

	s := scanner{src: value}
	s.space()
	if s.atEnd() {
		return Record{}, &Refusal{Reason: Empty}
	}
	if s.peek() == '[' {
		return s.array()
	}
	parts := make([]Part, 1)
	if s.document(&parts[0]) {
		return Record{Parts: parts, Sole: true}, nil
	}
	fault := s.pos
	if !s.hasObjectLine() {
		return Record{}, &Refusal{Reason: Syntax, Offset: fault}
	}
	return s.lines()
}

// array reads a JSON array of decisions that starts at s.pos and must end the value.
func (s *scanner) array() (Record, *Refusal) {
	s.pos++
	s.space()
	if s.peek() == ']' {
		s.pos++
		if !s.ends() {
			return Record{}, &Refusal{Reason: Syntax, Offset: s.pos}
		}
		return Record{}, &Refusal{Reason: Empty}
	}
	var parts []Part
	for more := true; more; {
		parts = append(parts, Part{Index: len(parts)})
		ok := s.part(&parts[len(parts)-1])
		if ok {
			more, ok = s.next(false)
		}
		switch {
		case !ok:
			return Record{}, &Refusal{Reason: Syntax, Offset: s.pos}
		case more && len(parts) == MaxDecisions:
			return Record{}, &Refusal{Reason: TooLarge, Offset: s.pos}
		}
	}
	if !s.ends() {
		return Record{}, &Refusal{Reason: Syntax, Offset: s.pos}
	}
	return Record{Parts: parts, Sole: len(parts) == 1}, nil
}

// lines reads each line of the value that is not blank as a decision of its own.
func (s *scanner) lines() (Record, *Refusal) {
	value := s.src
	var parts []Part
	for line := range bytes.Lines(value) {
		line = trim(line)
		if len(line) == 0 {
			continue
		}
		if len(parts) == MaxDecisions {
			return Record{}, &Refusal{Reason: TooLarge}
		}
		parts = append(parts, Part{Index: len(parts), Value: line})
		part := &parts[len(parts)-1]
		s.src, s.pos = line, 0
		if !s.document(part) {
			// All of the line: what stands behind a complete object in it has no other home.
			part.Value, part.Log, part.Err = line, Log{}, &Refusal{Reason: Syntax, Offset: s.pos}
		}
	}
	s.src = value
	return Record{Parts: parts, Sole: len(parts) == 1}, nil
}

// hasObjectLine tells whether any line is a complete JSON object by itself: from its first column on, or indented and
// with a decision_id. Other indented objects are more likely the inside of one that was torn.
func (s *scanner) hasObjectLine() bool {
	value := s.src
	defer func() { s.src = value }()
	for line := range bytes.Lines(value) {
		text := trim(line)
		if len(text) == 0 || text[0] != '{' || len(line) == len(value) {
			continue
		}
		s.src, s.pos = text, 0
		var d draft
		if d.scan(s) && s.ends() && (line[0] == '{' || d.seen[fieldID]) {
			return true
		}
	}
	return false
}

// document reads the one decision that all of s.src from s.pos on is; false is a syntax error at s.pos.
func (s *scanner) document(part *Part) bool {
	return s.part(part) && s.ends()
}

// part reads the JSON value at s.pos as a decision; false is a syntax error at s.pos.
func (s *scanner) part(part *Part) bool {
	start := s.pos
	if s.peek() != '{' {
		if !s.value(0) {
			return false
		}
		part.Value = s.src[start:s.pos:s.pos]
		part.Err = &Refusal{Reason: WrongType}
		return true
	}
	var d draft
	if !d.scan(s) {
		return false
	}
	part.Value = s.src[start:s.pos:s.pos]
	part.Err = d.judge(s, start, &part.Log)
	return true
}

// trim cuts JSON's white space, and no other, off both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b[:len(b):len(b)]
}
