package decision

import (
	"bytes"
	"time"
)

// MaxDecisions limits the decisions of one Kafka record. A small array of millions of empty elements would take
// gigabytes when every element has its own home. No upload of OPA comes near the limit.
const MaxDecisions = 100_000

// Decode reads the decisions of a Kafka record's value. It reads at most maxBytes inflated bytes, and always less
// than 1 GiB. A Refusal is about the whole record; the fault of one decision is that Part's Err.
//
// Unless value is gzip, the result shares its memory, so value must not be written to afterwards. Each Part takes a
// few hundred bytes more. So an array of single digits grows to about three hundred times its size while it is read.
func Decode(value []byte, maxBytes int64) (Record, *Refusal) {
	var d Decoder
	return d.Decode(value, maxBytes)
}

// Decoder decodes one record after another into memory that it keeps. The zero value is ready. It is for one
// goroutine.
type Decoder struct{ scanner scanner }

// mostKept is the number of parts that a Decoder keeps memory for between two calls of Begin.
const mostKept = 16 << 10

// Begin makes room for about n decisions, in the memory of earlier ones. It zeroes every Part returned so far with
// its Log, so these must not be in use, and neither must the Pieces of their copies. Their bytes and strings stay
// valid in copies.
func (d *Decoder) Begin(n int) {
	s := &d.scanner
	clear(s.parts)
	if s.parts = s.parts[:0]; cap(s.parts) < n || cap(s.parts) > max(n, mostKept) {
		s.parts = make([]Part, 0, n)
	}
	s.slab.begin()
	s.src, s.draft.others.many = nil, nil
	s.tape.forget()
}

// Room is how many decisions there is memory for.
func (d *Decoder) Room() int { return cap(d.scanner.parts) }

// Decode is the function [Decode]. Its result is valid until the next [Decoder.Begin].
func (d *Decoder) Decode(value []byte, maxBytes int64) (Record, *Refusal) {
	return d.DecodeSome(value, maxBytes, 0, MaxDecisions)
}

// DecodeSome is Decode for at most most decisions, at least 1, from an index on that is less than the Record's Count.
// It reads the whole value each time. The first call, from 0 on, refuses as Decode does. Later calls refuse nothing.
// For gzip they are given the Plain of the first call, so that it need not be inflated again.
func (d *Decoder) DecodeSome(value []byte, maxBytes int64, from, most int) (Record, *Refusal) {
	s, inflated := &d.scanner, 0
	s.from, s.upTo = from, from+most
	if IsGzip(value) {
		plain, refusal := gunzip(value, min(maxBytes, mostBytes))
		if refusal != nil {
			return Record{}, refusal
		}
		value, inflated = plain, cap(plain)
	} else if int64(len(value)) > min(maxBytes, mostBytes) {
		return Record{}, &Refusal{Reason: TooLarge}
	}

	s.src, s.pos, s.inflated, s.slab.before = value, 0, inflated, len(s.slab.pieces)
	s.space()
	if s.atEnd() {
		return Record{}, &Refusal{Reason: Empty}
	}
	if s.peek() == '[' {
		record, refusal := s.array()
		if refusal != nil && s.lineOfBracket() {
			return s.lines()
		}
		return record, refusal
	}
	parts := s.room()
	if cap(parts) > 0 {
		parts = parts[:1] // zero, like all of the room
	} else {
		parts = append(parts, Part{})
	}
	if s.document(&parts[0]) {
		return s.record(parts, 1), nil
	}
	fault := s.pos
	if !s.hasObjectLine(false) {
		return s.refuse(parts, Refusal{Reason: Syntax, Offset: fault})
	}
	return s.lines()
}

// room returns an empty slice for the parts of the next record.
func (s *scanner) room() []Part { return s.parts[len(s.parts):] }

// record keeps the parts of a record that was read to its end.
func (s *scanner) record(parts []Part, count int) Record {
	n := len(parts)
	if cap(parts) == cap(s.parts)-len(s.parts) {
		s.parts = s.parts[:len(s.parts)+n]
	} else {
		s.parts = parts // there was no room left; older parts do not move
	}
	return Record{Parts: parts[:n:n], Count: count, Sole: count == 1, Plain: s.src, Inflated: s.inflated}
}

