package archive

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Place is where the rows of a day are in the database.
type Place string

// The places. Only what is a partition of its own can be archived.
const (
	Attached Place = "partition" // a partition of the day alone
	Leaving  Place = "leaving"   // it was taken out of the table and not dropped yet: an archive was left off, or is under way
	Strays   Place = "default"   // rows in the default partition
	Shared   Place = "shared"    // in a partition of more than the day, such as decision_logs_before
	Nowhere  Place = "none"
)

// Held is a day as the database has it.
type Held struct {
	Day   Day
	Place Place
	Rows  int64 // about; -1: not known
	Bytes int64 // with indexes
}

// Shape is what a row consists of.
type Shape struct {
	Columns []Column
	LeftOut []Column
}

// Equal says whether rows of both have the same lines.
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

// Facts are what one snapshot of a day says.
type Facts struct {
	Total           Total // computed by Postgres
	FirstTS, LastTS string
}

// Table is decision_logs, as far as archives need it.
type Table interface {
	// Name is the table's.
	Name() string
	// Days are those that end before a time, in order.
	Days(ctx context.Context, before Day) ([]Held, error)
	// Open takes a day for this process alone; [ErrBusy] where another has it. It is let go by Close, or when the connection is lost.
	Open(ctx context.Context, day Day) (Session, error)
}

// ErrBusy says that another process archives or restores the same day.
var ErrBusy = errors.New("another docket process works on that day")

// CannotError says why something cannot be archived or restored, and what to do.
type CannotError struct{ Why, Do string }

func (e *CannotError) Error() string { return e.Why }

// Hint says what to do.
func (e *CannotError) Hint() string { return e.Do }

// UncountedError says that a day cannot be taken out or restored just now, since its decisions are not counted as far as that
// needs, and what to do.
type UncountedError struct{ Why, Do string }

func (e *UncountedError) Error() string { return e.Why }

// Hint says what to do.
func (e *UncountedError) Hint() string { return e.Do }

// Session is one day of the table.
type Session interface {
	// Where says where its rows are.
	Where(ctx context.Context) (Place, error)
	// Shape is what rows consist of now.
	Shape(ctx context.Context) (Shape, error)
	// Source says which partition it is.
	Source(ctx context.Context) (Source, error)
	// Settle makes a partition of the day, and moves rows of that day there that are in the default partition.
	Settle(ctx context.Context) error
	// Read hands out all rows in the order of (ts, decision_id), as they are in one snapshot. With prove Postgres counts and hashes them
	// itself in that snapshot. line is good until each returns.
	Read(ctx context.Context, shape Shape, prove bool, each func(line []byte) error) (Facts, error)
	// Sum has Postgres count and hash.
	Sum(ctx context.Context, shape Shape) (Total, error)
	// Detach takes the partition out of the table: from then on no writer reaches it. It waits 2 s at most for the lock, and again;
	// [UncountedError] where writers would wait for long.
	Detach(ctx context.Context) error
	// Drop counts and hashes what was detached, which nobody can change meanwhile, and drops it where that is want. Else nothing is
	// changed, and dropped is false.
	Drop(ctx context.Context, shape Shape, want Total) (dropped bool, err error)
	// Load stores lines, and says what became of them; it may be repeated. [UncountedError] where they would be counted twice.
	Load(ctx context.Context, columns []Column, lines [][]byte) (Loaded, error)
	// Tally has what was loaded be counted with all decisions, as far as it was not before it was archived.
	Tally(ctx context.Context) error
	Close()
}

// Loaded says what became of lines.
type Loaded struct {
	Stored  int64 // now
	Equal   int64 // were there, the same in every column
	Again   int64 // were there with an equal payload, and other columns: delivered again since
	Differs int64 // were there with another payload: the table's was kept
	// Total is what Postgres computes of the rows that are in the table now, with that of the line where the row is another.
	Total Total
	// Conflicts are identities of some that differ.
	Conflicts []string
}

// Step is a step of an archive or a restore, for progress.
type Step string

// The steps, in their order.
const (
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
	By     string // who decides
	Docket string // version of the program
	Now    func() time.Time
	// Told is called after each step; nil: nobody is.
	Told func(Step)
	// PartRows is how many rows a part has at most; 0: a million.
	PartRows int64
	// LineBytes is how long a line of an archive may be that is restored; 0: as long as Postgres can make it. See [MostLine].
	LineBytes int64
}

// Archived is what became of a day.
type Archived struct {
	Day      Day
	Archive  string // its name; empty where there was nothing
	Rows     int64
	Bytes    int64 // on the shelf
	Files    int
	Reused   bool // an archive that was there already is equal
	Late     bool // rows came while it was written, and it was written again
	Dropped  bool
	LeftOut  []Column
	Duration time.Duration
}

