package archive

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"docket/internal/record/subject"
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

// Step is a step of an archive or a restore, for progress.
type Step string

// The steps, in their order.
const (
	StepTaken    Step = "taken" // of a restore: no other process works on the day
	StepOpened   Step = "opened"
	StepReading  Step = "reading"
	StepWritten  Step = "written"
	StepVerified Step = "verified"
	StepDetached Step = "detached"
	StepLate     Step = "late"
	StepDropped  Step = "dropped"
	StepLoaded   Step = "loaded"
)

// Carrier archives and restores days.
type Carrier struct {
	Table  Table
	Shelf  Shelf
	By     string // the operator
	Docket string // version of the program
	Now    func() time.Time
	// Told is called after each step; nil: not called.
	Told func(Step)
	// WithoutStates archives days whose decisions the states of subjects lack.
	WithoutStates bool
	// GoOn is asked after the steps at which an archive may stop: opened, written and verified. An error stops it there,
	// and the next run continues from that step. A day that is out of the table is finished without a question. nil: it
	// never stops.
	GoOn func(Step) error
	// Incomplete restores a day although archives that it needs are missing.
	Incomplete bool
	// PartRows limits the rows of a part; 0: a million lines, or four million rows of Parquet.
	PartRows int64
	// Lines writes gzip JSON lines (FormatLines) and not Parquet.
	Lines bool
	// Subject says how the subject of a decision is found. Parquet has it as a column.
	Subject subject.Spec
	// LineBytes limits the lines of a restored archive; 0: the longest that Postgres can make. See [MostLine].
	LineBytes int64
	// Take waits until a restore may store rows, and returns how many of them: at least 1, or 0 if ctx ended. nil: all
	// at once.
	Take func(ctx context.Context, rows int) (granted int)
}

// Archived is the result for a day.
type Archived struct {
	Day      Day
	Archive  string // its name; empty if there was nothing
	Rows     int64
	Bytes    int64 // in the storage
	Files    int
	Reused   bool // an earlier archive is equal
	Late     bool // rows came while it was written, so it was written again
	Dropped  bool
	LeftOut  []Column
	Duration time.Duration
}

// Archive writes a day and reads it back. Unless keep, it drops the day from the table once Postgres has counted and
// hashed the same rows. It may be killed at any point and run again.
func (c *Carrier) Archive(ctx context.Context, day Day, keep bool) (done Archived, err error) {
	start := c.Now()
	defer func() { done.Duration = c.Now().Sub(start) }()
	done.Day = day
	if !day.Settled(start) {
		return done, &CannotError{"the day is too recent", "only days before yesterday (UTC) can be archived, because late decisions arrive until then"}
	}
	s, err := c.Table.Open(ctx, day)
	if err != nil {
		return done, err
	}
	defer s.Close()
	if err := mounted(ctx, c.Shelf, s.Archived); err != nil {
		return done, err
	}
	left, err := leftOf(ctx, s, day) // before this run
	if err != nil {
		return done, err
	}
	if err := c.finish(ctx, s, day, left); err != nil {
		return done, err
	}
	where, err := s.Where(ctx)
	if err != nil {
		return done, err
	}
	switch where {
	case Nowhere:
		return done, nil
	case Shared:
		return done, &CannotError{"the day shares a partition with others",
			"rows from before the table was partitioned by day are in one partition: see docs/archive.md, \"What has no day of its own\""}
	case Strays:
		if err := s.Settle(ctx); err != nil {
			return done, err
		}
	}
	shape, err := s.Shape(ctx)
	if err != nil {
		return done, err
	}
	done.LeftOut = shape.LeftOut
	before := left != nil && (left.Archives == nil || len(left.Archives) > 0 || left.Forgotten != nil) // no killed run alone noted it
	if err := c.reach(StepOpened, where); err != nil {
		return done, err
	}

	m, err := c.fitting(ctx, s, shape, day)
	if err != nil {
		return done, err
	}
	done.Reused = m != nil
	for {
		if m == nil {
			if m, err = c.write(ctx, s, shape, day); err != nil {
				return done, err
			}
			if err := c.reach(StepWritten, where); err != nil {
				return done, err
			}
		}
		done.Archive, done.Rows, done.Bytes, done.Files = m.Name(), m.Rows, m.Bytes(), len(m.Files)
		if !done.Reused { // else it was proved as a whole
			if err := proveOwn(ctx, c.Shelf, m); err != nil {
				return done, fmt.Errorf("read back: %w", err)
			}
		}
		if err := c.reach(StepVerified, where); err != nil {
			return done, err
		}
		if left == nil && where != Strays { // all rows of the day are in m
			if err := c.bare(ctx, day, m.Source.ID, func(archive string) staying {
				if archive == m.Name() {
					return itsFiles
				}
				return nothing
			}); err != nil {
				return done, err
			}
		}
		if keep {
			return done, nil
		}
		if where != Leaving {
			if err := s.Detach(ctx, c.WithoutStates); err != nil {
				return done, err
			}
			where = Leaving
			c.tell(StepDetached)
		}
		if err := s.Late(ctx, c.again(day)); err != nil {
			return done, err
		}
		want, err := m.Total()
		if err != nil {
			return done, err
		}
		needs, err := c.needs(ctx, m, day, before)
		if err != nil {
			return done, err
		}
		done.Dropped, err = s.Drop(ctx, shape, want, needs)
		if err != nil {
			return done, err
		}
		if done.Dropped {
			c.tell(StepDropped)
			return done, nil
		}
		if done.Late {
			// It was written from rows that nobody can change, and is still not equal.
			return done, &CannotError{"the day was archived twice and is not equal to its archive",
				"nothing was dropped: check the table that was taken out (docket archive list), the locale settings of the server, and its disk"}
		}
		done.Late, done.Reused, m = true, false, nil
		c.tell(StepLate)
		if shape, err = s.Shape(ctx); err != nil {
			return done, err
		}
		done.LeftOut = shape.LeftOut
	}
}

