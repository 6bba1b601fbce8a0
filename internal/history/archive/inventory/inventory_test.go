package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
)

// table has one day that is out of it, or an error.
type table struct {
	archive.Table
	err error
}

func (t table) Name() string { return "decision_logs" }

func (t table) Days(context.Context, archive.Day) ([]archive.Held, error) {
	return []archive.Held{{Day: dayOf(1), Location: archive.Leaving}, {Day: dayOf(2), Location: archive.Attached}}, t.err
}

func dayOf(n int) archive.Day { return archive.DayOf(time.Date(2026, 8, n, 0, 0, 0, 0, time.UTC)) }

var errAway = errors.New("the database is away")

// TestTake_DatabaseAway: a place is listed without the database, and each thing that is not known is said.
func TestTake_DatabaseAway(t *testing.T) {
	t.Parallel()
	s := inventory.Source{
		Shelf: archive.Dir(t.TempDir()), Table: table{err: errAway}, Today: dayOf(9), Told: error.Error,
		Left: func(context.Context) ([]archive.Left, error) { return nil, errAway }, Letters: func(context.Context) ([]archive.Noted, error) { return nil, errAway },
		Note: func(context.Context) (string, time.Time, error) { return "", time.Time{}, errAway },
	}
	v, err := s.Take(t.Context())
	if err != nil || v.LeftUnknown != errAway.Error() || v.LeftOffUnknown != errAway.Error() || v.Nightly.Unknown != errAway.Error() {
		t.Errorf("%v, %+v", err, v)
	}
}

// TestTake_OneDay: absent days are those of the one that is asked for. Without a day of today the table is not asked.
func TestTake_OneDay(t *testing.T) {
	t.Parallel()
	day := dayOf(3)
	s := inventory.Source{
		Shelf: archive.Dir(t.TempDir()), Table: table{err: errAway}, Day: &day, Told: error.Error,
		Left: func(context.Context) ([]archive.Left, error) { return []archive.Left{{Day: dayOf(2)}, {Day: day}}, nil },
	}
	v, err := s.Take(t.Context())
	if err != nil || len(v.Absent) != 1 || v.Absent[0].Day != day || v.LeftOffUnknown != "" {
		t.Errorf("%v, %+v", err, v)
	}
	s.Day, s.Table, s.Today = nil, table{}, dayOf(9)
	if v, err = s.Take(t.Context()); err != nil || len(v.Absent) != 2 || !slices.Equal(v.LeftOff, []archive.Day{dayOf(1)}) {
		t.Errorf("%v, %+v", err, v)
	}
}

// TestTake_LettersAbsent: noted archives of dead letters that are missing come after days of decisions. If one kind is not known,
// that is told beside the other.
func TestTake_LettersAbsent(t *testing.T) {
	t.Parallel()
	const name = "dead_letters-2026-08-02-001-3f9a2c-4f397d52"
	s := inventory.Source{
		Shelf: archive.Dir(t.TempDir()), Table: table{}, Told: error.Error,
		Left:    func(context.Context) ([]archive.Left, error) { return []archive.Left{{Day: dayOf(3)}}, nil },
		Letters: func(context.Context) ([]archive.Noted, error) { return []archive.Noted{{Archive: name}}, nil },
	}
	v, err := s.Take(t.Context())
	if err != nil || len(v.Absent) != 2 || v.Absent[1].Day != dayOf(2) || !slices.Equal(v.Absent[1].Archives, []string{name}) {
		t.Errorf("%v, %+v", err, v)
	}
	day := dayOf(3)
	s.Day = &day
	if v, err = s.Take(t.Context()); err != nil || len(v.Absent) != 1 || len(v.Absent[0].Archives) > 0 {
		t.Errorf("%v, %+v", err, v)
	}
	s.Letters = func(context.Context) ([]archive.Noted, error) { return nil, archive.ErrNotedUnread }
	if v, err = s.Take(t.Context()); err != nil || len(v.Absent) != 1 || v.LeftUnknown != archive.ErrNotedUnread.Error() {
		t.Errorf("%v, %+v", err, v)
	}
	s.Left = func(context.Context) ([]archive.Left, error) { return nil, errAway }
	if v, err = s.Take(t.Context()); err != nil || v.LeftUnknown != errAway.Error()+"; "+archive.ErrNotedUnread.Error() {
		t.Errorf("%v, %+v", err, v)
	}
}

// TestTake_BrokenAndOther: broken archives are told. Another error is an error of the inventory, also beside them.
func TestTake_BrokenAndOther(t *testing.T) {
	t.Parallel()
	a, b := &archive.BrokenError{Archive: "a", Problem: "p"}, &archive.BrokenError{Archive: "b", Problem: "p"}
	for _, c := range []struct {
		err    error
		broken int
		fails  bool
	}{
		{nil, 0, false}, {a, 2, false}, {errors.Join(a, fmt.Errorf("read: %w", b)), 4, false}, {errors.Join(a, errors.Join(b, errAway)), 0, true}, {errAway, 0, true},
	} {
		s := inventory.Source{
			Shelf: archive.Dir(t.TempDir()), Table: table{}, Told: error.Error,
			Whole: func(context.Context, string) ([]*archive.Manifest, error) { return nil, c.err },
		}
		v, err := s.Take(t.Context())
		if (err != nil) != c.fails || err == nil && len(v.Broken) != c.broken {
			t.Errorf("%v: %v, %+v", c.err, err, v)
		}
	}
}
