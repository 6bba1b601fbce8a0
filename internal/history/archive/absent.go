package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Lacks returns the noted archives of the day that are not there: those without a manifest that no archive which is there
// replaces. broken are names of archives whose manifest cannot be read. These are not absent.
func (l *Left) Lacks(there []*Manifest, broken ...string) (names []string) {
	superseded := Superseded(there)
	for _, name := range l.needs(there) {
		if !superseded[name] && !slices.Contains(broken, name) && !slices.ContainsFunc(there, func(m *Manifest) bool { return m.Name() == name }) {
			names = append(names, name)
		}
	}
	return names
}

// needs returns the names of the archives that the day needs beside those that are there. An archive that comes back after the
// day was forgotten needs those that were forgotten with it.
func (l *Left) needs(there []*Manifest) []string {
	if l.Forgotten == nil || l.Forgotten.Holds(there) {
		return l.Archives
	}
	all := slices.Concat(l.Archives, l.Forgotten.Archives)
	slices.Sort(all)
	return slices.Compact(all)
}

// AbsentError says that archives of a day are missing although the day left the table with them.
type AbsentError struct {
	Day      Day
	Archives []string // empty: there is none at all
}

func (e *AbsentError) Error() string {
	switch n := len(e.Archives); n {
	case 0:
		return fmt.Sprintf("%s left the table, and no archive has it: it was removed, or is elsewhere", e.Day)
	case 1:
		return absent(e.Archives[0])
	default:
		return fmt.Sprintf("archives %s have no manifest any more: they were removed, or are elsewhere", strings.Join(e.Archives, ", "))
	}
}

// absent says that one archive is missing.
func absent(name string) string {
	return "archive " + name + " has no manifest any more: it was removed, or is elsewhere"
}

// Absent returns an [*AbsentError] for each day that left the table and lacks archives, in order. It leaves out days that were
// forgotten on purpose.
func Absent(left []Left, there []*Manifest, broken ...string) (all []*AbsentError) {
	for i := range left {
		if err := left[i].Absent(there, broken...); err != nil {
			all = append(all, err)
		}
	}
	return all
}

// Absent returns an error if the day lacks archives; nil: it does not, or it was forgotten on purpose.
func (l *Left) Absent(there []*Manifest, broken ...string) *AbsentError {
	of := l.of(there)
	some := len(of) > 0 || slices.ContainsFunc(broken, func(name string) bool { return dayOfName(name) == l.String() })
	lacks := l.Lacks(of, broken...)
	switch {
	case some && len(lacks) == 0, !some && l.Forgotten != nil && len(lacks) == 0:
		return nil
	case some:
		return &AbsentError{l.Day, lacks}
	}
	return &AbsentError{Day: l.Day}
}

// of returns the manifests of the day.
func (l *Left) of(all []*Manifest) (of []*Manifest) {
	for _, m := range all {
		if m.Day == l.String() {
			of = append(of, m)
		}
	}
	return of
}

// DayOfName returns the day in the name of an archive.
func DayOfName(name string) (day Day, ok bool) {
	day, err := ParseDay(dayOfName(name))
	return day, err == nil
}

func dayOfName(name string) string {
	if of := nameForm.FindStringSubmatch(name + manifestSuffix); of != nil {
		return of[2]
	}
	return ""
}

// BrokenNames returns the archives that an error of [Whole] calls broken.
func BrokenNames(err error) (names []string) {
	var one *BrokenError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			names = append(names, BrokenNames(err)...)
		}
	} else if errors.As(err, &one) {
		names = append(names, one.Archive)
	}
	return names
}

// Files are the files of archives in a listing. It tells what is missing without reading a file.
type Files struct {
	there map[string]bool
	// Alone has the files that belong to no manifest, by the name of their archive. They may be the only copy of decisions.
	Alone map[string][]string
	// Unfinished has those of archives that a run is writing, or was writing when it was killed. There may be none yet.
	Unfinished map[string][]string
}

// ListFiles lists the files of archives of one table; day nil: of all days.
func ListFiles(ctx context.Context, shelf Shelf, table string, day *Day) (*Files, error) {
	folders := Folders(table)
	if day != nil {
		folders = Folder(table, *day) + prefix(table, day)
	}
	lists := make([][]string, 2)
	for i, start := range []string{folders, prefix(table, day)} { // the manifests last: an archive may be written meanwhile
		var err error
		if lists[i], err = shelf.List(ctx, start); err != nil {
			return nil, err
		}
	}
	f := &Files{there: map[string]bool{}, Alone: map[string][]string{}, Unfinished: map[string][]string{}}
	for _, name := range slices.Concat(lists...) {
		f.there[name] = true
	}
	for name := range f.there {
		archive, marker := strings.CutSuffix(name, startedSuffix)
		if !marker {
			archive = archiveOf(name)
		}
		switch {
		case archive == "" || f.there[archive+manifestSuffix]:
		case marker:
			f.Unfinished[archive] = append(f.Unfinished[archive], nil...) // also without a file yet
		case f.there[archive+startedSuffix]:
			f.Unfinished[archive] = append(f.Unfinished[archive], name)
		default:
			f.Alone[archive] = append(f.Alone[archive], name)
		}
	}
	return f, nil
}

// Join adds the files of another table.
func (f *Files) Join(o *Files) {
	maps.Copy(f.there, o.there)
	maps.Copy(f.Alone, o.Alone)
	maps.Copy(f.Unfinished, o.Unfinished)
}

// Archives counts the archives that have a manifest.
func (f *Files) Archives() (n int) {
	for name := range f.there {
		if strings.HasSuffix(name, manifestSuffix) && archiveOf(name) != "" {
			n++
		}
	}
	return n
}

// Lacks returns the files of an archive that are missing.
func (f *Files) Lacks(m *Manifest) (names []string) {
	for _, of := range m.Files {
		if !f.there[of.Name] {
			names = append(names, of.Name)
		}
	}
	return names
}