// Archive writes a day, reads it back and, unless keep, drops it from the table once Postgres has counted and hashed there
// what was read back from the shelf. It may be killed at any point and run again.
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
	c.tell(StepOpened)

	m, err := c.fitting(ctx, s, shape, day)
	if err != nil {
		return done, err
	}
	done.Reused = m != nil
	for {
		if m == nil {
			if m, err = c.write(ctx, s, shape, day, keep); err != nil {
				return done, err
			}
			c.tell(StepWritten)
		}
		done.Archive, done.Rows, done.Bytes, done.Files = m.Name(), m.Rows, m.Bytes(), len(m.Files)
		if err := Check(ctx, c.Shelf, m, nil); err != nil {
			return done, fmt.Errorf("read back: %w", err)
		}
		c.tell(StepVerified)
		if keep {
			return done, nil
		}
		if where != Leaving {
			if err := s.Detach(ctx); err != nil {
				return done, err
			}
			where = Leaving
			c.tell(StepDetached)
		}
		want, err := m.Total()
		if err != nil {
			return done, err
		}
		done.Dropped, err = s.Drop(ctx, shape, want)
		if err != nil {
			return done, err
		}
		if done.Dropped {
			c.tell(StepDropped)
			return done, nil
		}
		if done.Late {
			// Written from what nobody can change, and still not equal.
			return done, &CannotError{"the day was archived twice and is not equal to its archive",
				"nothing was dropped: check the table that was taken out (docket archive list), the locale settings of the server, and its disk"}
		}
		done.Late, done.Reused, m = true, false, nil
		c.tell(StepLate)
	}
}

func (c *Carrier) tell(s Step) {
	if c.Told != nil {
		c.Told(s)
	}
}

// fitting is an archive that is there already and equal to what is in the table; nil where there is none. One that is broken, or says less,
// is passed over.
func (c *Carrier) fitting(ctx context.Context, s Session, shape Shape, day Day) (*Manifest, error) {
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
		if m.Source.ID != source.ID || superseded[m.Name()] || !shape.equal(m.Columns) {
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
		switch err := Check(ctx, c.Shelf, m, nil); {
		case err == nil:
			return m, nil
		case !isBroken(err):
			return nil, err
		}
	}
	return nil, nil
}

func notBroken(err error) error {
	if isBroken(err) {
		return nil
	}
	return err
}

// write makes a new archive of the day.
func (c *Carrier) write(ctx context.Context, s Session, shape Shape, day Day, prove bool) (*Manifest, error) {
	source, err := s.Source(ctx)
	if err != nil {
		return nil, err
	}
	generation, leftovers, err := next(ctx, c.Shelf, c.Table.Name(), day, source.ID)
	if err != nil {
		return nil, err
	}
	for _, name := range leftovers {
		if err := c.Shelf.Remove(ctx, name); err != nil {
			return nil, fmt.Errorf("remove %s: %w", name, err)
		}
	}
	var attempt [4]byte
	_, _ = rand.Read(attempt[:]) // never fails
	before, err := Whole(ctx, c.Shelf, c.Table.Name(), &day)
	if err := notBroken(err); err != nil {
		return nil, err
	}
	m := &Manifest{
		Format: Format, Docket: c.Docket, Table: c.Table.Name(), Day: day.String(), Generation: generation, Source: source, Attempt: hex.EncodeToString(attempt[:]),
		Columns: shape.Columns, LeftOut: shape.LeftOut, CreatedBy: c.By, Files: []File{},
	}
	c.tell(StepReading)
	earlier := c.contained(ctx, before, source.ID)
	defer earlier.stop()
	w := newWriter(ctx, c.Shelf, m.Name())
	if c.PartRows > 0 {
		w.rows = c.PartRows
	}
	facts, err := s.Read(ctx, shape, prove, func(line []byte) error {
		earlier.meet(line)
		return w.line(line)
	})
	if err == nil {
		err = w.end()
	}
	if err != nil {
		w.abandon()
		return nil, err
	}
	if prove && facts.Total != w.total {
		return nil, &BrokenError{m.Name(), "the rows that were read do not match the count and hash of Postgres"}
	}
	m.Files, m.Rows, m.Hash = append(m.Files, w.files...), w.total.Rows, w.total.Hash()
	m.FirstTS, m.LastTS, m.CreatedAt = facts.FirstTS, facts.LastTS, c.Now().UTC()
	m.Supersedes = earlier.names()
	// The day is still ours: had its connection been lost, another could be at it, and have taken these files for leftovers.
	if _, err := s.Source(ctx); err != nil {
		return nil, err
	}
	return m, seal(ctx, c.Shelf, m)
}
