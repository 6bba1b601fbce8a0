package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// startedSuffix ends the name of a marker. A run writes it before the first file of an archive, and removes it once the manifest
// is written. It is beside the manifests, where no engine looks for rows.
const startedSuffix = ".started"

const startedText = "A run of docket archive is writing this archive, or was killed. The next run of the day removes this file.\n"

// marked returns the archives with a marker and without a manifest, by day. The names are in order. A marker whose name is not
// that of an archive is left out.
func marked(names []string, table string) map[Day][]string {
	var days map[Day][]string
	for _, name := range names {
		archive, marker := strings.CutSuffix(name, startedSuffix)
		if of := nameForm.FindStringSubmatch(archive + manifestSuffix); !marker || of == nil || of[1] != table {
			continue
		}
		day, ok := DayOfName(archive)
		if _, whole := slices.BinarySearch(names, archive+manifestSuffix); !ok || whole {
			continue
		}
		if days == nil {
			days = map[Day][]string{}
		}
		days[day] = append(days[day], archive)
	}
	return days
}

// NotFinished says that an archive has a marker and no manifest. It is true of a run at work and of one that was killed.
func NotFinished(archive string) string {
	return "archive " + archive + " is not finished: a run is writing it, or was killed"
}

// finish ends what killed runs of the same database left of a day: markers, and the files of archives without a manifest.
// An archive with a marker may lose its files, so it has to run before the first archive of the day is relied upon: before
// a day is dropped, or letters are noted. keep says what stays of one without a manifest. Files without a marker stay: their
// archive may have lost its manifest. The day is locked. It may be killed at any point and run again.
func finish(ctx context.Context, shelf Shelf, table string, day Day, source string, keep func(archive string) staying) error {
	names, err := shelf.List(ctx, prefix(table, &day))
	if err != nil {
		return err
	}
	for _, marker := range names {
		archive, ok := strings.CutSuffix(marker, startedSuffix)
		if of := nameForm.FindStringSubmatch(archive + manifestSuffix); !ok || of == nil || of[4] != source {
			continue
		}
		whole, err := has(ctx, shelf, archive+manifestSuffix)
		if err != nil {
			return err
		}
		stays := keep(archive)
		if !whole && stays == allOfIt {
			continue
		}
		if !whole && stays == nothing {
			if err := removeFiles(ctx, shelf, table, day, archive); err != nil {
				return err
			}
			// A run that lost the lock may write its manifest meanwhile. It would name files that are gone.
			if err := shelf.Remove(ctx, archive+manifestSuffix); err != nil {
				return fmt.Errorf("remove %s%s: %w", archive, manifestSuffix, err)
			}
		}
		if err := shelf.Remove(ctx, marker); err != nil {
			return fmt.Errorf("remove %s: %w", marker, err)
		}
	}
	return nil
}

// staying is what stays of an archive that has a marker and no manifest.
type staying int

const (
	// nothing stays: a run was killed.
	nothing staying = iota
	// itsFiles stay without the marker: the archive was relied upon. A copy of the place can have the marker back.
	itsFiles
	// allOfIt stays: it is not known whether it was relied upon.
	allOfIt
)

// has reports whether a place has a file. It asks for the file, as a listing of some places is behind.
func has(ctx context.Context, shelf Shelf, name string) (bool, error) {
	r, err := shelf.Get(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for %s: %w", name, err)
	}
	return true, r.Close()
}

// finish ends what killed runs left of the day. left is nil if it is in the table. Where it is not known which archives a dropped
// day had, all that are not complete are left alone.
func (c *Carrier) finish(ctx context.Context, s OpenDay, day Day, left *Left) error {
	source, err := s.Source(ctx)
	if err != nil {
		return err
	}
	var needed []string
	if left != nil {
		needed = left.Archives
		if left.Forgotten != nil {
			needed = slices.Concat(needed, left.Forgotten.Archives)
		}
	}
	keep := func(archive string) staying {
		switch {
		case slices.Contains(needed, archive):
			return itsFiles
		case left != nil && left.Archives == nil:
			return allOfIt
		}
		return nothing
	}
	if err := finish(ctx, c.Shelf, c.Table.Name(), day, source.ID, keep); err != nil {
		return err
	}
	if left == nil { // the rows of the table were not looked at yet
		return nil
	}
	return c.bare(ctx, day, source.ID, keep)
}

// bare removes manifests of the same database whose files are all gone, and that keep lets go. The storage can carry out a
// request of a killed run after the next run removed its files. Such a manifest is the only trace of an archive that was lost
// otherwise. So the rows of the day have to be in the table, or a note has to say which archives the day needs.
func (c *Carrier) bare(ctx context.Context, day Day, source string, keep func(archive string) staying) error {
	all, err := Whole(ctx, c.Shelf, c.Table.Name(), &day)
	if err := notBroken(err); err != nil {
		return err
	}
	listed, err := ListFiles(ctx, c.Shelf, c.Table.Name(), &day)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.Source.ID != source || len(m.Files) == 0 || len(listed.Lacks(m)) < len(m.Files) || keep(m.Name()) != nothing {
			continue
		}
		some, err := hasSome(ctx, c.Shelf, m)
		if err != nil {
			return err
		}
		if some {
			continue
		}
		if err := c.Shelf.Remove(ctx, m.Name()+manifestSuffix); err != nil {
			return fmt.Errorf("remove %s%s: %w", m.Name(), manifestSuffix, err)
		}
	}
	return nil
}

// hasSome reports whether a place has a file of an archive. It asks for each, as a listing of some places is behind.
func hasSome(ctx context.Context, shelf Shelf, m *Manifest) (bool, error) {
	for _, of := range m.Files {
		if there, err := has(ctx, shelf, of.Name); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// removeFiles removes the parts of an archive. A directory may have the beginning of one more.
func removeFiles(ctx context.Context, shelf Shelf, table string, day Day, archive string) error {
	for _, start := range []string{archive, Folder(table, day) + archive} {
		names, err := shelf.List(ctx, start+".")
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return partOf(name) == 0 })
		last := 0
		for _, name := range names {
			last = max(last, partOf(name))
		}
		suffix := linesSuffix
		if start != archive {
			suffix = parquetSuffix
		}
		for _, name := range append([]string{fmt.Sprintf("%s.%04d%s", start, last+1, suffix)}, names...) {
			if err := shelf.Remove(ctx, name); err != nil {
				return fmt.Errorf("remove %s: %w", name, err)
			}
		}
	}
	return nil
}

// partOf returns the number of a part, from 1; 0: the name is not that of one.
func partOf(file string) int {
	_, base := cutFolder(file)
	of := nameForm.FindStringSubmatch(base)
	if of == nil {
		return 0
	}
	number, _, _ := strings.Cut(of[5][1:], ".")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}
