package archive

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Restored is the result for the archives of a day.
type Restored struct {
	Day      Day
	Archives []string
	Loaded
	Lines    int64    // of all archives
	Missing  []string // archives that the day needs and that are not there
	Duration time.Duration
}

const (
	loadRows  = 10_000
	loadBytes = 16 << 20
)

// Restore loads all archives of a day into the table again. It reads and checks each whole archive before it stores
// its first row. Afterwards Postgres counts and hashes the rows. It does not change rows in the table. It may be
// killed at any point and run again.
func (c *Carrier) Restore(ctx context.Context, day Day) (done Restored, err error) {
	start := c.Now()
	defer func() { done.Duration = c.Now().Sub(start) }()
	done.Day = day
	s, err := c.Table.Open(ctx, day) // first, so that nobody archives more of the day from here on
	if err != nil {
		return done, err
	}
	defer s.Close()
	c.tell(StepTaken)
	all, err := Whole(ctx, c.Shelf, c.Table.Name(), &day)
	if err != nil {
		return done, err // also for a broken one, because its rows would be missing
	}
	superseded := Superseded(all)
	var wanted []*Manifest
	for _, m := range slices.Backward(all) { // if two have different versions of a row, the later one's is stored
		if !superseded[m.Name()] {
			wanted = append(wanted, m)
		}
	}
	if len(wanted) == 0 {
		return done, ErrNone
	}
	if err := c.whole(ctx, s, all, &done); err != nil {
		return done, err
	}
	for _, m := range wanted {
		if err := CheckWithin(ctx, c.Shelf, m, c.mostLine(), nil); err != nil {
			return done, err
		}
	}
	c.tell(StepVerified)
	where, err := s.Where(ctx)
	if err != nil {
		return done, err
	}
	switch where {
	case Leaving:
		return done, &CannotError{fmt.Sprintf("archiving %s was interrupted: its rows are out of the table but not dropped", day),
			fmt.Sprintf("finish it first: docket archive --day %s", day)}
	case Nowhere, Strays:
		if err := s.Settle(ctx); err != nil {
			return done, err
		}
	}
	c.tell(StepOpened)
	for _, m := range wanted {
		if err := c.load(ctx, s, m, &done); err != nil {
			return done, err
		}
		done.Archives = append(done.Archives, m.Name())
		c.tell(StepLoaded)
	}
	return done, s.Tally(ctx)
}

// whole refuses a day whose noted archives are not all there, as a restored day is not known to lack rows. Incomplete
// restores it nevertheless.
func (c *Carrier) whole(ctx context.Context, s OpenDay, there []*Manifest, done *Restored) error {
	left, err := s.Left(ctx)
	if err != nil || left == nil {
		return err
	}
	if done.Missing = left.Lacks(there); len(done.Missing) == 0 || c.Incomplete {
		return nil
	}
	return &CannotError{(&AbsentError{done.Day, done.Missing}).Error(), "bring it back and restore again; with --incomplete, what is there is restored, and nothing says later that rows are missing"}
}

func (c *Carrier) mostLine() int64 {
	if c.LineBytes > 0 {
		return c.LineBytes
	}
	return mostText
}

// load stores the rows of one archive.
func (c *Carrier) load(ctx context.Context, s OpenDay, m *Manifest, done *Restored) error {
	var total Total
	err := batched(ctx, c.Shelf, m, c.mostLine(), func(lines [][]byte) error {
		for len(lines) > 0 {
			n, err := c.take(ctx, len(lines))
			if err != nil {
				return err
			}
			l, err := s.Load(ctx, m.Columns, lines[:n])
			if err != nil {
				return err
			}
			c.tell(StepReading)
			total.Join(l.Total)
			done.add(n, l)
			lines = lines[n:]
		}
		return nil
	})
	if err != nil {
		return err
	}
	want, err := m.Total()
	if err != nil {
		return err
	}
	if total != want {
		return &CannotError{fmt.Sprintf("archive %s was loaded, but the rows in the table do not have its count and hash", m.Name()),
			"rows may have changed meanwhile: restore again; a trigger that changes rows is another possible cause"}
	}
	return nil
}

// take returns how many of these rows may be stored now.
func (c *Carrier) take(ctx context.Context, rows int) (granted int, err error) {
	if c.Take == nil {
		return rows, nil
	}
	if granted = min(rows, c.Take(ctx, rows)); granted < 1 {
		return 0, fmt.Errorf("wait for the limit on rows: %w", context.Cause(ctx))
	}
	return granted, nil
}

// mostConflicts is how many conflicts a result names.
const mostConflicts = 20

// add counts lines that were loaded.
func (r *Restored) add(lines int, l Loaded) {
	r.Lines += int64(lines)
	r.Stored += l.Stored
	r.Equal += l.Equal
	r.Again += l.Again
	r.Differs += l.Differs
	if room := mostConflicts - len(r.Conflicts); room > 0 {
		r.Conflicts = append(r.Conflicts, l.Conflicts[:min(room, len(l.Conflicts))]...)
	}
}
