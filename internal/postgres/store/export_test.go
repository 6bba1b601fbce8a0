package store

// Statements that look for rows that are there.
const (
	KnownSQL   = knownSQL
	CompareSQL = compareSQL
	LookupSQL  = lookupSQL
	ByIDSQL    = byIDSQL
	ByIndexSQL = byIndexSQL
)
