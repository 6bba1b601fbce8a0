package archive

import (
	"context"
	"errors"
)

// Location is where the database has the rows of a day.
type Location string

// The locations. Only a partition of one day can be archived.
const (
	Attached Location = "partition" // a partition of this day only
	Leaving  Location = "leaving"   // taken out of the table and not dropped: an archive is running, or was interrupted
	Strays   Location = "default"   // rows in the default partition
	Shared   Location = "shared"    // in a partition with other days, such as decision_logs_before
	Nowhere  Location = "none"
)

// Held is a day in the database.
type Held struct {
	Day      Day
	Location Location
	Rows     int64 // approximate; -1: not known
	Bytes    int64 // with indexes
}

// Once returns each day once, at its first place. A day that is out of the table comes first, and one with a partition
// of its own has no rows in the default partition.
func Once(held []Held) (days []Held) {
	seen := map[Day]bool{}
	for _, h := range held {
		if !seen[h.Day] {
			days = append(days, h)
		}
		seen[h.Day] = true
	}
	return days
}

// Shape has the columns of a row.
type Shape struct {
	Columns []Column
	LeftOut []Column
}

// Equal reports whether rows of both have the same lines.
func (s Shape) Equal(o Shape) bool { return s.equal(o.Columns) }

func (s Shape) equal(columns []Column) bool {
	if len(s.Columns) != len(columns) {
		return false
	}
	for i, c := range s.Columns {
		if c != columns[i] {
			return false
		}
	}
	return true
}

// Facts are the results of one snapshot of a day.
type Facts struct {
	Total           Total // computed by Postgres
	FirstTS, LastTS string
}

// Table is the part of decision_logs that archives need.
type Table interface {
	// Name returns the table's name.
	Name() string
	// Days returns the days that end before a time, in order.
	Days(ctx context.Context, before Day) ([]Held, error)
	// Open locks a day for this process. It returns [ErrBusy] if another process has it. Close releases it, and so
	// does a lost connection.
	Open(ctx context.Context, day Day) (OpenDay, error)
}

// ErrBusy says that another process archives or restores the same day.
var ErrBusy = errors.New("another docket process works on that day")

// CannotError says why a day cannot be archived or restored, with advice.
type CannotError struct{ Why, Do string }

func (e *CannotError) Error() string { return e.Why }

// Hint returns advice.
func (e *CannotError) Hint() string { return e.Do }

// UncountedError says that a day cannot be taken out or restored now, because its decisions are not counted far
// enough.
type UncountedError struct{ Why, Do string }

func (e *UncountedError) Error() string { return e.Why }

// Hint returns advice.
func (e *UncountedError) Hint() string { return e.Do }

// UnfollowedError says that a day cannot be taken out, because the states of subjects lack some of its decisions.
type UnfollowedError struct{ Why, Do string }

func (e *UnfollowedError) Error() string { return e.Why }

// Hint returns advice.
func (e *UnfollowedError) Hint() string { return e.Do }

// Waits reports that the day can be taken out later.
func (*UnfollowedError) Waits() bool { return true }

// ErrLeftUnread says that it is not known which days left the table. A statement that a role may not send is not sent, as the
// server's log would have each failure.
var ErrLeftUnread = errors.New("this login may not read decision_counts_left, or the database has no such table; run docket migrate, and docs/grants.sql where you use it")

// OpenDay is one day of the table, locked for this process.
type OpenDay interface {
	// Where returns the location of its rows.
	Where(ctx context.Context) (Location, error)
	// Shape returns the present columns.
	Shape(ctx context.Context) (Shape, error)
	// Source identifies the partition.
	Source(ctx context.Context) (Source, error)
	// Settle makes a partition of the day, and moves the day's rows from the default partition there.
	Settle(ctx context.Context) error
	// Read passes all rows to each in the order of (ts, decision_id), from one snapshot. Postgres counts and hashes them
	// there. line is valid until each returns.
	Read(ctx context.Context, shape Shape, each func(line []byte) error) (Facts, error)
	// Sum lets Postgres count and hash the rows.
	Sum(ctx context.Context, shape Shape) (Total, error)
	// Detach takes the partition out of the table, so that no writer reaches it. It waits for the lock in tries of at
	// most 2 s. It returns [UncountedError] if writers would wait long. It returns [UnfollowedError] if a desk keeps
	// states and has not followed all decisions of the day, unless withoutStates.
	Detach(ctx context.Context, withoutStates bool) error
	// Late passes decisions of the detached partition in portions: those that were stored after an earlier archive took
	// the day out. again deletes those that an earlier archive has, as that one counted them. Drop counts the others.
	Late(ctx context.Context, again func(ctx context.Context, late map[Identity]bool) error) error
	// Drop counts and hashes the detached partition, which nobody can change. If its rows are those of the last Read, and
	// none was written since, the total of that is enough. Drop drops it if the total is want. Otherwise it changes
	// nothing, and dropped is false. It notes the archives that the day needs from then on.
	Drop(ctx context.Context, shape Shape, want Total, needs Needs) (dropped bool, err error)
	// Load stores lines and returns the results. It may be repeated. It returns [UncountedError] if they would be
	// counted twice.
	Load(ctx context.Context, columns []Column, lines [][]byte) (Loaded, error)
	// Tally adds the loaded decisions to the counts, unless they were counted before they were archived.
	Tally(ctx context.Context) error
	// Left returns the day if an archive took it out of the table and no restore brought it back, else nil. It
	// returns [ErrLeftUnread] if that is not known.
	Left(ctx context.Context) (*Left, error)
	// Archived reports whether the database needs an archive of any day, of decisions or of dead letters. It is false if that is
	// not known.
	Archived(ctx context.Context) (bool, error)
	// Forget notes that the day was forgotten. A day that did not leave stays as it is.
	Forget(ctx context.Context, by, reason string) error
	Close()
}

// Loaded has the results for lines.
type Loaded struct {
	Stored  int64 // now
	Equal   int64 // were there, with all columns equal
	Again   int64 // were there with an equal payload and other columns: delivered again since
	Differs int64 // were there with another payload, which stays
	// Total is computed by Postgres from the rows in the table now. For a different row it has the line's total.
	Total Total
	// Conflicts are identities of some that differ.
	Conflicts []string
}

// Join adds the results for other lines.
func (l *Loaded) Join(o Loaded) {
	l.Stored, l.Equal, l.Again, l.Differs = l.Stored+o.Stored, l.Equal+o.Equal, l.Again+o.Again, l.Differs+o.Differs
	l.Total.Join(o.Total)
	l.Conflicts = append(l.Conflicts, o.Conflicts...)
}
