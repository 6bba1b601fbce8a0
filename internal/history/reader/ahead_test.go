package reader_test

import (
	"errors"
	"testing"
	"time"

	"docket/internal/history/reader"
	"docket/internal/testkit/readertest"
)

var aheadNow = time.Date(2026, 11, 21, 12, 0, 0, 500, time.UTC)

func TestAhead_OfWhenItWasStored(t *testing.T) {
	t.Parallel()
	for by, want := range map[time.Duration]time.Duration{-time.Hour: 0, 0: 0, time.Hour: 0, time.Hour + 1: time.Hour + 1, 48 * time.Hour: 48 * time.Hour} {
		r := reader.Row{Time: aheadNow.Add(by), StoredAt: aheadNow}
		if got := r.Ahead(); got != want {
			t.Errorf("%v later: %v", by, got)
		}
	}
	if r := (reader.Row{Time: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), StoredAt: aheadNow}); r.Ahead() < 290*365*24*time.Hour {
		t.Errorf("of the year 9999: %v", r.Ahead())
	}
}

// TestAhead_NothingHeadsEveryPage: decisions dated more than an hour ahead are left out, and the answer says so.
func TestAhead_NothingHeadsEveryPage(t *testing.T) {
	t.Parallel()
	store := &readertest.Store{}
	near, far := readertest.Decision(0, aheadNow.Add(59*time.Minute)), readertest.Decision(1, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	store.Add(near, far)
	f, later := reader.Bound(reader.Filter{}, false, aheadNow)
	found, err := store.Search(t.Context(), f, reader.Page{Limit: 10})
	if err != nil || len(found.Decisions) != 1 || found.Decisions[0].ID != near.ID {
		t.Fatalf("%+v, %v", found, err)
	}
	if !reader.Later(t.Context(), store, reader.Filter{}, later) || reader.Later(t.Context(), store, reader.Filter{Services: []string{"none"}}, later) {
		t.Error("of what was left out it is said otherwise")
	}
	store.Fail(errors.New("away"))
	if !reader.Later(t.Context(), store, reader.Filter{}, later) {
		t.Error("what could not be looked for is told as none")
	}
	for name, of := range map[string]struct {
		f      reader.Filter
		oldest bool
	}{
		"the oldest first": {reader.Filter{}, true}, "with an end": {reader.Filter{Until: aheadNow.AddDate(100, 0, 0)}, false}, "of what is to come": {reader.Filter{Since: aheadNow.Add(time.Minute)}, false},
	} {
		if got, later := reader.Bound(of.f, of.oldest, aheadNow); !later.IsZero() || got.Until != of.f.Until || reader.Later(t.Context(), store, of.f, later) {
			t.Errorf("%s: %+v, %v", name, got, later)
		}
	}
}
