package decision

// NewPiece is the stretch of [Log.Raw] between two places, of which to is less than 32 KiB; comma says that one has to be
// written before it.
func NewPiece(from, to int, comma bool) Piece {
	p := Piece{from: uint16(from), to: uint16(to)}
	if comma {
		p.from |= commaBefore
	}
	return p
}
