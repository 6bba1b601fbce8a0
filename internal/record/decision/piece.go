package decision

// Piece is a stretch of [Log.Raw]. Only records of less than 32 KiB have pieces.
type Piece uint32 // the lower half where it starts, the upper half where it ends

const (
	commaBefore = 1 << 15 // the highest bit of either half is free
	mostRaw     = 1<<15 - 1
)

// NewPiece makes the stretch between two places of a Raw of less than 32 KiB. comma says that a comma is written
// before it.
func NewPiece(from, to int, comma bool) Piece {
	p := Piece(from | to<<16)
	if comma {
		p |= commaBefore
	}
	return p
}

// Of returns the stretch, and whether a comma is written before it.
func (p Piece) Of(raw []byte) (stretch []byte, comma bool) {
	return raw[p&mostRaw : p>>16], p&commaBefore != 0
}

// mostPieces is the number of pieces that a Decoder keeps memory for between two calls of Begin: 32 for each of
// mostKept parts.
const mostPieces = 32 * mostKept

// slab is memory for pieces.
type slab struct {
	pieces []Piece
	before int // number of pieces of earlier records
}

// begin takes back all pieces.
func (s *slab) begin() {
	s.pieces = s.pieces[:0]
	if cap(s.pieces) > mostPieces {
		s.pieces = nil
	}
}

// room makes room for n more. If it takes new memory, older pieces do not move.
func (s *slab) room(n int) {
	if cap(s.pieces)-len(s.pieces) < n {
		s.pieces, s.before = make([]Piece, 0, max(n, min(2*cap(s.pieces), mostPieces), 1024)), 0
	}
}
