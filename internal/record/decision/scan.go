package decision

// maxDepth limits the open containers, the decision's own braces included. With its default max_stack_depth of 2MB,
// Postgres 15 reads jsonb about 13,000 deep.
const maxDepth = 10_000

// span is a stretch of scanner.src.
type span struct{ start, end uint32 }

// scanner walks over JSON (RFC 8259) without recursion. Its methods return false on a syntax error and leave pos at
// the fault.
type scanner struct {
	src []byte
	pos int
	// beyond is the place of the first input that is JSON but that Postgres refuses, or -1. It is reset for each
	// decision.
	beyond int
	// expanded is the printed length of the decision's numbers with exponents that Postgres holds.
	expanded int64
	// escapes says that some string of the decision has escapes.
	escapes  bool
	tape     tape            // of the last walked value
	open     containers      // of the walk
	keyed    int             // start of the key in which a walk stopped
	inflated int             // see Record
	draft    draft           // of the decision being read
	ranks    [mostFew]uint64 // see order
	slab     slab            // the pieces of all parts
	shapes   shapes
	jumps    []jump // of the decision being read, if its shape is not known
	from     int    // index of the first decision that is asked for
	upTo     int    // and one past the last
	parts    []Part // all valid parts that were returned, with room for more
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (s *scanner) atEnd() bool { return s.pos == len(s.src) }

// peek returns the next byte, and zero at the end. JSON has no zero bytes.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func (s *scanner) space() { s.pos = spaces(s.src, s.pos) }

// spaces returns the end of the white space at pos.
func spaces(src []byte, pos int) int {
	for pos < len(src) && isSpace(src[pos]) {
		pos++
	}
	return pos
}

// ends reports whether only white space follows.
func (s *scanner) ends() bool {
	s.space()
	return s.atEnd()
}

// mark remembers the first input that Postgres would refuse.
func (s *scanner) mark(at int) {
	if s.beyond < 0 {
		s.beyond = at
	}
}

// Each constant repeats one value in eight bytes.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special sets the highest bit of each byte that is not plain ASCII in a string: a quote, a backslash, a control
// character or a byte above 0x7f. Flipping bit 1 puts the quote right above the control characters. A subtraction
// borrows from the byte above only if the byte below is special, so the lowest set bit is always right.
func special(w uint64) uint64 {
	return (w | ((w ^ 0x02*ones) - 0x21*ones) | ((w ^ '\\'*ones) - ones)) & highs
}

// nonDigits sets the highest bit of each byte that is not a digit. The bits are right up to the first such byte.
func nonDigits(w uint64) uint64 {
	w ^= '0' * ones
	return (w | (w + 0x76*ones)) & highs
}
