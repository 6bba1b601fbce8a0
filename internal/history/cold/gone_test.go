package cold_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/readertest"
)

// gone is a table that days have left.
type gone struct {
	*readertest.Store
	is    bool
	err   error
	asked int
}

func (g *gone) Gone(_ context.Context, since, until time.Time) (bool, error) {
	if !since.IsZero() && !until.IsZero() && !since.Before(until) {
		return false, errors.New("no range")
	}
	g.asked++
	return g.is, g.err
}

// Without a place of archives, a search that reaches into days that left the table says that they are missing. One of
// today asks nothing.
func TestSearch_WithoutThePlaceOfArchives(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		table gone
		since time.Time
		want  string
		asked int
	}{
		"days left":    {gone{is: true}, time.Time{}, "DOCKET_ARCHIVE_TO is not set, and days", 1},
		"none left":    {gone{}, time.Time{}, "", 1},
		"not known":    {gone{is: true, err: errors.New("no right")}, time.Time{}, "not known whether", 1},
		"only of now":  {gone{is: true}, now.Add(-time.Hour), "", 0},
		"a month back": {gone{is: true}, now.AddDate(0, -1, 0), "DOCKET_ARCHIVE_TO", 1},
	} {
		c.table.Store = &readertest.Store{}
		for _, days := range []*cold.Days{nil, cold.New(cold.Config{})} {
			c.table.asked = 0
			store := cold.Store{Table: &c.table, Days: days}
			found, err := store.Search(t.Context(), reader.Filter{Since: c.since, Until: now.Add(time.Minute)}, reader.Page{Limit: 3})
			if err != nil || c.table.asked != c.asked || (len(found.NotLooked) > 0) != (c.want != "") || c.want != "" && !strings.Contains(found.NotLooked[0].Why, c.want) {
				t.Errorf("%s: asked %d times, %+v, %v", name, c.table.asked, found.NotLooked, err)
			}
		}
	}
}

// A page that is full of new decisions did not look further.
func TestSearch_FullPageAsksNothing(t *testing.T) {
	t.Parallel()
	table := &gone{Store: &readertest.Store{}, is: true}
	for _, d := range readertest.Decisions(9, time.Now()) {
		table.Add(d)
	}
	store := cold.Store{Table: table}
	found, err := store.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 3})
	if err != nil || len(found.Decisions) != 3 || len(found.NotLooked) > 0 || table.asked > 0 {
		t.Errorf("asked %d times, %+v, %v", table.asked, found.NotLooked, err)
	}
}
