package archive

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// LettersName is what archives of dead letters begin with. They lie on the same shelf as those of decisions.
const LettersName = "dead_letters"

// LettersHeld is a day on which dead letters were closed that may be the only copy of a decision and are in no archive.
type LettersHeld struct {
	Day     Day
	Letters int64
	Bytes   int64 // of their values
}

// LettersTable is the ledger of dead letters, as far as archives need it.
type LettersTable interface {
	// Days are those before a time on which such letters were closed, in order.
	Days(ctx context.Context, before Day) ([]LettersHeld, error)
	// Open takes a day for this process alone; [ErrBusy] where another has it. It is let go by Close, or when the connection is lost.
	Open(ctx context.Context, day Day) (LettersSession, error)
}

// LettersSession is one day of the ledger.
type LettersSession interface {
	// Columns are what a line consists of.
	Columns() []Column
	// Source says which database it is. An error says that the day may be another's by now.
	Source(ctx context.Context) (Source, error)
	// Waiting is how many letters of the day are in no archive.
	Waiting(ctx context.Context) (int64, error)
	// Read hands out each of them in the order of its id, as they are in one snapshot. line is good until each returns.
	Read(ctx context.Context, each func(line []byte) error) error
	// Note writes down that the letters of these lines are in an archive, where they are in none yet and are what their lines say, by a hash
	// that Postgres computes. It may be repeated.
	Note(ctx context.Context, archive, by string, lines [][]byte) (noted int64, err error)
	// Load enters letters that are not in the ledger, RESOLVED and with the archive that has them; it may be repeated.
	Load(ctx context.Context, archive, by string, columns []Column, lines [][]byte) (LettersLoaded, error)
	Close()
}

// LettersLoaded says what became of lines.
type LettersLoaded struct {
	Stored  int64 // now
	Equal   int64 // were there, with the same value
	Differs int64 // were there with another value: the ledger's was kept
	// Conflicts are ids of some that differ.
	Conflicts []string
}

// LettersCarrier archives and restores dead letters that were closed.
type LettersCarrier struct {
	Table  LettersTable
	Shelf  Shelf
	By     string // who decides
	Docket string // version of the program
	Now    func() time.Time
	// Told is called after each step; nil: nobody is.
	Told func(Step)
	// PartRows is how many lines a part has at most; 0: a million.
	PartRows int64
	// LineBytes is how long a line of an archive may be that is restored; 0: as long as Postgres can make it. See [MostLine].
	LineBytes int64
}

// LettersArchived is what became of a day.
type LettersArchived struct {
	Day      Day
	Archives []string // their names; empty where there was nothing
	Letters  int64    // that are in an archive now and were in none before
	Bytes    int64    // on the shelf
	Files    int
	Reused   bool // an archive that was there already has some of them
	Duration time.Duration
}

// Archive writes the letters that were closed on a day and are in no archive, reads them back, and writes down in the ledger which
// archive has them: only then they may leave it. Nothing is removed. It may be killed at any point and run again.
func (c *LettersCarrier) Archive(ctx context.Context, day Day) (done LettersArchived, err error) {
	start := c.Now()
	defer func() { done.Duration = c.Now().Sub(start) }()
	done.Day = day
	if !day.Settled(start) {
		return done, &CannotError{"the day is too recent", "only dead letters that were closed before yesterday (UTC) are archived"}
	}
	s, err := c.Table.Open(ctx, day)
	if err != nil {
		return done, err
	}
	defer s.Close()
	left, err := s.Waiting(ctx)
	if err != nil || left == 0 {
		return done, err
	}
	source, err := s.Source(ctx)
	if err != nil {
		return done, err
	}
	c.tell(StepOpened)
	if err := c.again(ctx, s, source, day, &done); err != nil {
		return done, err
	}
	if left, err = s.Waiting(ctx); err != nil || left == 0 {
		return done, err
	}
	m, err := c.write(ctx, s, source, day, func(each func(line []byte) error) error { return s.Read(ctx, each) })
	if err != nil {
		return done, err
	}
	c.tell(StepWritten)
	if err := c.note(ctx, s, m, &done); err != nil {
		return done, fmt.Errorf("read back: %w", err)
	}
	c.tell(StepVerified)
	if left, err = s.Waiting(ctx); err != nil || left == 0 {
		return done, err
	}
	return done, &CannotError{fmt.Sprintf("%d dead letters of the day are not what was archived", left), "they were changed meanwhile: run it again"}
}

func (c *LettersCarrier) tell(s Step) {
	if c.Told != nil {
		c.Told(s)
	}
}

// again notes what an archive has that was whole before the ledger said so. A broken one is passed over.
func (c *LettersCarrier) again(ctx context.Context, s LettersSession, source Source, day Day, done *LettersArchived) error {
	all, err := Whole(ctx, c.Shelf, LettersName, &day)
	if err := notBroken(err); err != nil {
		return err
	}
	for _, m := range all {
		if m.Source.ID != source.ID || !slices.Equal(m.Columns, s.Columns()) {
			continue
		}
		before := done.Letters
		if err := notBroken(c.note(ctx, s, m, done)); err != nil {
			return err
		}
		done.Reused = done.Reused || done.Letters > before
	}
	return nil
}

