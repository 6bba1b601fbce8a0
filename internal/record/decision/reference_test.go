package decision

import (
	"strings"
	"testing"

	"docket/sample"
)

// reference walks over JSON simply, token by token. It shares only strings and numbers with scanner.walk.
type reference struct {
	scanner
	objects [maxDepth/64 + 1]uint64
}

// value scans the JSON value at s.pos, inside depth open containers.
func (s *reference) value(depth int) bool {
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
			if s.peek() == c+2 { // in ASCII ']' and '}' are two behind their opening brackets
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
			if !s.scalar() {
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

func (s *reference) enter(depth int, object bool) {
	bit := uint64(1) << (depth % 64)
	if object {
		s.objects[depth/64] |= bit
	} else {
		s.objects[depth/64] &^= bit
	}
}

func (s *reference) inObject(depth int) bool {
	return s.objects[depth/64]>>(depth%64)&1 != 0
}

// entry scans the part before a value in a container: in an object its key.
func (s *reference) entry(object bool) bool {
	if !object {
		return true
	}
	_, ok := s.key()
	return ok
}

// next continues behind a value in a container. If more is true, a comma follows, and s.pos is at the next entry.
// Otherwise the container ended, and s.pos is behind its bracket.
func (s *reference) next(object bool) (more, ok bool) {
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

// key scans an object's key and the colon behind it. The span is the part between the quotes.
func (s *reference) key() (span, bool) {
	if s.peek() != '"' {
		return span{}, false
	}
	start := s.pos + 1
	s.pos++
	if !s.text() {
		return span{}, false
	}
	key := span{uint32(start), uint32(s.pos - 1)}
	s.space()
	if s.peek() != ':' {
		return span{}, false
	}
	s.pos++
	s.space()
	return key, true
}

// FuzzWalk: the walk ends where the simple one ends, also at a fault, and finds the same values out of Postgres's
// range.
func FuzzWalk(f *testing.F) {
	for i, line := range sample.DecisionLogs() {
		if i%100 == 0 && len(line) < 3000 {
			f.Add(line)
		}
	}
	for _, value := range []string{
		"{}", "[]", "{ }", "[ ", "{\"a\"", `{"a":1,}`, `[1,2]]`, `{"a" :1 , "b": [ true,false , null ] }`, `{"a":"\u0000","b":1e-20000}`,
		`{"a":[{"b":{}},"12345678","1234567\"",1234567,12345678,-1,0.5,01]}`, `{"a":1]`, `[{"a":1},{"a":{"b":{"c":[]}}}]`, "{\"\xc3\xa9\":\"\xff\"}",
	} {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		for start, c := range value {
			if c == '{' || c == '[' {
				sameWalk(t, value, start)
				return
			}
		}
	})
}

// If the tape is full at any place, with few nodes or many, the walk continues there.
func TestTape_FullAtAnyPlace(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"k":1`, `"é":1`, `"\u0062":"\u0000"`, `"a\\":{"b":1}`, `"k":{"é":1}`, `"é":{"k":{}}`, `"k":[{"é":{"k":1}}]`, `"é":1e-20000,"é":]`,
	} {
		for _, most := range []int{mostFew, 2 * mostFew, 4 * mostFew} {
			for n := most - 8; n <= most; n++ {
				many := "{" + strings.Repeat(`"m":0,`, n)
				sameWalk(t, []byte(many+member+"}"), 0)
				sameWalk(t, []byte(`{"x":`+many+member+`},"é":1}`), 0)
				sameWalk(t, []byte(`{"x":[`+strings.Repeat(`{"m":0},`, n/3)+`{`+member+`}]}`), 0)
			}
		}
	}
}

func sameWalk(t *testing.T, value []byte, start int) {
	t.Helper()
	var got scanner
	var want reference
	got.src, got.pos, got.beyond = value, start, -1
	want.src, want.pos, want.beyond = value, start, -1
	if ok := got.walk(); ok != want.value(0) || got.pos != want.pos || ok && got.beyond != want.beyond {
		t.Fatalf("%q: the walk says %v at %d, beyond range at %d; the plain one ends at %d, beyond range at %d",
			value, ok, got.pos, got.beyond, want.pos, want.beyond)
	}
}
