package ledgerdb

import (
	"time"
	"unicode/utf8"

	"docket/internal/postgres/db"
)

// pathBytes is how much of a decision's path the ledger keeps. An index entry has at most 2704 bytes. A path that is too long
// for an index is one of the reasons of dead letters.
const pathBytes = 1024

// pathText is the path as the ledger has it.
func pathText(path string) string {
	path = db.Text(path)
	if len(path) <= pathBytes {
		return path
	}
	path = path[:pathBytes]
	for !utf8.ValidString(path) {
		path = path[:len(path)-1]
	}
	return path
}

// The times that the ledger keeps. A record can have any time that its writer gives it. JSON, in which all times are shown,
// ends with the year 9999, and Postgres with others.
var (
	earliest = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
)

// inRange is t, or the nearest time that can be kept.
func inRange(t time.Time) time.Time {
	switch {
	case t.Before(earliest):
		return earliest
	case t.After(latest):
		return latest
	}
	return t
}

// timeOrNull takes the zero time for none.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(inRange(t))
}