// note reads an archive back and notes its letters. All of it is read before the first of them is noted: what an archive has counts
// once the archive is proved.
func (c *LettersCarrier) note(ctx context.Context, s LettersSession, m *Manifest, done *LettersArchived) error {
	if err := Check(ctx, c.Shelf, m, nil); err != nil {
		return err
	}
	var noted int64
	err := batched(ctx, c.Shelf, m, mostText, func(lines [][]byte) error {
		n, err := s.Note(ctx, m.Name(), c.By, lines)
		noted += n
		c.tell(StepReading)
		return err
	})
	if noted > 0 {
		done.Archives, done.Letters = append(done.Archives, m.Name()), done.Letters+noted
		done.Bytes, done.Files = done.Bytes+m.Bytes(), done.Files+len(m.Files)
	}
	return err
}

// Keep writes letters that are in no ledger to an archive of a day, which may be today, and reads it back. read hands out their lines. Where there are
// none, Keep makes no archive. A process that is killed can run it again: then two archives of the day have the letters, and a restore enters each once.
func (c *LettersCarrier) Keep(ctx context.Context, day Day, read func(each func(line []byte) error) error) (archive string, letters int64, err error) {
	s, err := c.Table.Open(ctx, day)
	if err != nil {
		return "", 0, err
	}
	defer s.Close()
	source, err := s.Source(ctx)
	if err != nil {
		return "", 0, err
	}
	m, err := c.write(ctx, s, source, day, func(each func(line []byte) error) error {
		return read(func(line []byte) error {
			letters++
			return each(line)
		})
	})
	switch {
	case errors.Is(err, errNoLines):
		return "", 0, nil
	case err != nil:
		return "", 0, err
	}
	c.tell(StepWritten)
	if err := CheckWithin(ctx, c.Shelf, m, c.mostLine(), nil); err != nil {
		return "", 0, fmt.Errorf("read back: %w", err)
	}
	c.tell(StepVerified)
	return m.Name(), letters, nil
}

// errNoLines says that there is nothing to write.
var errNoLines = errors.New("there are no lines")

// write makes a new archive of lines.
func (c *LettersCarrier) write(ctx context.Context, s LettersSession, source Source, day Day, read func(each func(line []byte) error) error) (*Manifest, error) {
	generation, leftovers, err := next(ctx, c.Shelf, LettersName, day, source.ID)
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
	m := &Manifest{
		Format: Format, Docket: c.Docket, Table: LettersName, Day: day.String(), Generation: generation, Source: source, Attempt: hex.EncodeToString(attempt[:]),
		Columns: s.Columns(), CreatedBy: c.By, Files: []File{},
	}
	c.tell(StepReading)
	w := newWriter(ctx, c.Shelf, m.Name())
	if c.PartRows > 0 {
		w.rows = c.PartRows
	}
	err = read(w.line)
	if err == nil {
		err = w.end()
	}
	if err == nil && w.total.Rows == 0 {
		err = errNoLines
	}
	if err != nil {
		w.abandon()
		return nil, err
	}
	m.Files, m.Rows, m.Hash, m.CreatedAt = append(m.Files, w.files...), w.total.Rows, w.total.Hash(), c.Now().UTC()
	// The day is still ours: had its connection been lost, another could be at it, and have taken these files for leftovers.
	if _, err := s.Source(ctx); err != nil {
		return nil, err
	}
	return m, seal(ctx, c.Shelf, m)
}

// LettersRestored is what became of the archives of a day.
type LettersRestored struct {
	Day      Day
	Archives []string
	LettersLoaded
	Lines    int64 // of all archives
	Duration time.Duration
}

// Restore enters the letters of all archives of a day into the ledger again, RESOLVED. Each archive is read and checked whole before
// the first of its letters is entered. What is in the ledger stays as it is. It may be killed at any point and run again.
func (c *LettersCarrier) Restore(ctx context.Context, day Day) (done LettersRestored, err error) {
	start := c.Now()
	defer func() { done.Duration = c.Now().Sub(start) }()
	done.Day = day
	s, err := c.Table.Open(ctx, day)
	if err != nil {
		return done, err
	}
	defer s.Close()
	all, err := Whole(ctx, c.Shelf, LettersName, &day)
	if err != nil {
		return done, err // a broken one too: what it holds would be missing
	}
	if len(all) == 0 {
		return done, ErrNone
	}
	for _, m := range all {
		if err := CheckWithin(ctx, c.Shelf, m, c.mostLine(), nil); err != nil {
			return done, err
		}
	}
	c.tell(StepVerified)
	for _, m := range all {
		var lines int64
		err := batched(ctx, c.Shelf, m, c.mostLine(), func(batch [][]byte) error {
			l, err := s.Load(ctx, m.Name(), c.By, m.Columns, batch)
			if err != nil {
				return err
			}
			c.tell(StepReading)
			if n := l.Stored + l.Equal + l.Differs; n != int64(len(batch)) {
				return &CannotError{fmt.Sprintf("archive %s was loaded, but of %d dead letters %d are in the ledger", m.Name(), len(batch), n),
					"they may have been removed meanwhile: restore again"}
			}
			lines += int64(len(batch))
			done.Stored += l.Stored
			done.Equal += l.Equal
			done.Differs += l.Differs
			if room := 20 - len(done.Conflicts); room > 0 {
				done.Conflicts = append(done.Conflicts, l.Conflicts[:min(room, len(l.Conflicts))]...)
			}
			return nil
		})
		done.Lines += lines
		if err != nil {
			return done, err
		}
		done.Archives = append(done.Archives, m.Name())
		c.tell(StepLoaded)
	}
	return done, nil
}

func (c *LettersCarrier) mostLine() int64 {
	if c.LineBytes > 0 {
		return c.LineBytes
	}
	return mostText
}
