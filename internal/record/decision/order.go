package decision

import (
	"bytes"
	"encoding/binary"
)

const (
	// mostMembers limits the members of an object that is sorted.
	mostMembers = 64
	// deepestSorted limits the depth of sorted objects, the decision counted. Deeper ones stay as they are.
	deepestSorted = 16
)

// order computes the pieces of one decision: its bytes with the members of objects in jsonb's order. That is by the
// length of their keys, then by the bytes of the keys. It follows the text from its start. At a member out of order
// it ends a piece and jumps.
type order struct {
	src    []byte
	nodes  []node
	jumps  []jump
	ranks  *[mostFew]uint64 // of the members of the objects being sorted, the outer ones first
	ranked int
}

// jump leads from the end of a member to the start of another.
type jump struct {
	kind      jumpKind
	end, next uint16 // the node behind the member that ends, and the node to continue at
}

type jumpKind uint16

const (
	toFirst jumpKind = iota // from behind an object's opening brace
	toNext                  // with a comma between
	toBrace                 // to the closing brace of the object
)

// ordered returns the pieces of the decision on the tape, nil if it needs none.
func (s *scanner) ordered(start int, jumps []jump) []Piece {
	if len(jumps) == 0 || s.pos-start > mostRaw {
		return nil
	}
	s.slab.room(len(jumps) + 1)
	first := len(s.slab.pieces)
	pieces := s.slab.pieces[first : first+len(jumps)+1]
	s.slab.pieces = s.slab.pieces[:first+len(pieces)]
	nodes, src, base := s.tape.nodes, s.src, uint32(start)
	from := uint32(0)
	for i, j := range jumps {
		next := nodes[j.next].at - base
		end := nodes[j.end].at - 1
		if j.kind != toFirst {
			end = memberEnd(src, nodes[j.end])
		}
		pieces[i] = Piece(from | (end-base)<<16)
		switch j.kind {
		case toFirst:
			from = next - 1
		case toNext:
			from = next - 1 | commaBefore
		case toBrace:
			from = next
		}
	}
	pieces[len(jumps)] = Piece(from | (uint32(s.pos)-base)<<16)
	return pieces[:len(pieces):len(pieces)]
}

// order returns the jumps of the decision that was read last. If its shape is worth it, they are computed only once.
func (s *scanner) order() []jump {
	d := &s.draft
	if d.known != nil {
		return d.known.jumps
	}
	s.jumps = s.sortJumps(s.jumps[:0])
	if d.fresh != nil {
		d.fresh.learn(s.src, s.tape.nodes, d.found[:d.count], s.jumps)
	}
	return s.jumps
}

// sortJumps returns the jumps that sort the decision on the tape. There are none if it is in order, or not worth the
// work.
func (s *scanner) sortJumps(jumps []jump) []jump {
	nodes := s.tape.nodes
	if len(nodes) == 0 || len(nodes) > mostFew {
		return nil
	}
	o := order{src: s.src, nodes: nodes, jumps: jumps, ranks: &s.ranks}
	o.object(0, 1)
	return o.jumps
}

func (o *order) jump(kind jumpKind, end, next int) {
	o.jumps = append(o.jumps, jump{kind, uint16(end), uint16(next)})
}

// object handles the object that a node opens. The text before it is done.
func (o *order) object(open, depth int) {
	sorted, outer := o.rank(open), o.ranked
	next := open + 1 // behind the finished part
	if len(sorted) == 0 {
		for o.nodes[next].end != closed {
			next = o.inside(next+1, depth)
		}
		return
	}
	o.ranked += len(sorted)
	for k, rank := range sorted {
		if i := int(rank % mostFew); i != next {
			kind := toNext
			if k == 0 {
				kind = toFirst
			}
			o.jump(kind, next, i)
			next = i
		}
		next = o.inside(next+1, depth)
	}
	if o.nodes[next].end != closed {
		o.jump(toBrace, next, int(o.nodes[open].end&^opened))
	}
	o.ranked = outer
}

// inside handles the objects in a member's value, which start at node i, and returns the node behind them.
func (o *order) inside(i, depth int) int {
	for o.nodes[i].isOpened() {
		if depth < deepestSorted {
			o.object(i, depth+1)
		}
		i = int(o.nodes[i].end&^opened) + 1
	}
	return i
}

// rank sorts the members of an object. It returns none if they are in order, or are to stay as they are.
func (o *order) rank(open int) []uint64 {
	ranks := o.ranks[o.ranked:]
	inOrder, n := true, 0
	for i := open + 1; o.nodes[i].end != closed; i = after(o.nodes, i+1) {
		if n == mostMembers || o.nodes[i].isEscaped() {
			return nil
		}
		rank := o.rankOf(i)
		k := n
		for ; k > 0 && o.isBefore(rank, ranks[k-1]); k-- {
			ranks[k] = ranks[k-1]
			inOrder = false
		}
		ranks[k] = rank
		n++
	}
	if inOrder {
		return nil
	}
	return ranks[:n]
}

// mostLength is the length from which on only isBefore can order keys.
const mostLength = 127

// rankOf puts the sort key of a member into one number, as far as there is room: 7 bits of the key's length, its
// first 6 bytes, and in the lowest 9 bits the node.
func (o *order) rankOf(i int) uint64 {
	key := o.nodes[i].key()
	length := uint64(key.end - key.start)
	var w uint64
	if rest := o.src[key.start:]; len(rest) >= 8 {
		w = binary.BigEndian.Uint64(rest)
	} else {
		var last [8]byte
		copy(last[:], rest)
		w = binary.BigEndian.Uint64(last[:])
	}
	switch {
	case length < 6:
		w &^= ^uint64(0) >> (8 * length)
	case length >= mostLength:
		w, length = 0, mostLength // the rest of the length comes before the bytes
	}
	return length<<57 | w>>16<<9 | uint64(i)
}

// isBefore reports whether a member belongs before an earlier one. For two equal keys it is false.
func (o *order) isBefore(later, earlier uint64) bool {
	if later/mostFew != earlier/mostFew {
		return later < earlier
	}
	x, y := o.nodes[later%mostFew].key(), o.nodes[earlier%mostFew].key()
	if m, n := x.end-x.start, y.end-y.start; m != n {
		return m < n
	}
	return bytes.Compare(o.src[x.start:x.end], o.src[y.start:y.end]) < 0
}
