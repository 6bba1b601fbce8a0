package columnar

import (
	"bytes"
	"encoding/binary"

	"github.com/parquet-go/parquet-go"

	"docket/internal/record/decision"
)

// Most lines come back out of their values, which can be told while they are taken apart. Making such a line again to compare it
// would take a third of the time of taking it apart. Any other line is made again, and kept where it differs.

// framed reports whether the cells stand in the line as a builder puts them there.
func (w *Writer) framed(line []byte) bool {
	at := 0
	for i, cell := range w.cells {
		if cell == nil {
			continue
		}
		between, label := byte(','), w.layout.columns[i].label
		if at == 0 {
			between = '{'
		}
		if line[at] != between || !bytes.HasPrefix(line[at+1:], label) {
			return false
		}
		at += 1 + len(label)
		if at >= len(line) || &line[at] != &cell[0] {
			return false
		}
		at += len(cell)
	}
	return at == len(line)-1 && line[at] == '}'
}

// same reports whether a builder makes a cell of its value.
func (w *Writer) same(i int, v parquet.Value) bool {
	cell := w.cells[i]
	if cell == nil || v.IsNull() {
		return cell == nil && v.IsNull()
	}
	switch w.layout.columns[i].kind {
	case asJSON:
		return true
	case asText:
		return isPlain(cell[1 : len(cell)-1])
	}
	w.scratch = w.builder.cell(w.scratch[:0], i, v)
	return bytes.Equal(w.scratch, cell)
}

// isPlain reports whether a text has no character that a JSON string escapes.
func isPlain(text []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for len(text) >= 8 {
		word := binary.LittleEndian.Uint64(text)
		quote, slash := word^'"'*ones, word^'\\'*ones
		// A byte below the space borrows. One above 127 has its highest bit, and is none of them.
		if ((word-' '*ones)&^word|(quote-ones)&^quote|(slash-ones)&^slash)&highs != 0 {
			return false
		}
		text = text[8:]
	}
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// form tells whether a payload comes back out of its parts: members that stay, and members that columns have.
type form struct {
	raw   []byte
	name  []byte // of the member before
	end   int    // of the member before; 0: there is none
	other bool   // it has another form than a builder gives it
}

// member looks at the next member. left: a column has it.
func (f *form) member(in *decision.Inside, member int, left bool) {
	if f.other {
		return
	}
	name := f.raw[in.Start+1 : max(bytes.LastIndexByte(f.raw[:in.Value], '"'), in.Start+1)]
	switch {
	case f.end == 0:
		f.other = in.Start != 1
	case in.Start != f.end+2 || f.raw[f.end] != ',' || f.raw[f.end+1] != ' ':
		f.other = true
	}
	f.other = f.other || f.end > 0 && !before(f.name, name) ||
		left && (string(name) != repeated[member].member || string(f.raw[in.Start+1+len(name):in.Value]) != `": `)
	f.name, f.end = name, in.End
}

// ended reports whether the payload comes back, after its last member.
func (f *form) ended(in *decision.Inside) bool {
	return !f.other && !in.Torn() && f.end == len(f.raw)-1 && in.Behind() == len(f.raw) && f.raw[0] == '{'
}
