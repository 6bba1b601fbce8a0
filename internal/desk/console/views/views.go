// Package views keeps named filters of the console: those of a person, and those that all share.
package views

import (
	"context"
	"errors"
	"time"
)

// View is a named filter.
type View struct {
	ID     int64
	Owner  string // whose it is; empty: all have it
	Name   string // one for each owner
	Query  string // of the URL of the page of decisions
	MadeBy string
	MadeAt time.Time
}

// Shared reports whether all have the view.
func (v View) Shared() bool { return v.Owner == "" }

// Most limits the views of one owner, and those that are shared.
const Most = 100

// Errors that a caller decides by.
var (
	// ErrFull says that an owner has [Most] views.
	ErrFull = errors.New("another view does not fit")
	// ErrNone says that the view does not exist.
	ErrNone = errors.New("there is no such view")
)

// Store keeps views.
type Store interface {
	// List returns the views of an owner and the shared ones, by name, the owner's first.
	List(ctx context.Context, owner string) ([]View, error)
	// Save adds a view, or replaces the one of the same owner and name. The id is not used. It returns [ErrFull].
	Save(ctx context.Context, v View) error
	// Remove removes a view of an owner. It returns [ErrNone] if the owner has no such view.
	Remove(ctx context.Context, id int64, owner string) error
}
