package decision

// place is the position of a walk, or the reason why it stopped there.
type place int

const (
	atValue    place = iota // before a value
	atKey                   // before a key
	afterValue              // behind a value in a container
	atEnd                   // behind the whole value
	atFault
	inText   // inside a string value
	inKey    // inside the key that begins at scanner.keyed
	atNumber // before a number
	// There is no room for the node of this place:
	fullAtValue
	fullAtKey
	fullAfterValue
)

// walk scans the object or array at s.pos and writes the members of its objects to the tape.
func (s *scanner) walk() bool {
	start := s.pos
	s.open.depth, s.open.kinds, s.open.node = 0, 0, 0
	s.tape.begin()
	for next := atValue; ; {
		stopped := s.run(next)
		if stopped == inKey {
			stopped = s.longKey()
		}
		ok := true
		switch stopped {
		case atEnd:
			return true
		case atValue:
			next = atValue
		case inText:
			ok, next = s.text(), afterValue
		case atNumber:
			ok, next = s.number(), afterValue
		case fullAtValue, fullAtKey, fullAfterValue:
			next = stopped - fullAtValue
			if s.tape.grow() { // walk the value again from its start
				s.open.depth, s.open.kinds, s.open.node = 0, 0, 0
				s.pos, s.beyond, s.expanded, s.escapes, next = start, -1, 0, false, atValue
			}
		default:
			return false
		}
		if !ok {
			return false
		}
	}
}

// longKey continues a key that run left in the middle, to behind its colon. It stops before the value, or where run
// would have stopped.
func (s *scanner) longKey() (why place) {
	if !s.text() {
		return atFault
	}
	t := &s.tape
	if s.open.depth <= t.deepest {
		if t.n == len(t.room) {
			s.pos = s.keyed - 1
			return fullAtKey
		}
		end := uint32(s.pos - 1)
		if hasEscape(s.src[s.keyed:end]) {
			end |= escaped
		}
		t.room[t.n] = node{uint32(s.keyed), end}
		t.n++
	}
	s.space()
	if s.peek() != ':' {
		return atFault
	}
	s.pos++
	return atValue
}

// containers are the open containers.
type containers struct {
	depth int
	kinds uint64 // of the innermost 64, the lowest bit for the innermost: set for an object
	outer [maxDepth/64 + 1]uint64
	node  int // of the innermost object
}

// push opens a container: kind 1 is an object, 0 an array.
func (o *containers) push(kind uint64) {
	if o.depth&63 == 0 {
		o.outer[o.depth>>6] = o.kinds
	}
	o.depth++
	o.kinds = o.kinds<<1 | kind
}

// pop closes the innermost container.
func (o *containers) pop() {
	o.kinds >>= 1
	if o.depth--; o.depth&63 == 0 {
		o.kinds = o.outer[o.depth>>6]
	}
}