// refuse gives the room back and clears it. No part may keep the bytes of a refused record in memory, because they
// are not counted.
func (s *scanner) refuse(parts []Part, r Refusal) (Record, *Refusal) {
	room := s.parts[len(s.parts):cap(s.parts)]
	clear(room[:min(len(parts), len(room))])
	s.slab.pieces = s.slab.pieces[:s.slab.before]
	return Record{}, &r
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
	parts, n := s.room(), 0
	for more := true; more; n++ {
		var ok bool
		if s.wanted(n) {
			parts = append(parts, Part{Index: n})
			ok = s.part(&parts[len(parts)-1])
		} else {
			ok = s.glance(n)
		}
		if ok {
			more, ok = s.next()
		}
		switch {
		case !ok:
			return s.refuse(parts, Refusal{Reason: Syntax, Offset: s.pos})
		case more && n == MaxDecisions-1:
			return s.refuse(parts, Refusal{Reason: TooLarge, Offset: s.pos})
		}
	}
	if !s.ends() {
		return s.refuse(parts, Refusal{Reason: Syntax, Offset: s.pos})
	}
	return s.record(parts, n), nil
}

// wanted reports whether the decision at index n is asked for.
func (s *scanner) wanted(n int) bool { return n >= s.from && n < s.upTo }

// glance reads the decision at s.pos like part and keeps nothing of it. false is a syntax error at s.pos. Decisions
// before those that are asked for were read in an earlier call, so it only passes over them.
func (s *scanner) glance(n int) bool {
	start := s.pos
	if n < s.from || s.peek() != '{' {
		return s.skip()
	}
	if !s.draft.scan(s) {
		return false
	}
	if _, refusal := s.draft.judge(s, start); refusal == nil {
		s.order()
	}
	return true
}

// skip passes over the JSON value at s.pos; false is a syntax error at s.pos.
func (s *scanner) skip() bool {
	if c := s.peek(); c == '{' || c == '[' {
		return s.walk()
	}
	return s.scalar()
}

// next continues behind an element of the record's array. If more is true, a comma follows, and s.pos is at the start
// of the next element. Otherwise the array ended, and s.pos is behind its bracket.
func (s *scanner) next() (more, ok bool) {
	s.space()
	c := s.peek()
	if c != ',' && c != ']' {
		return false, false
	}
	s.pos++
	if c == ',' {
		s.space()
	}
	return c == ',', true
}

// lines reads each line of the value that is not blank as a decision.
func (s *scanner) lines() (Record, *Refusal) {
	value := s.src
	parts, n := s.room(), -1
	for line := range bytes.Lines(value) {
		line = trim(line)
		if len(line) == 0 {
			continue
		}
		if n++; n == MaxDecisions {
			return s.refuse(parts, Refusal{Reason: TooLarge})
		}
		s.src, s.pos = line, 0
		if !s.wanted(n) {
			s.glance(n) // a line that is not JSON refuses only itself
			continue
		}
		parts = append(parts, Part{Index: n, Value: line})
		part := &parts[len(parts)-1]
		if !s.document(part) {
			// Forward the whole line: bytes behind a complete object in it have no other home.
			part.Value, part.Log, part.Err = line, Log{}, &Refusal{Reason: Syntax, Offset: s.pos}
		}
	}
	s.src = value
	return s.record(parts, n+1), nil
}

// hasObjectLine reports whether any line is a complete JSON object: from its first column on, or indented and with a
// decision_id. Other indented objects are probably inside a torn one. If apart is set, lines inside an array do not
// count.
func (s *scanner) hasObjectLine(apart bool) bool {
	value, end := s.src, 0
	defer func() { s.src = value }()
	for line := range bytes.Lines(value) {
		start := end
		end += len(line)
		text := trim(line)
		if len(text) == 0 || text[0] != '{' || len(line) == len(value) || apart && inArray(value[:start], value[end:]) {
			continue
		}
		s.src, s.pos = text, 0
		if s.draft.scan(s) && s.ends() && (line[0] == '{' || s.draft.seen>>fieldID&1 != 0) {
			return true
		}
	}
	return false
}

// document reads all of s.src from s.pos on as one decision; false is a syntax error at s.pos.
func (s *scanner) document(part *Part) bool {
	return s.part(part) && s.ends()
}

// part reads the JSON value at s.pos as a decision; false is a syntax error at s.pos.
func (s *scanner) part(part *Part) bool {
	start := s.pos
	if s.peek() != '{' {
		if !s.skip() {
			return false
		}
		part.Value = s.src[start:s.pos:s.pos]
		part.Err = &Refusal{Reason: WrongType}
		return true
	}
	d := &s.draft
	if !d.scan(s) {
		return false
	}
	part.Value = s.src[start:s.pos:s.pos]
	var at time.Time
	if at, part.Err = d.judge(s, start); part.Err != nil {
		return true
	}
	part.Log.Time = at
	if s.holds(part.Value) {
		d.fill(s, &part.Log)
		part.Log.Raw = part.Value
		part.Log.Pieces = s.ordered(start, s.order())
		return true
	}
	part.Log.twin(part.Value)
	return true
}

// trim cuts JSON's white space, and no other, from both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b[:len(b):len(b)]
}
