package decision

import (
	"bytes"
	"slices"
)

// names collects the keys of one object that are not known fields, to find repeated ones.
type names struct {
	few     [24]span
	count   int
	many    []span // those that few has no room for
	met     uint64 // a bit for each name, from a few of its bytes: equal names have the same bit
	alike   bool   // two names had the same bit
	escaped bool   // some names are written with escapes
}

// reset forgets all names. Names are most of the struct, and only their count must be cleared.
func (n *names) reset() {
	n.count, n.many, n.met, n.alike, n.escaped = 0, nil, 0, false, false
}

// add adds a key with this name.
func (n *names) add(key span, name []byte, escaped bool) {
	bit := uint64(1)
	if len(name) > 0 {
		bit = 1 << ((uint(len(name))*7 + uint(name[0]) + uint(name[len(name)-1])*5) % 64)
	}
	n.alike = n.alike || n.met&bit != 0
	n.met |= bit
	n.escaped = n.escaped || escaped
	if n.count < len(n.few) {
		n.few[n.count] = key
		n.count++
		return
	}
	n.many = append(n.many, key)
}

// repeated returns the place of a repeated name, or -1. Few names are compared each with each. Many are sorted,
// because a record of only names would otherwise cost the square of its length.
func (n *names) repeated(src []byte) int {
	if !n.alike {
		return -1
	}
	if len(n.many) > 0 {
		return repeatedSorted(src, append(n.few[:n.count:n.count], n.many...))
	}
	for i, later := range n.few[:n.count] {
		for _, earlier := range n.few[:i] {
			if n.same(src, earlier, later) {
				return int(later.start)
			}
		}
	}
	return -1
}

func (n *names) same(src []byte, a, b span) bool {
	if n.escaped {
		return compareNames(src, a, b) == 0
	}
	return string(src[a.start:a.end]) == string(src[b.start:b.end])
}

func repeatedSorted(src []byte, all []span) int {
	slices.SortStableFunc(all, func(a, b span) int { return compareNames(src, a, b) })
	found := -1
	for i := 1; i < len(all); i++ {
		if compareNames(src, all[i-1], all[i]) == 0 && (found < 0 || int(all[i].start) < found) {
			found = int(all[i].start)
		}
	}
	return found
}

// compareNames orders two keys by their names, with escapes undone.
func compareNames(src []byte, a, b span) int {
	x, y := src[a.start:a.end], src[b.start:b.end]
	if hasEscape(x) {
		x = appendText(nil, x)
	}
	if hasEscape(y) {
		y = appendText(nil, y)
	}
	return bytes.Compare(x, y)
}
