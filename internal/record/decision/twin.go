package decision

import (
	"bytes"
	"crypto/sha256"
	"strconv"
	"unsafe"
)

// Unfaithful is the original of a decision that Postgres cannot hold as written. Its Log is that of a storable twin.
type Unfaithful struct {
	// Bytes are the decision's exact bytes, without the white space around it.
	Bytes []byte
	// Pointers are the places in the twin that differ, as JSON pointers (RFC 6901), in order. They are at most
	// [MostPointers], of mostPointed bytes together. If more places differ, the last pointer is empty, which means
	// the whole decision.
	Pointers []string
}

// MostPointers limits the named places of a decision.
const MostPointers = 100

const (
	mostPointed  = 16 << 10
	leastNumbers = 64 << 10
)

// mostNumbers limits the text of all numbers of a decision of this many bytes: 1e30000 has 7 bytes as written, and
// 30,001 when Postgres prints it.
func mostNumbers(bytes int) int64 { return max(leastNumbers, 4*int64(bytes)) }

// holds reports whether Postgres can hold the scanned decision. false may be wrong: then the twin is the same.
func (s *scanner) holds(value []byte) bool {
	return s.beyond < 0 && (s.expanded == 0 || s.expanded+int64(len(value)) <= mostNumbers(len(value)))
}

// Holds reports whether jsonb can hold a decision as written, without a limit on the text of its numbers. For
// anything but a JSON object the result means nothing.
func Holds(value []byte) bool {
	s := scanner{src: value}
	if s.space(); s.peek() != '{' || !s.draft.scan(&s) || s.beyond < 0 {
		return true
	}
	t := newTwinWriter(value)
	t.run()
	return !t.lost
}

// twin fills the log from the twin of a decision. Different names can be equal in the twin. Then the last counts, as
// in jsonb.
func (l *Log) twin(value []byte) {
	twin, pointers := twinOf(value)
	if l.Raw = value; pointers != nil {
		l.Raw, l.Unfaithful = twin, &Unfaithful{value, pointers}
	}
	s := scanner{src: l.Raw}
	s.draft.scan(&s)
	s.draft.fill(&s, l)
}

// Came returns the decision's exact bytes, without the white space around it.
func (l *Log) Came() []byte {
	if l.Unfaithful != nil {
		return l.Unfaithful.Bytes
	}
	return l.Raw
}

// Sum returns the SHA-256 of the bytes that [Log.Came] returns. It changes nothing, so that writers may share a log.
// After [Log.KeepSum] it computes nothing.
func (l *Log) Sum() [sha256.Size]byte {
	came := l.Came()
	if at := unsafe.SliceData(came); l.sumOf != nil && l.sumOf == at {
		return l.sum
	}
	return sha256.Sum256(came)
}

// KeepSum computes the hash for [Log.Sum] and keeps it, because a batch with bad rows is sent many times. The caller
// must be the only user of the log.
func (l *Log) KeepSum() {
	came := l.Came()
	l.sum, l.sumOf = sha256.Sum256(came), unsafe.SliceData(came)
}

// twinWriter makes the twin of one decision. It follows the bytes, which are JSON, from the start to the end.
type twinWriter struct {
	src      []byte
	pos      int
	scanner  scanner // for numbers
	out      []byte
	numbers  int64 // printed bytes of the numbers so far
	path     []step
	inKey    bool // the next string is a key
	pointers []string
	pointed  int  // bytes of pointers
	more     bool // more places than pointers
	lost     bool // jsonb cannot hold the decision
}

// step is an open container.
type step struct {
	object bool
	key    []byte // of the member, as in the twin between its quotes
	index  int    // of the element
}

// twinOf returns JSON that Postgres can hold and that differs only at the pointers. U+0000 and lone surrogates become
// U+FFFD. Numbers that numeric does not hold become strings. When the text of the numbers exceeds mostNumbers, all
// further numbers become strings. Without pointers nothing differs.
func twinOf(value []byte) (twin []byte, pointers []string) {
	t := newTwinWriter(value)
	t.run()
	return t.out, t.pointers
}

func newTwinWriter(value []byte) *twinWriter {
	return &twinWriter{src: value, out: make([]byte, 0, len(value)+64), scanner: scanner{src: value}}
}

