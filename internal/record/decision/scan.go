package decision

// maxDepth is how many containers may be open at once, the decision's own braces included.
// With its default max_stack_depth of 2MB, Postgres 15 reads jsonb some 13,000 deep.
const maxDepth = 10_000

// span is a stretch of scanner.src.
type span struct{ start, end uint32 }

// scanner walks over JSON as RFC 8259 has it, without recursion. Its methods return false on a syntax error and leave
// pos at the fault.
type scanner struct {
	src []byte
	pos int
	// beyond is where the first thing stands that is JSON but not for Postgres, or -1. Whoever starts a decision
	// resets it.
	beyond int
	// expanded is how many bytes the numbers with exponents take since then that Postgres holds, once it prints them.
	expanded int64
	// escapes says that some string since then has escapes.
	escapes  bool
	tape     tape            // of the value that was walked over last
	open     containers      // of the walk
	keyed    int             // where the key begins in which a walk stopped
	inflated int             // see Record
	draft    draft           // of the decision that is being read
	ranks    [mostFew]uint64 // see order
	slab     slab            // of the pieces of all parts
	shapes   shapes
	jumps    []jump // of the decision that is being read, where its shape is not known
	from     int    // index of the first decision that is asked for
	upTo     int    // and the one behind the last
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

func (s *scanner) space() { s.pos = spaces(s.src, s.pos) }

// spaces returns where the white space at pos ends.
func spaces(src []byte, pos int) int {
	for pos < len(src) && isSpace(src[pos]) {
		pos++
	}
	return pos
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

// Eight bytes at a time: each byte of these has the one value.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special has the highest bit of each byte set that is not ASCII standing for itself in a string: a quote, a backslash,
// a control character or a byte above 0x7f. Flipping bit 1 puts the quote right above the control characters. A
// subtraction borrows from the byte above only where the byte below is special already, so the lowest bit that is set
// is always a true one.
func special(w uint64) uint64 {
	return (w | ((w ^ 0x02*ones) - 0x21*ones) | ((w ^ '\\'*ones) - ones)) & highs
}

// nonDigits has, up to the first byte that is no digit and there included, the highest bit of each byte set that is none.
func nonDigits(w uint64) uint64 {
	w ^= '0' * ones
	return (w | (w + 0x76*ones)) & highs
}
