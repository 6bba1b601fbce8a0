package archive

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"docket/internal/record/subject"
)

// LettersName is the prefix of archives of dead letters. They are in the same storage as those of decisions.
const LettersName = "dead_letters"

// LettersHeld is a day on which dead letters were closed that may be the only copy of a decision and are in no
// archive.
type LettersHeld struct {
	Day     Day
	Letters int64
	Bytes   int64 // of their values
}

// LettersTable is the part of the ledger that archives need.
type LettersTable interface {
	// Days returns the days before a time on which such letters were closed, in order.
	Days(ctx context.Context, before Day) ([]LettersHeld, error)
	// Open locks a day for this process. It returns [ErrBusy] if another process has it. Close releases it, and so
	// does a lost connection.
	Open(ctx context.Context, day Day) (LettersSession, error)
}

// LettersSession is one day of the ledger.
type LettersSession interface {
	// Columns returns the columns of a line.
	Columns() []Column
	// Source identifies the database. An error says that another process may have the day.
	Source(ctx context.Context) (Source, error)
	// Waiting counts the letters of the day that are in no archive.
	Waiting(ctx context.Context) (int64, error)
	// Read passes each of them to each in the order of the ids, from one snapshot. line is valid until each returns.
	Read(ctx context.Context, each func(line []byte) error) error
	// Note records that an archive has the letters of these lines. It skips letters that are in an archive already,
	// or differ from their lines by a hash that Postgres computes. It may be repeated.
	Note(ctx context.Context, archive, by string, lines [][]byte) (noted int64, err error)
	// Load enters letters that are not in the ledger, as RESOLVED and with their archive. It may be repeated.
	Load(ctx context.Context, archive, by string, columns []Column, lines [][]byte) (LettersLoaded, error)
	// Noted returns the archives that the ledger named, of all days. It returns [ErrNotedUnread] if they are not known.
	Noted(ctx context.Context) ([]Noted, error)
	// Archived is that of [OpenDay].
	Archived(ctx context.Context) (bool, error)
	// Forget notes that archives were given up. Letters of the ledger are in none of them any more.
	Forget(ctx context.Context, archives []string, by, reason string) error
	Close()
}

// LettersLoaded has the results for lines.
type LettersLoaded struct {
	Stored  int64 // now
	Equal   int64 // were there, with the same value
	Differs int64 // were there with another value, which stays
	// Conflicts are ids of some that differ.
	Conflicts []string
}

// LettersCarrier archives and restores closed dead letters.
type LettersCarrier struct {
	Table  LettersTable
	Shelf  Shelf
	By     string // the operator
	Docket string // version of the program
	Now    func() time.Time
	// Told is called after each step; nil: not called.
	Told func(Step)
	// PartRows limits the lines of a part; 0: a million.
	PartRows int64
	// LineBytes limits the lines of a restored archive; 0: the longest that Postgres can make. See [MostLine].
	LineBytes int64
}

// LettersArchived is the result for a day.
type LettersArchived struct {
	Day      Day
	Archives []string // their names; empty if there was nothing
	Letters  int64    // newly archived letters
	Bytes    int64    // in the storage
	Files    int
	Reused   bool // an earlier archive has some of them
	Duration time.Duration
}

// Archive writes the letters that were closed on a day and are in no archive, and reads them back. Then it notes
// their archive in the ledger, which allows their removal. It removes nothing itself. It may be killed at any point
// and run again.
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
	source, err := c.finish(ctx, s, day)
	if err != nil {
		return done, err
	}
	left, err := s.Waiting(ctx)
	if err != nil || left == 0 {
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

// finish ends what killed runs left of the day, and returns the source. It refuses a directory that is not mounted. An archive that the ledger noted was relied upon.
func (c *LettersCarrier) finish(ctx context.Context, s LettersSession, day Day) (Source, error) {
	if err := mounted(ctx, c.Shelf, s.Archived); err != nil {
		return Source{}, err
	}
	source, err := s.Source(ctx)
	if err != nil {
		return source, err
	}
	noted, err := s.Noted(ctx)
	unknown := errors.Is(err, ErrNotedUnread)
	if err != nil && !unknown {
		return source, err
	}
	return source, finish(ctx, c.Shelf, LettersName, day, source.ID, func(archive string) staying {
		switch {
		case unknown:
			return allOfIt
		case slices.ContainsFunc(noted, func(n Noted) bool { return n.Archive == archive }):
			return itsFiles
		}
		return nothing
	})
}

func (c *LettersCarrier) tell(s Step) {
	if c.Told != nil {
		c.Told(s)
	}
}

// again notes the letters of archives that were complete before the ledger noted them. It skips a broken one.
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

// note reads an archive back and notes its letters. It reads all of it first, because only a proved archive counts.
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

// Keep writes letters that are in no ledger to an archive of a day, and reads it back. The day may be today. read
// passes the lines. Without lines it makes no archive. A killed process can run it again. Then two archives have the
// letters, and a restore enters each once.
func (c *LettersCarrier) Keep(ctx context.Context, day Day, read func(each func(line []byte) error) error) (archive string, letters int64, err error) {
	s, err := c.Table.Open(ctx, day)
	if err != nil {
		return "", 0, err
	}
	defer s.Close()
	source, err := c.finish(ctx, s, day)
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
	// Check that the day is still locked, so nobody could have taken these files for those of a killed run.
	if _, err := s.Source(ctx); err != nil {
		return "", 0, err
	}
	return m.Name(), letters, nil
}

// errNoLines says that there is nothing to write.
var errNoLines = errors.New("there are no lines")

// write makes a new archive of lines.
func (c *LettersCarrier) write(ctx context.Context, s LettersSession, source Source, day Day, read func(each func(line []byte) error) error) (*Manifest, error) {
	generation, err := next(ctx, c.Shelf, LettersName, day)
	if err != nil {
		return nil, err
	}
	var attempt [4]byte
	_, _ = rand.Read(attempt[:]) // never fails
	m := &Manifest{
		Format: FormatLines, Docket: c.Docket, Table: LettersName, Day: day.String(), Generation: generation, Source: source, Attempt: hex.EncodeToString(attempt[:]),
		Columns: s.Columns(), CreatedBy: c.By, Files: []File{},
	}
	c.tell(StepReading)
	w := newWriter(ctx, c.Shelf, m, subject.Spec{})
	defer w.abandon()
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
		return nil, err
	}
	m.Files, m.Rows, m.Hash, m.CreatedAt = append(m.Files, w.files...), w.total.Rows, w.total.Hash(), c.Now().UTC()
	// Check that the day is still locked. After a lost connection another process could have removed these files.
	if _, err := s.Source(ctx); err != nil {
		return nil, err
	}
	return m, w.seal(m)
}

// LettersRestored is the result for the archives of a day.
type LettersRestored struct {
	Day      Day
	Archives []string
	LettersLoaded
	Lines    int64 // of all archives
	Duration time.Duration
}

// Restore enters the letters of all archives of a day into the ledger again, as RESOLVED. It reads and checks each
// whole archive before it enters its first letter. It does not change letters that are in the ledger. It may be
// killed at any point and run again.
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
		return done, err // also for a broken one, because its letters would be missing
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
