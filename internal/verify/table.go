package verify

// invariants is the table of all statements, in order.
var invariants = []invariant{}
