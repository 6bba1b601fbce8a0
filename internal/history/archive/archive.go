// Package archive moves whole days of decisions out of the table and back. It writes a day, reads it back and
// compares count and hash with the table before it drops anything.
//
// It imports no SQL and no client of object storage.
package archive

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Shelf is the storage of archives: a directory or a bucket. Names have no slashes at either end.
type Shelf interface {
	// Put stores the bytes of r under name, all or nothing, durable when it returns. It replaces what was there.
	Put(ctx context.Context, name string, r io.Reader) error
	// Get opens a stored file. It returns [fs.ErrNotExist] if there is none.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the names that begin with prefix, in order.
	List(ctx context.Context, prefix string) ([]string, error)
	// Remove deletes a file. A missing file is not an error.
	Remove(ctx context.Context, name string) error
	// String returns its place for people, without secrets.
	String() string
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

// ParseDay reads YYYY-MM-DD.
func ParseDay(text string) (Day, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return Day{}, fmt.Errorf("a day is YYYY-MM-DD, in UTC")
	}
	return Day{t}, nil
}

func (d Day) String() string { return d.Format(time.DateOnly) }

// Next is the day after.
func (d Day) Next() Day { return Day{d.AddDate(0, 0, 1)} }

// Settled reports whether the day may be archived: it is before yesterday.
func (d Day) Settled(now time.Time) bool { return d.Before(DayOf(now).AddDate(0, 0, -1)) }
