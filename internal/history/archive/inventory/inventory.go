// Package inventory says what a place of archives has, and what it lacks. It reads the manifests and lists the files. It
// reads no other file.
package inventory

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/archive/nightly"
)

// Inventory is what docket archive list tells.
type Inventory struct {
	// Where is the place, for people.
	Where string
	// Archives are those of decisions and, after them, those of dead letters, each by day and generation.
	Archives []Archive
	// Broken are the archives whose manifest cannot be read. They are in no other list.
	Broken []*archive.BrokenError
	// Absent are days that left the table and lack archives, by day. After them come days whose archives of dead letters are
	// missing.
	Absent []*archive.AbsentError
	// LeftUnknown says why it is not known of days, or of dead letters, whether archives are absent; empty: it is known.
	LeftUnknown string
	// Alone are the files without a manifest, by the name of their archive.
	Alone []Alone
	// LeftOff are the days that were taken out of the table and not dropped.
	LeftOff []archive.Day
	// LeftOffUnknown says why these days are not known; empty: they are.
	LeftOffUnknown string
	// Nightly is what the desk that archives days by itself reported.
	Nightly Nightly
	// Manifests are those of Archives. An inventory that came from a desk has none.
	Manifests []*archive.Manifest
	// More counts the entries of Broken, Absent, Alone and LeftOff that are left out. It is 0 where the place itself is read.
	More int
}

// OfDay returns the part about one day. It has no manifests, and neither LeftOff nor Nightly.
func (v *Inventory) OfDay(day archive.Day) *Inventory {
	of := func(name string) bool { at, ok := archive.DayOfName(name); return ok && at == day }
	return &Inventory{
		Where: v.Where, LeftUnknown: v.LeftUnknown, More: v.More,
		Archives: keep(v.Archives, func(a Archive) bool { return a.Day == day.String() }),
		Broken:   keep(v.Broken, func(b *archive.BrokenError) bool { return of(b.Archive) }),
		Absent:   keep(v.Absent, func(a *archive.AbsentError) bool { return a.Day == day }),
		Alone:    keep(v.Alone, func(a Alone) bool { return of(a.Archive) }),
	}
}

func keep[T any](all []T, fits func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !fits(one) })
}

// Archive is an archive with a manifest.
type Archive struct {
	Name, Table, Day string
	Format           int
	Rows, Bytes      int64
	Files            int
	Hash             string
	// Superseded says that a later archive of the day has its rows.
	Superseded bool
	CreatedAt  time.Time
	CreatedBy  string
	// Missing are the files that the manifest names and the place does not have.
	Missing []string
}

// Alone is an archive without a manifest.
type Alone struct {
	Archive string
	Files   int
	// Unfinished says that a run is writing it, or was killed.
	Unfinished bool
}

// Nightly is what is known of the desk that archives days by itself.
type Nightly struct {
	// Note is what it wrote; nil: it wrote nothing.
	Note *nightly.Note
	// Wanted says that the settings want such a desk.
	Wanted bool
	// Unknown says why the note is not known; empty: it is.
	Unknown string
}

// Source is a place of archives, and the database that they come from.
type Source struct {
	Shelf archive.Shelf
	Table archive.Table
	// Left returns the days that left the table; nil: they are not known, and no archive is absent.
	Left func(ctx context.Context) ([]archive.Left, error)
	// Letters returns the archives of dead letters that the ledger noted; nil: they are not known, and none is absent.
	Letters func(ctx context.Context) ([]archive.Noted, error)
	// Day is the only day to look at; nil: all days.
	Day *archive.Day
	// Whole returns the archives of a table that have a manifest, as [archive.Whole] does; nil: that does it.
	Whole func(ctx context.Context, table string) ([]*archive.Manifest, error)
	// Note returns the note of the desk that archives days by itself, and when it was written; nil: there is none.
	Note func(ctx context.Context) (text string, wrote time.Time, err error)
	// Wanted says that the settings want such a desk.
	Wanted bool
	// Today is the day from which on days are not looked for in the table; zero: none is.
	Today archive.Day
	// Told is an error in words.
	Told func(error) string
}

// Take looks at a place. A manifest that cannot be read, or a database that does not answer, is part of the inventory.
// The error says that the place could not be listed.
func (s Source) Take(ctx context.Context) (*Inventory, error) {
	v := &Inventory{Where: s.Shelf.String()}
	// First, because a day leaves the table after its archive was written, and an archive of dead letters is noted after that.
	left := s.left(ctx, v)
	noted := s.noted(ctx, v)
	all, err := s.archives(ctx, v)
	if err != nil {
		return nil, err
	}
	files, err := archive.ListFiles(ctx, s.Shelf, s.Table.Name(), s.Day)
	if err != nil {
		return nil, err
	}
	more, err := archive.ListFiles(ctx, s.Shelf, archive.LettersName, s.Day)
	if err != nil {
		return nil, err
	}
	files.Join(more)
	v.Manifests = all
	v.lacks(left, noted, files, s.Table.Name())
	s.leftOff(ctx, v)
	s.nightly(ctx, v)
	return v, ctx.Err()
}

