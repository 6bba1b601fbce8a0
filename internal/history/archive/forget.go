package archive

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Left is a day that an archive took out of the table.
type Left struct {
	Day
	Forgotten *Forgotten // nil: it was not
	// Archives are the names of those that hold its decisions, noted when it was dropped. Those that were forgotten are in
	// Forgotten. nil: they are not known.
	Archives []string
}

// needed reports whether the day needs an archive. One that a killed run took out and nobody dropped needs none yet.
func (l *Left) needed() bool {
	return len(l.Archives) > 0 || l.Archives == nil && l.Forgotten == nil
}

// AnyNeeded reports whether any of the days needs an archive.
func AnyNeeded(left []Left) bool {
	for i := range left {
		if left[i].needed() {
			return true
		}
	}
	return false
}

// Forgotten says who gave up on purpose a day that no archive has, and why.
type Forgotten struct {
	At         time.Time
	By, Reason string
	// Archives are the names of those that the day needed before. It needs them again if one of them comes back.
	Archives []string
}

func (f *Forgotten) String() string {
	return fmt.Sprintf("forgotten on purpose by %s at %s: %s", f.By, f.At.UTC().Format(time.RFC3339), f.Reason)
}

// Holds reports whether the day is still forgotten, although the storage has these archives of it. One that was made later
// has only decisions that came late. An earlier one has come back.
func (f *Forgotten) Holds(all []*Manifest) bool {
	return !slices.ContainsFunc(all, func(m *Manifest) bool { return m.CreatedAt.Before(f.At) || slices.Contains(f.Archives, m.Name()) })
}

// Forget notes that a day which left the table is given up. It returns the note of an earlier time, if the day needs
// no archive that was noted since, and changes nothing then. Otherwise the new note takes its place. It refuses a day
// that is in the table or did not leave it, and one with a file on the shelf. A dry run only looks whether it would.
func (c *Carrier) Forget(ctx context.Context, day Day, reason string, dry bool) (earlier *Forgotten, err error) {
	s, err := c.Table.Open(ctx, day) // first, so that nobody archives or restores it meanwhile
	if err != nil {
		return nil, err
	}
	defer s.Close()
	where, err := s.Where(ctx)
	if err != nil {
		return nil, err
	}
	// Decisions in the default partition came after the day had left. They are answered from there.
	if where != Nowhere && where != Strays {
		return nil, &CannotError{fmt.Sprintf("%s is still in the table", day), fmt.Sprintf("only a day that an archive took out can be forgotten: docket archive --day %s", day)}
	}
	left, err := s.Left(ctx)
	if err != nil {
		return nil, err
	}
	if left == nil {
		return nil, &CannotError{fmt.Sprintf("%s did not leave the table by an archive", day), "no answer needs it: nothing has to be forgotten"}
	}
	name, err := c.anyFile(ctx, day)
	if err != nil {
		return nil, fmt.Errorf("it is not known whether an archive has the day: %w", err)
	}
	if name != "" {
		return nil, &CannotError{fmt.Sprintf("%s is not gone: %s has %s", day, c.Shelf, name), "to keep what is there: docket restore --incomplete, and archive the day again. If it is given up, too, remove all files of the day first"}
	}
	if left.Forgotten != nil && len(left.Archives) == 0 {
		return left.Forgotten, nil
	}
	if dry {
		return nil, nil
	}
	return nil, s.Forget(ctx, c.By, reason)
}

// anyFile returns the name of a file of the day on the shelf, also of an archive without a manifest; empty: there is none.
func (c *Carrier) anyFile(ctx context.Context, day Day) (string, error) {
	if place, ok := c.Shelf.(interface{ Present() error }); ok {
		if err := place.Present(); err != nil {
			return "", err
		}
	}
	of := prefix(c.Table.Name(), &day)
	for _, start := range []string{of, Folder(c.Table.Name(), day) + of} {
		names, err := c.Shelf.List(ctx, start)
		if err != nil {
			return "", err
		}
		if len(names) > 0 {
			return names[0], nil
		}
	}
	return "", nil
}