// leftOf returns the day if it left the table, for an archive of it. If that is not known, it may have left with any archives.
func leftOf(ctx context.Context, s OpenDay, day Day) (*Left, error) {
	left, err := s.Left(ctx)
	if errors.Is(err, ErrLeftUnread) {
		return &Left{Day: day}, nil
	}
	return left, err
}

func (c *Carrier) format() int {
	if c.Lines {
		return FormatLines
	}
	return FormatParquet
}

// reach tells of a step at which the archive may stop, and asks whether it has to.
func (c *Carrier) reach(s Step, where Location) error {
	c.tell(s)
	if c.GoOn == nil || where == Leaving {
		return nil
	}
	return c.GoOn(s)
}

func (c *Carrier) tell(s Step) {
	if c.Told != nil {
		c.Told(s)
	}
}

// fitting returns an existing archive that equals the rows in the table, or nil. It skips one that is broken, has
// fewer rows, or another format.
func (c *Carrier) fitting(ctx context.Context, s OpenDay, shape Shape, day Day) (*Manifest, error) {
	all, err := Whole(ctx, c.Shelf, c.Table.Name(), &day)
	if err != nil && !isBroken(err) || len(all) == 0 {
		return nil, notBroken(err)
	}
	source, err := s.Source(ctx)
	if err != nil {
		return nil, err
	}
	var now *Total
	superseded := Superseded(all)
	for i := len(all) - 1; i >= 0; i-- {
		m := all[i]
		if m.Source.ID != source.ID || m.Format != c.format() || superseded[m.Name()] || !shape.equal(m.Columns) {
			continue
		}
		if now == nil {
			total, err := s.Sum(ctx, shape)
			if err != nil {
				return nil, err
			}
			now = &total
		}
		if want, err := m.Total(); err != nil || want != *now {
			continue
		}
		switch err := Prove(ctx, c.Shelf, m); {
		case err == nil:
			return m, nil
		case !unreadable(err):
			return nil, err
		}
	}
	return nil, nil
}

// unreadable reports whether an archive is broken, or no file that this program wrote.
func unreadable(err error) bool {
	var size *SizeError
	return isBroken(err) || errors.As(err, &size)
}

func notBroken(err error) error {
	if isBroken(err) {
		return nil
	}
	return err
}

// write makes a new archive of the day.
func (c *Carrier) write(ctx context.Context, s OpenDay, shape Shape, day Day) (*Manifest, error) {
	source, err := s.Source(ctx)
	if err != nil {
		return nil, err
	}
	generation, err := next(ctx, c.Shelf, c.Table.Name(), day)
	if err != nil {
		return nil, err
	}
	before, broken := Whole(ctx, c.Shelf, c.Table.Name(), &day)
	if err := notBroken(broken); err != nil {
		return nil, err
	}
	var attempt [4]byte
	_, _ = rand.Read(attempt[:]) // never fails
	m := &Manifest{
		Format: c.format(), Docket: c.Docket, Table: c.Table.Name(), Day: day.String(), Generation: generation, Source: source, Attempt: hex.EncodeToString(attempt[:]),
		Columns: shape.Columns, LeftOut: shape.LeftOut, CreatedBy: c.By, Files: []File{},
	}
	c.tell(StepReading)
	earlier := c.contained(ctx, before, source.ID)
	defer earlier.stop()
	w := newWriter(ctx, c.Shelf, m, c.Subject)
	defer w.abandon()
	if c.PartRows > 0 {
		w.rows = c.PartRows
	}
	var facts Facts
	err = inPortions(writeRows, writeBytes, func(line func([]byte) error) (err error) {
		facts, err = s.Read(ctx, shape, line)
		return err
	}, func(lines [][]byte) error {
		for _, line := range lines {
			earlier.meet(line)
		}
		return w.lines(lines)
	})
	if err == nil {
		err = w.end()
	}
	if err != nil {
		return nil, err
	}
	if facts.Total != w.total {
		return nil, &BrokenError{m.Name(), "the rows that were read do not match the count and hash of Postgres"}
	}
	m.Files, m.Rows, m.Hash = append(m.Files, w.files...), w.total.Rows, w.total.Hash()
	m.FirstTS, m.LastTS, m.CreatedAt = facts.FirstTS, facts.LastTS, c.Now().UTC()
	m.Supersedes = earlier.names()
	// Check that the day is still locked. After a lost connection another process could have removed these files.
	if _, err := s.Source(ctx); err != nil {
		return nil, err
	}
	return m, w.seal(m)
}