func (s Source) left(ctx context.Context, v *Inventory) []archive.Left {
	if s.Left == nil {
		return nil
	}
	left, err := s.Left(ctx)
	if err != nil {
		v.LeftUnknown = s.Told(err)
		return nil
	}
	if s.Day != nil {
		left = slices.DeleteFunc(slices.Clone(left), func(l archive.Left) bool { return l.Day != *s.Day })
	}
	return left
}

func (s Source) noted(ctx context.Context, v *Inventory) []archive.Noted {
	if s.Letters == nil {
		return nil
	}
	noted, err := s.Letters(ctx)
	if err != nil {
		if told := s.Told(err); told != v.LeftUnknown { // a database that is away says the same twice
			v.LeftUnknown = strings.TrimPrefix(v.LeftUnknown+"; "+told, "; ")
		}
		return nil
	}
	if s.Day != nil {
		noted = slices.DeleteFunc(slices.Clone(noted), func(n archive.Noted) bool { return n.Day() != *s.Day })
	}
	return noted
}

// archives returns the manifests. It notes those that cannot be read.
func (s Source) archives(ctx context.Context, v *Inventory) (all []*archive.Manifest, err error) {
	whole := s.Whole
	if whole == nil {
		whole = func(ctx context.Context, table string) ([]*archive.Manifest, error) {
			return archive.Whole(ctx, s.Shelf, table, s.Day)
		}
	}
	for _, table := range []string{s.Table.Name(), archive.LettersName} {
		some, err := whole(ctx, table)
		broken, other := brokenIn(err)
		if other != nil {
			return nil, other
		}
		all, v.Broken = append(all, some...), append(v.Broken, broken...)
	}
	return all, nil
}

// brokenIn returns the broken archives of an error. other is the error if it has another one, too.
func brokenIn(err error) (broken []*archive.BrokenError, other error) {
	if err == nil {
		return nil, nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			some, wrong := brokenIn(one)
			broken, other = append(broken, some...), errors.Join(other, wrong)
		}
		return broken, other
	}
	var one *archive.BrokenError
	if !errors.As(err, &one) {
		return nil, err
	}
	return []*archive.BrokenError{one}, nil
}

// lacks compares the archives with the days that left the table, with those that the ledger noted, and with the files that are
// there.
func (v *Inventory) lacks(left []archive.Left, noted []archive.Noted, files *archive.Files, table string) {
	superseded := archive.Superseded(v.Manifests)
	var decisions, letters []*archive.Manifest
	for _, m := range v.Manifests {
		if m.Table == table {
			decisions = append(decisions, m)
		} else {
			letters = append(letters, m)
		}
		v.Archives = append(v.Archives, Archive{
			Name: m.Name(), Table: m.Table, Day: m.Day, Format: m.Format, Rows: m.Rows, Bytes: m.Bytes(), Files: len(m.Files), Hash: m.Hash,
			Superseded: superseded[m.Name()], CreatedAt: m.CreatedAt, CreatedBy: m.CreatedBy, Missing: files.Lacks(m),
		})
	}
	broken := make([]string, 0, len(v.Broken))
	for _, b := range v.Broken {
		broken = append(broken, b.Archive)
	}
	lost, _ := archive.AbsentLetters(noted, letters, broken...)
	v.Absent = append(archive.Absent(left, decisions, broken...), archive.AbsentByDay(lost)...)
	for _, some := range []struct {
		files      map[string][]string
		unfinished bool
	}{{files.Unfinished, true}, {files.Alone, false}} {
		for _, name := range slices.Sorted(maps.Keys(some.files)) {
			v.Alone = append(v.Alone, Alone{name, len(some.files[name]), some.unfinished})
		}
	}
}

// leftOff notes the days that were taken out of the table and not dropped.
func (s Source) leftOff(ctx context.Context, v *Inventory) {
	if s.Today == (archive.Day{}) {
		return
	}
	held, err := s.Table.Days(ctx, s.Today)
	if err != nil {
		v.LeftOffUnknown = s.Told(err)
	}
	for _, h := range held {
		if h.Location == archive.Leaving {
			v.LeftOff = append(v.LeftOff, h.Day)
		}
	}
}

func (s Source) nightly(ctx context.Context, v *Inventory) {
	v.Nightly.Wanted = s.Wanted
	if s.Note == nil {
		return
	}
	text, wrote, err := s.Note(ctx)
	if err == nil {
		v.Nightly.Note, err = nightly.ParseNote(text, wrote)
	}
	if err != nil {
		v.Nightly.Unknown = s.Told(err)
	}
}
