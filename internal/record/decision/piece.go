package decision

// Piece is a stretch of [Log.Raw]; it is made for records of less than 32 KiB alone.
type Piece uint32 // the lower half where it starts, the upper half where it ends

const (
	commaBefore = 1 << 15 // the highest bit of either half is free
	mostRaw     = 1<<15 - 1
)

// NewPiece is the stretch from one byte of a Raw of less than 32 KiB up to another. Comma: one has to be written before it.
func NewPiece(from, to int, comma bool) Piece {
	p := Piece(from | to<<16)
	if comma {
		p |= commaBefore
	}
	return p
}

// Of gives the stretch, and whether a comma has to be written before it.
func (p Piece) Of(raw []byte) (stretch []byte, comma bool) {
	return raw[p&mostRaw : p>>16], p&commaBefore != 0
}

// mostPieces is how many pieces a Decoder keeps memory for from one Begin to the next: 32 for each of mostKept parts.
const mostPieces = 32 * mostKept

// slab is memory for pieces.
type slab struct {
	pieces []Piece
	before int // how many are older than the record that is being read
}

// begin takes back all pieces.
func (s *slab) begin() {
	s.pieces = s.pieces[:0]
	if cap(s.pieces) > mostPieces {
		s.pieces = nil
	}
}

// room makes room for n more. Where it takes new memory the older pieces stay where they are.
func (s *slab) room(n int) {
	if cap(s.pieces)-len(s.pieces) < n {
		s.pieces, s.before = make([]Piece, 0, max(n, min(2*cap(s.pieces), mostPieces), 1024)), 0
	}
}
