package decision

// node is a place of a value that was walked over: an object's brace, a key, or the brace that closes the object.
// A member's key is followed by the nodes of the objects in its value, then by its next sibling.
type node struct {
	at uint32 // the brace, or the key behind its opening quote
	// end is closed; or opened with the index of the node that closes the object; or else where the key ends, with
	// escaped where it is not written as it reads.
	end uint32
}

const (
	closed  = 1       // no key ends there
	opened  = 1 << 30 // beyond any place in a value
	escaped = 1 << 31

	// mostBytes is how long a value may be, so that its places and the bits above fit.
	mostBytes = opened - 1
)

func (n node) isOpened() bool { return n.end&(opened|escaped) == opened }

func (n node) isEscaped() bool { return n.end&escaped != 0 }

// key is where a member's key stands, between the quotes.
func (n node) key() span { return span{n.at, n.end &^ escaped} }

const (
	// mostFew is how many nodes a decision may have on the tape with all of its objects there; ten times a usual one. Its
	// numbers fit into the 9 bits that a rank has for them, see order.rankOf.
	mostFew = 512
	// deepestWide is how deep the objects are that stand on the tape of a larger one: the decision and those in it.
	deepestWide = 2
)

// tape is what walking over a value has seen of its objects that are not empty, in order. Node 0 opens the first one.
type tape struct {
	nodes   []node // all of them, once the walk has come to its end
	room    []node // few or wide
	n       int    // how many nodes there are in it
	deepest int    // how many containers may be open around the members that are seen
	few     [mostFew]node
	wide    []node
}

// begin makes the tape empty.
func (t *tape) begin() { t.room, t.n, t.deepest = t.few[:], 0, maxDepth }

// forget lets go of what an uncommon value took.
func (t *tape) forget() { t.nodes, t.room, t.wide = nil, nil, nil }

// grow makes room where there is none. It says that the tape is empty again, of another kind: the value has more objects
// than are worth it, so that no more are seen than have to be.
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

// after is the node behind those of the objects that start at i: a key, or what closes the object around them.
func after(nodes []node, i int) int {
	for nodes[i].isOpened() {
		i = int(nodes[i].end&^opened) + 1
	}
	return i
}
