package commitnote

// Beside joins what is beside the committed offsets of groups. The zero value has seen none.
type Beside struct {
	note    Note
	unnoted bool
}

// See takes in the text beside an offset. An offset of 0 says that nothing has a home yet, so it needs no note.
func (b *Beside) See(offset int64, text string) {
	n, ok := Parse(text)
	b.note, b.unnoted = b.note.Join(n), b.unnoted || !ok && offset > 0
}

// Note returns the notes as one. Known is false if some offset has none: records before it may be in any spool.
func (b *Beside) Note() (n Note, known bool) { return b.note, !b.unnoted }
