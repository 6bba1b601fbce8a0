package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/service/config"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/completetest"
	"docket/internal/testkit/readertest"
)

// joined is the table with its archives, as the desk has it.
type joined struct {
	*readerStore
	both cold.Store
}

func (j joined) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	return j.both.Search(ctx, f, p)
}

// before is a time between the archived day and the table.
var before = noon.AddDate(0, -1, 0).Format(time.DateOnly)

// archivedWorld has the usual table, and an archive of an old day with these decisions.
func archivedWorld(t *testing.T, change ...func(*api.Config, *api.Ports)) (*world, []reader.Decision) {
	t.Helper()
	dir := t.TempDir()
	var old []reader.Decision
	for i := range 5 {
		old = append(old, readertest.Decision(200+i, noon.AddDate(0, -2, 0).Add(time.Duration(i)*time.Minute)))
	}
	if _, err := archivetest.Write(t.Context(), archive.Dir(dir), 2, old...); err != nil {
		t.Fatal(err)
	}
	shelf := func() (archive.Shelf, error) { return archive.Dir(dir), nil }
	w := newWorld(t, append(change, func(c *api.Config, p *api.Ports) {
		table, ok := p.Decisions.(*readerStore)
		if !ok {
			t.Fatalf("the table is a %T", p.Decisions)
		}
		days := cold.New(cold.Config{Where: dir, Shelf: shelf, Table: archivetest.Table, LineBytes: 1 << 20, Now: c.Now})
		look := lookup.Look{Settings: config.Settings{ArchiveTo: dir}, Rows: table.ByID, Book: p.Book, Days: days, Shelf: func(string) (archive.Shelf, error) { return shelf() }, Now: c.Now}
		p.Decisions = joined{table, cold.Store{Table: table, Days: days}}
		p.Elsewhere = func(ctx context.Context, id string) (lookup.Answer, error) { return look.Find(ctx, id), nil }
	})...)
	return w, old
}

// TestArchived_RulesOfRows: roles, hidden payloads and notes of looks hold for archived decisions as for rows.
func TestArchived_RulesOfRows(t *testing.T) {
	t.Parallel()
	w, old := archivedWorld(t)
	var list api.DecisionList
	a := w.ask(t, "viewer", "GET", "/decisions?limit=1000&until="+before, "")
	if a.into(t, &list); len(list.Decisions) != len(old) || strings.Contains(a.body, readertest.Secret) || len(list.NotLooked) > 0 {
		t.Fatalf("%d decisions\n%s", len(list.Decisions), a.body)
	}
	for _, d := range list.Decisions {
		if d.Archived == nil || d.Archived.Day != old[0].Time.Format(time.DateOnly) {
			t.Errorf("%s is in %+v", d.ID, d.Archived)
		}
	}
	if strings.Contains(w.log.String(), "decisions read") {
		t.Error("a look without payload was noted")
	}
	for _, path := range []string{"/decisions?payload=true&until=" + before, "/decisions/" + old[0].ID, "/decisions/" + old[0].ID + "/why"} {
		if p := w.ask(t, "viewer", "GET", path, "").problem(t); p.Status != http.StatusForbidden {
			t.Errorf("%s: %+v", path, p)
		}
		if a := w.ask(t, "auditor", "GET", path, ""); a.code != http.StatusOK || !strings.Contains(w.log.String(), old[0].ID) {
			t.Errorf("%s: %d, %s", path, a.code, w.log)
		}
	}
}

func TestArchived_ByID(t *testing.T) {
	t.Parallel()
	w, old := archivedWorld(t)
	var got api.DecisionsOfID
	if w.ask(t, "auditor", "GET", "/decisions/"+old[3].ID, "").into(t, &got); len(got.Decisions) != 1 || got.Decisions[0].Archived == nil || !strings.Contains(got.Decisions[0].Archived.File, ".parquet") {
		t.Errorf("%+v", got)
	}
	var why api.Explained
	if w.ask(t, "auditor", "GET", "/decisions/"+old[3].ID+"/why", "").into(t, &why); why.Archived == nil || why.DecisionID != old[3].ID {
		t.Errorf("%+v", why)
	}
	if p := w.ask(t, "auditor", "GET", "/decisions/no-such-decision", "").problem(t); p.Status != http.StatusNotFound || !strings.Contains(strings.Join(p.Elsewhere.Looked, " "), "archived days in ") {
		t.Errorf("%+v", p)
	}
}

// TestArchived_PagesCrossTheBorder: a cursor of the table's last page leads into the archive.
func TestArchived_PagesCrossTheBorder(t *testing.T) {
	t.Parallel()
	w, old := archivedWorld(t)
	for _, more := range []string{"", "&order=oldest", "&payload=true"} {
		seen := map[string]int{}
		for after := ""; ; {
			var list api.DecisionList
			if w.ask(t, "auditor", "GET", "/decisions?limit=7"+more+after, "").into(t, &list); len(list.Decisions) > 7 {
				t.Fatal(len(list.Decisions))
			}
			for _, d := range list.Decisions {
				seen[d.ID]++
			}
			if list.Next == "" {
				break
			}
			after = "&after=" + list.Next
		}
		if len(seen) != 30+len(old) {
			t.Errorf("%q: %d decisions", more, len(seen))
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%q: %s came %d times", more, id, n)
			}
		}
	}
}

func TestArchived_FreshnessSaysIt(t *testing.T) {
	t.Parallel()
	l := &completetest.Log{Ends: map[string]int64{completetest.Source: 9}, Done: map[string]int64{completetest.Source: 9}}
	w, old := archivedWorld(t, completed(t, l, completetest.Books{}))
	var byID reader.Completeness
	if w.ask(t, "auditor", "GET", "/decisions/"+old[0].ID, "").into(t, &byID); byID.Freshness != reader.Archived && byID.Freshness != reader.Partial {
		t.Errorf("by id: %s", byID.Freshness)
	}
	for path, want := range map[string]reader.Freshness{"/decisions?until=" + before: reader.Archived, "/decisions?limit=3": reader.Fresh, "/decisions?limit=1000": reader.Archived} {
		var got reader.Completeness
		if w.ask(t, "viewer", "GET", path, "").into(t, &got); got.Freshness != want {
			t.Errorf("%s: %s, want %s", path, got.Freshness, want)
		}
	}
}
