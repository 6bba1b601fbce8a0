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
