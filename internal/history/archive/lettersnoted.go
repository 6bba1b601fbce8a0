package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNotedUnread says that it is not known which archives of dead letters the ledger noted. See [ErrLeftUnread].
var ErrNotedUnread = errors.New("this login may not read dead_letter_archives, or the database has no such table; run docket migrate, and docs/desk-grants.sql where you use it")

// Noted is an archive of dead letters that the ledger named. Its letters may have left the ledger.
type Noted struct {
	Archive   string
	At        time.Time  // when it was noted
	Forgotten *Forgotten // nil: it was not given up
}

// Day returns the day in the name of the archive. A name without a day has that of the note.
func (n *Noted) Day() Day {
	if day, ok := DayOfName(n.Archive); ok {
		return day
	}
	return DayOf(n.At)
}

// AbsentLetters returns the noted archives that are not there: lost, by day and name, and those that were given up. broken are
// names of archives whose manifest cannot be read. These are there.
func AbsentLetters(noted []Noted, there []*Manifest, broken ...string) (lost, forgotten []Noted) {
	has := make(map[string]bool, len(there)+len(broken))
	for _, m := range there {
		has[m.Name()] = true
	}
	for _, name := range broken {
		has[name] = true
	}
	for _, n := range noted {
		switch {
		case has[n.Archive]:
		case n.Forgotten != nil:
			forgotten = append(forgotten, n)
		default:
			lost = append(lost, n)
		}
	}
	slices.SortFunc(lost, func(a, b Noted) int {
		return cmp.Or(a.Day().Compare(b.Day().Time), cmp.Compare(a.Archive, b.Archive))
	})
	return lost, forgotten
}

// AbsentByDay makes an [*AbsentError] of the archives of each day, in their order.
func AbsentByDay(lost []Noted) (all []*AbsentError) {
	for i := range lost {
		day := lost[i].Day()
		if n := len(all); n == 0 || all[n-1].Day != day {
			all = append(all, &AbsentError{Day: day})
		}
		of := all[len(all)-1]
		of.Archives = append(of.Archives, lost[i].Archive)
	}
	return all
}

// GivenUp says that archives of dead letters were given up; empty: none was.
func GivenUp(forgotten []Noted) string {
	switch n := len(forgotten); n {
	case 0:
		return ""
	case 1:
		return forgotten[0].Archive + " was " + forgotten[0].Forgotten.String()
	default:
		return fmt.Sprintf("%d archives were forgotten on purpose, like %s: it was %s", n, forgotten[0].Archive, forgotten[0].Forgotten)
	}
}

// LettersForgotten is the result of [LettersCarrier.Forget].
type LettersForgotten struct {
	// Archives are the names of those that are given up now; empty: nothing was changed.
	Archives []string
	// Earlier is the last note of before, where nothing was changed.
	Earlier *Forgotten
}

// Forget notes that archives of dead letters are given up: those of a day that the ledger noted, and that have no file on the
// shelf. Letters of theirs that are still in the ledger can be archived again. If all such archives were given up before, it
// changes nothing. It refuses a day of which none is missing, and an archive that lost its manifest alone. A dry run only looks
// whether it would.
func (c *LettersCarrier) Forget(ctx context.Context, day Day, reason string, dry bool) (done LettersForgotten, err error) {
	s, err := c.Table.Open(ctx, day) // first, so that nobody archives or restores them meanwhile
	if err != nil {
		return done, err
	}
	defer s.Close()
	noted, err := s.Noted(ctx)
	if err != nil {
		return done, err
	}
	noted = slices.DeleteFunc(noted, func(n Noted) bool { return n.Day() != day })
	there, broken, err := c.there(ctx, day)
	if err != nil {
		return done, fmt.Errorf("it is not known whether archives are missing: %w", err)
	}
	lost, forgotten := AbsentLetters(noted, there, broken...)
	switch {
	case len(lost) > 0:
	case len(forgotten) == 0:
		return done, &CannotError{fmt.Sprintf("no archive of dead letters of %s is missing", day), "nothing has to be forgotten: docket archive list names those that are missing"}
	default:
		last := slices.MaxFunc(forgotten, func(a, b Noted) int { return a.Forgotten.At.Compare(b.Forgotten.At) })
		done.Earlier = last.Forgotten
		return done, nil
	}
	names := make([]string, len(lost))
	for i := range lost {
		names[i] = lost[i].Archive
		files, err := c.Shelf.List(ctx, names[i])
		if err != nil {
			return done, fmt.Errorf("it is not known whether archives are missing: %w", err)
		}
		if len(files) > 0 {
			return done, &CannotError{fmt.Sprintf("%s is not gone: %s has %s", names[i], c.Shelf, files[0]), "bring its manifest back from a copy. If it is given up, too, remove all of its files first"}
		}
	}
	if !dry {
		if err := s.Forget(ctx, names, c.By, reason); err != nil {
			return done, err
		}
	}
	done.Archives = names
	return done, nil
}

// there returns the archives of a day, and the names of those that are broken.
func (c *LettersCarrier) there(ctx context.Context, day Day) (all []*Manifest, broken []string, err error) {
	if place, ok := c.Shelf.(interface{ Present() error }); ok {
		if err := place.Present(); err != nil {
			return nil, nil, err
		}
	}
	all, err = Whole(ctx, c.Shelf, LettersName, &day)
	if other := notBroken(err); other != nil {
		return nil, nil, other
	}
	return all, BrokenNames(err), nil
}
