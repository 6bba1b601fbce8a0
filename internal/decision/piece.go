package decision

// Piece is a stretch of [Log.Raw]; it is made for records of less than 32 KiB alone.
type Piece struct {
	from, to uint16 // the highest bit of from: a comma stands before it
}

const commaBefore = 1 << 15

// Of gives the stretch, and whether a comma has to be written before it.
func (p Piece) Of(raw []byte) (stretch []byte, comma bool) {
	return raw[p.from&^commaBefore : p.to], p.from&commaBefore != 0
}
