package decision

import "encoding/binary"

// shape has the facts that depend only on the keys of a decision: which keys are known fields, and their order in
// jsonb. The decisions of one policy have the same keys in the same places, so these facts are computed once.
type shape struct {
	marks  []uint32 // of each node on the tape, see mark
	words  []uint64 // of each key, eight bytes each
	fields []fieldAt
	jumps  []jump
	hash   uint32 // of the last shape that did not fit
	trust  int    // misses that are left before another shape takes the place
}

const (
	mostShapes = 32
	mostMarks  = 256  // nodes of a shape that is kept
	mostWords  = 1024 // and its words, because keys can be as long as a record
	mostTrust  = 8
)

// mark identifies a node within shapes: the length of a key, the end of an object, or a closing brace. A kept shape
// has no mark of an escaped key.
func (n node) mark() uint32 {
	if n.end > closed && n.end < opened {
		return opened | escaped | (n.end - n.at)
	}
	return n.end
}

// shapeHash hashes a few marks.
func shapeHash(nodes []node) uint32 {
	n := len(nodes)
	h := uint32(n)
	for _, i := range [...]int{1, n / 4, n / 2, n - n/4 - 1, n - 2} {
		h = h*31 + nodes[i].mark()
	}
	return h * 0x9e3779b1
}

// fits reports whether a decision has exactly the keys of the shape.
func (sh *shape) fits(src []byte, nodes []node) bool {
	if len(nodes) != len(sh.marks) {
		return false
	}
	words := sh.words
	for i, want := range sh.marks {
		n := nodes[i]
		if n.mark() != want {
			return false
		}
		if want < opened|escaped {
			continue
		}
		at, length := int(n.at), int(want&^(opened|escaped))
		for ; length > 0; length -= 8 {
			if len(words) == 0 || wordAt(src, at, length) != words[0] {
				return false
			}
			words = words[1:]
			at += 8
		}
	}
	return true
}

// wordAt returns the next eight bytes of a key. The last ones are shifted up, to drop the bytes that follow the key.
func wordAt(src []byte, at, length int) uint64 {
	if at > len(src)-8 {
		var last [8]byte
		copy(last[:], src[at:])
		return binary.LittleEndian.Uint64(last[:]) << (64 - 8*uint(min(length, 8)))
	}
	w := binary.LittleEndian.Uint64(src[at:])
	if length < 8 {
		w <<= 64 - 8*uint(length)
	}
	return w
}

// shapes are the shapes that were seen last.
type shapes struct {
	kept [mostShapes]shape
}

// find returns the shape of a decision. If there is none, learn is the place for a new one, or nil if it is not worth
// it.
func (s *shapes) find(src []byte, nodes []node) (known, learn *shape) {
	if len(nodes) > mostMarks {
		return nil, nil
	}
	hash := shapeHash(nodes)
	sh := &s.kept[hash>>27]
	if sh.fits(src, nodes) {
		sh.trust = mostTrust
		return sh, nil
	}
	again := sh.hash == hash
	sh.hash = hash
	if sh.trust > 0 {
		sh.trust--
		return nil, nil
	}
	if !again {
		return nil, nil
	}
	return nil, sh
}

// learn makes the shape that of a decision, if it is worth keeping. Its top-level names are all different, because
// the decision was accepted.
func (sh *shape) learn(src []byte, nodes []node, fields []fieldAt, jumps []jump) {
	sh.marks, sh.words = sh.marks[:0], sh.words[:0]
	sh.fields, sh.jumps = append(sh.fields[:0], fields...), append(sh.jumps[:0], jumps...)
	for _, n := range nodes {
		m := n.mark()
		at, length := int(n.at), 0
		if m >= opened|escaped {
			length = int(m &^ (opened | escaped))
		}
		if n.isEscaped() || len(sh.words)+(length+7)/8 > mostWords {
			sh.marks = sh.marks[:0] // fits nothing
			return
		}
		sh.marks = append(sh.marks, m)
		for ; length > 0; length -= 8 {
			sh.words = append(sh.words, wordAt(src, at, length))
			at += 8
		}
	}
	sh.trust = mostTrust
}
