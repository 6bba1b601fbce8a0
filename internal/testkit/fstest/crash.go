package fstest

import (
	"iter"
	"maps"
	"slices"
)

// entry is a name in a directory.
type entry struct{ dir, name string }

// change is one change of names that no sync of its directory covers yet: a file made (to), unlinked (from) or
// renamed (both).
type change struct {
	from, to entry
	node     *node
}

func (m *FS) changed(c change) { m.pending = append(m.pending, c) }

// settleDir makes one directory durable. A rename into another directory is one act: after a crash the file has not
// left the one without coming to the other.
func (m *FS) settleDir(name string) {
	left := m.pending[:0]
	for _, c := range m.pending {
		switch {
		case c.from.dir == name && c.to.dir != "":
			m.dirs[c.to.dir].durable[c.to.name] = c.node
			continue
		case c.to.dir == name && c.from.dir != "" && c.from.dir != name:
			c.to = entry{} // it has arrived, and may be found in both
		case c.from.dir == name || c.to.dir == name:
			continue
		}
		left = append(left, c)
	}
	m.pending = left
	m.dirs[name].durable = maps.Clone(m.dirs[name].now)
}

// States yields every disk that a power cut now may leave, unlocked and without faults. Each set of unsynced name
// changes may be there. A file with unsynced writes may have none of them, half, its size with a hole of zeros, all,
// or be empty. Synced data is always there.
func (m *FS) States() iter.Seq[*FS] {
	m.mu.Lock()
	defer m.mu.Unlock()
	durable := map[string]map[string]*node{}
	for name, d := range m.dirs {
		durable[name] = maps.Clone(d.durable)
	}
	pending, ids, self := slices.Clone(m.pending), m.ids, m.self
	contents := map[*node][][]byte{}
	for _, n := range m.reachable() {
		contents[n] = n.found()
	}
	return func(yield func(*FS) bool) {
		for names := range namings(durable, pending) {
			for disk := range fillings(names, contents) {
				disk.ids, disk.self = ids, self
				if !yield(disk) {
					return
				}
			}
		}
	}
}

// reachable returns the files that any disk may show. The caller holds the lock.
func (m *FS) reachable() map[uint64]*node {
	all := map[uint64]*node{}
	for _, d := range m.dirs {
		for _, names := range []map[string]*node{d.now, d.durable} {
			for _, n := range names {
				all[n.info.ID[1]] = n
			}
		}
	}
	for _, c := range m.pending {
		all[c.node.info.ID[1]] = c.node
	}
	return all
}

// found returns the possible contents of a file after a power cut.
func (n *node) found() [][]byte {
	if slices.Equal(n.data, n.synced) {
		return [][]byte{n.synced}
	}
	at := min(len(n.synced), len(n.data))
	half := at + (len(n.data)-at)/2
	hole := slices.Clone(n.data)
	clear(hole[at+(len(n.data)-at)/3 : max(half, min(at+1, len(n.data)))])
	return [][]byte{n.synced, n.data[:half], hole, n.data}
}

// namings yields the possible names in the directories: each change durable or not. For a rename across directories
// the old name may also still be there.
func namings(durable map[string]map[string]*node, pending []change) iter.Seq[map[string]map[string]*node] {
	return func(yield func(map[string]map[string]*node) bool) {
		if len(pending) == 0 {
			yield(durable)
			return
		}
		ways := []change{{}, pending[0]}
		if c := pending[0]; c.from.dir != "" && c.to.dir != "" && c.from.dir != c.to.dir {
			ways = append(ways, change{to: c.to, node: c.node})
		}
		for _, c := range ways {
			names := map[string]map[string]*node{}
			for dir, list := range durable {
				names[dir] = maps.Clone(list)
			}
			if c.from.dir != "" && names[c.from.dir][c.from.name] == c.node {
				delete(names[c.from.dir], c.from.name)
			}
			if c.to.dir != "" {
				names[c.to.dir][c.to.name] = c.node
			}
			for rest := range namings(names, pending[1:]) {
				if !yield(rest) {
					return
				}
			}
		}
	}
}

// fillings yields disks with these names and each possible content of their files.
func fillings(names map[string]map[string]*node, contents map[*node][][]byte) iter.Seq[*FS] {
	var dirty []*node
	for _, list := range names {
		for _, n := range list {
			if len(contents[n]) > 1 && !slices.Contains(dirty, n) {
				dirty = append(dirty, n)
			}
		}
	}
	return func(yield func(*FS) bool) {
		chosen := map[*node][]byte{}
		var choose func(int) bool
		choose = func(i int) bool {
			if i == len(dirty) {
				return yield(disk(names, contents, chosen))
			}
			for _, data := range contents[dirty[i]] {
				chosen[dirty[i]] = data
				if !choose(i + 1) {
					return false
				}
			}
			return true
		}
		choose(0)
	}
}

func disk(names map[string]map[string]*node, contents map[*node][][]byte, chosen map[*node][]byte) *FS {
	out := New()
	for dir, list := range names {
		d := newDir()
		for name, n := range list {
			data, ok := chosen[n]
			if !ok {
				data = contents[n][0]
			}
			left := &node{info: n.info, data: slices.Clone(data), synced: slices.Clone(data)}
			d.now[name], d.durable[name] = left, left
		}
		out.dirs[dir] = d
	}
	return out
}
