// Package archive carries whole days of decisions out of the table and back: written, read back and compared with the table
// by count and hash before anything is dropped.
//
// It stays free of SQL and of the object storage's client.
package archive

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Shelf is where archives lie: a directory or a bucket. Names have no slashes at either end.
type Shelf interface {
	// Put stores what r yields under name, whole or not at all, and durable when it returns. What was there is replaced.
	Put(ctx context.Context, name string, r io.Reader) error
	// Get opens what is stored; an error is [fs.ErrNotExist] where there is nothing.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List are the names that begin with prefix, in order.
	List(ctx context.Context, prefix string) ([]string, error)
	// Remove takes it away; it is no error where there is nothing.
	Remove(ctx context.Context, name string) error
	// String is where it is, for people; without secrets.
	String() string
}

// ShelfError says that the shelf could not be read or written, in words that quote no server and no secret.
type ShelfError struct {
	Err error
	Do  string // what to do; empty where that is plain
}

func (e *ShelfError) Error() string { return e.Err.Error() }

func (e *ShelfError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *ShelfError) Hint() string { return e.Do }

// Day is a day in UTC.
type Day struct{ time.Time }

// DayOf is the day of a time, in UTC.
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

// Settled says whether the day is over long enough to be archived: it is before yesterday.
func (d Day) Settled(now time.Time) bool { return d.Before(DayOf(now).AddDate(0, 0, -1)) }
