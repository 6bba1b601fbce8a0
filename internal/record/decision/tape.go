package decision

// node is a place in a walked value: an object's opening brace, a key, or the closing brace. A member's key is
// followed by the nodes of the objects in its value, then by its next sibling.
type node struct {
	at uint32 // the brace, or the key behind its opening quote
	// end is one of three: closed; or opened with the index of the object's closing node; or the end of the key, with
	// escaped if the key has escapes.
	end uint32
}

const (
	closed  = 1       // not the end of any key
	opened  = 1 << 30 // beyond any place in a value
	escaped = 1 << 31

	// mostBytes limits the length of a value, so that places leave room for the bits above.
	mostBytes = opened - 1
)

func (n node) isOpened() bool { return n.end&(opened|escaped) == opened }

func (n node) isEscaped() bool { return n.end&escaped != 0 }

// key returns the place of a member's key, between the quotes.
func (n node) key() span { return span{n.at, n.end &^ escaped} }

const (
	// mostFew limits the nodes of a decision on a tape with all of its objects; ten times the usual number. The
	// numbers fit into the 9 bits of a rank, see order.rankOf.
	mostFew = 512
	// deepestWide is the depth of the objects on the tape of a larger decision: the decision and those in it.
	deepestWide = 2
)

// tape has the objects of a walked value that are not empty, in order. Node 0 opens the first one.
type tape struct {
	nodes   []node // all of them, after the walk
	room    []node // few or wide
	n       int    // number of nodes in it
	deepest int    // number of containers that may be open around visible members
	few     [mostFew]node
	wide    []node
}

// begin empties the tape.
func (t *tape) begin() { t.room, t.n, t.deepest = t.few[:], 0, maxDepth }

// forget frees the memory of an uncommon value.
func (t *tape) forget() { t.nodes, t.room, t.wide = nil, nil, nil }

// grow makes more room. If again is true, the tape is empty and of the other kind: the value has too many objects, so
// only the necessary ones are recorded.
func (t *tape) grow() (again bool) {
	if again = t.deepest > deepestWide; again {
		t.n, t.deepest = 0, deepestWide
		t.room = t.wide
	}
	if t.n == len(t.room) {
		t.wide = make([]node, max(2*len(t.wide), 2*mostFew))
		copy(t.wide, t.room)
		t.room = t.wide
	}
	return again
}

// after returns the node behind those of the objects that start at i: a key, or the closing brace around them.
func after(nodes []node, i int) int {
	for nodes[i].isOpened() {
		i = int(nodes[i].end&^opened) + 1
	}
	return i
}
