package store

// Statements that look for rows that are there.
const (
	KnownSQL   = knownSQL
	CompareSQL = compareSQL
	LookupSQL  = lookupSQL
	ByIDSQL    = byIDSQL
	ByIndexSQL = byIndexSQL
)

// Watches says whether the store looks for rows before it commits them.
func Watches(st *Store) bool { return st.watched.Load() }
