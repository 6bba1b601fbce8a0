// Package archive moves whole days of decisions out of the table and back. It writes a day, reads it back and
// compares count and hash with the table before it drops anything.
//
// It imports no SQL and no client of object storage.
package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// Shelf is the storage of archives: a directory or a bucket. A name is a file's own, or a table's folder, a folder
// day=YYYY-MM-DD and a file's name: see [Folder].
type Shelf interface {
	// Put stores the bytes of r under name, all or nothing, durable when it returns. It replaces what was there.
	Put(ctx context.Context, name string, r io.Reader) error
	// Get opens a stored file. It returns [fs.ErrNotExist] if there is none.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Range opens length bytes of a stored file from offset on. It reads no others. It returns [fs.ErrNotExist] if there
	// is no such file. If the file has fewer bytes than asked for, reading fails, at its end at the latest.
	Range(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// List returns the names that begin with prefix, in order. It leaves out those in folders behind prefix,
	// unless that is [Folders]. See [Lists].
	List(ctx context.Context, prefix string) ([]string, error)
	// Remove deletes a file. A missing file is not an error.
	Remove(ctx context.Context, name string) error
	// String returns its place for people, without secrets.
	String() string
}

// Aging is a [Shelf] that keeps files in storage classes by the age of their day.
type Aging interface {
	// Age moves each file to the class of its age, and returns how many it moved. goOn is asked before each. It may be
	// killed at any point and run again. A file that the storage refuses to move does not stop it: the others are moved, and
	// the error is an [*AgingError].
	Age(ctx context.Context, goOn func() error) (files int, err error)
}

// AgingError says which files did not get the class of their age. They have the class that they had.
type AgingError struct {
	Files []AgingFault // at most [MostAgingFaults]
	All   int          // all of them
}

// MostAgingFaults limits the files that an [AgingError] names.
const MostAgingFaults = 100

// AgingFault is a file and why its class was not changed.
type AgingFault struct {
	File string
	Err  error
}

// Add notes a file.
func (e *AgingError) Add(file string, err error) {
	if e.All++; len(e.Files) < MostAgingFaults {
		e.Files = append(e.Files, AgingFault{file, err})
	}
}

func (e *AgingError) Error() string {
	first := e.Files[0]
	if e.All == 1 {
		return fmt.Sprintf("%s: %v", first.File, first.Err)
	}
	return fmt.Sprintf("%s: %v; and %d more files", first.File, first.Err, e.All-1)
}

// Unwrap returns the errors of the files.
func (e *AgingError) Unwrap() []error {
	all := make([]error, len(e.Files))
	for i, f := range e.Files {
		all[i] = f.Err
	}
	return all
}

// Folder returns the folder of a table's files of a day, with a slash at its end. Engines read the first part as a
// table, and the second as its column day.
func Folder(table string, day Day) string { return table + "/day=" + day.String() + "/" }

// Folders begins each [Folder] of a table.
func Folders(table string) string { return table + "/day=" }

var (
	folderForm  = regexp.MustCompile(`^[a-z_]+/day=\d{4}-\d{2}-\d{2}/$`)
	foldersForm = regexp.MustCompile(`^[a-z_]+/day=$`)
)

// Lists reports whether a listing of names that begin with prefix has this one.
func Lists(prefix, name string) bool {
	folder, base := cutFolder(name)
	of, _ := cutFolder(prefix)
	return strings.HasPrefix(name, prefix) && base != "" && (folder == of || foldersForm.MatchString(prefix) && folderForm.MatchString(folder))
}

// ShelfError says that the storage could not be read or written. It quotes no server and no secret.
type ShelfError struct {
	Err error
	Do  string // advice, or empty
}

func (e *ShelfError) Error() string { return e.Err.Error() }

func (e *ShelfError) Unwrap() error { return e.Err }

// Hint returns advice.
func (e *ShelfError) Hint() string { return e.Do }

// Day is a day in UTC.
type Day struct{ time.Time }

// DayOf returns the day of a time, in UTC.
func DayOf(t time.Time) Day {
	y, m, d := t.UTC().Date()
	return Day{time.Date(y, m, d, 0, 0, 0, 0, time.UTC)}
}

// ParseDay reads YYYY-MM-DD. Days before the year 1 have no archives: Postgres has another text of them.
func ParseDay(text string) (Day, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || t.Year() < 1 {
		return Day{}, fmt.Errorf("a day is YYYY-MM-DD, in UTC")
	}
	return Day{t}, nil
}

func (d Day) String() string { return d.Format(time.DateOnly) }

// Next is the day after.
func (d Day) Next() Day { return Day{d.AddDate(0, 0, 1)} }

// Settled reports whether the day may be archived: it is before yesterday.
func (d Day) Settled(now time.Time) bool { return d.Before(DayOf(now).AddDate(0, 0, -1)) }

// Waits reports whether an error says that a day is not ready yet and nothing is wrong: its decisions are not counted,
// another process works on it, or an error of another rule says so by a method Waits.
func Waits(err error) bool {
	var uncounted *UncountedError
	var other interface{ Waits() bool }
	return errors.Is(err, ErrBusy) || errors.As(err, &uncounted) || errors.As(err, &other) && other.Waits()
}