func (t *twinWriter) run() {
	for t.pos < len(t.src) {
		switch c := t.src[t.pos]; c {
		case '{', '[':
			t.path, t.inKey = append(t.path, step{object: c == '{'}), c == '{'
			t.copy(1)
		case '}', ']':
			t.path, t.inKey = t.path[:len(t.path)-1], false
			t.copy(1)
		case ',':
			in := &t.path[len(t.path)-1]
			in.index++
			t.inKey = in.object
			t.copy(1)
		case ':':
			t.inKey = false
			t.copy(1)
		case '"':
			t.text()
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			t.number()
		default:
			t.copy(1)
		}
	}
	if t.more {
		t.pointers = append(t.pointers, "")
	}
}

func (t *twinWriter) copy(n int) {
	t.out = append(t.out, t.src[t.pos:t.pos+n]...)
	t.pos += n
}

// text copies a string.
func (t *twinWriter) text() {
	end := t.pos + 1
	for t.src[end] != '"' {
		if t.src[end] == '\\' {
			end++
		}
		end++
	}
	from := len(t.out) + 1
	t.out = append(t.out, '"')
	var altered bool
	t.out, altered = appendStorable(t.out, t.src[t.pos+1:end])
	if t.inKey {
		t.path[len(t.path)-1].key = t.out[from:len(t.out):len(t.out)]
	}
	t.out = append(t.out, '"')
	t.pos = end + 1
	if altered {
		t.lost = true
		t.point()
	}
}

// isStorable reports whether Postgres text can have the inside of this string.
func isStorable(raw []byte) bool {
	if !hasEscape(raw) {
		return true
	}
	_, altered := appendStorable(make([]byte, 0, len(raw)), raw)
	return !altered
}

// appendStorable appends the inside of a string, with U+FFFD for characters that Postgres text cannot have. It
// reports whether there were any.
func appendStorable(dst, raw []byte) (_ []byte, altered bool) {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...), altered
		}
		size := 2
		unit, isUnit := hexUnit(raw[i:])
		if isUnit {
			size = 6
		}
		if isUnit && isHigh(unit) {
			if low, paired := hexUnit(raw[i+6:]); paired && isLow(low) {
				size = 12
			}
		}
		if isUnit && size == 6 && (unit == 0 || isHigh(unit) || isLow(unit)) {
			dst, altered = append(append(dst, raw[:i]...), `\ufffd`...), true
		} else {
			dst = append(dst, raw[:i+size]...)
		}
		raw = raw[i+size:]
	}
}

// number copies a number.
func (t *twinWriter) number() {
	s := &t.scanner
	s.pos, s.beyond, s.expanded = t.pos, -1, 0
	s.number()
	literal := t.src[t.pos:s.pos]
	if s.beyond < 0 {
		t.numbers += max(s.expanded, int64(len(literal)))
	}
	if s.beyond < 0 && t.numbers <= mostNumbers(len(t.src)) {
		t.copy(len(literal))
		return
	}
	t.lost = t.lost || s.beyond >= 0
	t.out = append(append(append(t.out, '"'), literal...), '"')
	t.pos = s.pos
	t.point()
}

// point notes the present place as different: the member or element, or the key of the member.
func (t *twinWriter) point() {
	if t.more || len(t.pointers) == MostPointers {
		t.more = true
		return
	}
	size := 0
	for _, at := range t.path {
		size += 1 + len(at.key)
	}
	if t.pointed+size > mostPointed {
		t.more = true
		return
	}
	pointer := make([]byte, 0, size)
	for _, at := range t.path {
		pointer = append(pointer, '/')
		if !at.object {
			pointer = strconv.AppendInt(pointer, int64(at.index), 10)
			continue
		}
		for _, c := range appendText(nil, at.key) {
			switch c {
			case '~':
				pointer = append(pointer, "~0"...)
			case '/':
				pointer = append(pointer, "~1"...)
			default:
				pointer = append(pointer, c)
			}
		}
	}
	if n := len(t.pointers); n > 0 && t.pointers[n-1] == string(pointer) {
		return // the key differs, and the value
	}
	t.pointers, t.pointed = append(t.pointers, string(pointer)), t.pointed+len(pointer)
}
