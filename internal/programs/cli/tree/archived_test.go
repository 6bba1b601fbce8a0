package tree

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// archivedWorld has three decisions in the table and three in an archive of 2026-08-01, one of which is in both.
func archivedWorld(t *testing.T) (*world, []reader.Decision) {
	t.Helper()
	dir := t.TempDir()
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	var old []reader.Decision
	for i := range 3 {
		old = append(old, readertest.Decision(200+i, at.Add(time.Duration(i)*time.Minute)))
	}
	if _, err := archivetest.Write(t.Context(), archive.Dir(dir), -2, old...); err != nil {
		t.Fatal(err)
	}
	w := &world{store: decisions(3), days: young{}, environ: []string{"DOCKET_ARCHIVE_TO=" + dir}}
	w.store.Add(old[2])
	w.both = func(table *readertest.Store, days *cold.Days) reader.Store {
		return joined{table, cold.Store{Table: table, Days: days}}
	}
	return w, old
}

// joined is the table with its archives, as the programs have it.
type joined struct {
	*readertest.Store
	both cold.Store
}

func TestLogs_ArchivedDays(t *testing.T) {
	t.Parallel()
	w, old := archivedWorld(t)
	r := w.call("logs", "--json")
	var found struct {
		Decisions []struct {
			ID       string `json:"decision_id"`
			Archived *reader.ArchivedIn
			Decision json.RawMessage
		}
		NotLooked []string `json:"not_looked"`
	}
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || len(found.Decisions) != 6 || len(found.NotLooked) != 0 {
		t.Fatalf("%v\n%s%s", err, r.out, r.err)
	}
	for i, d := range found.Decisions {
		if in := d.Archived; (in != nil) != (i > 3) || in != nil && (in.Day != "2026-08-01" || !strings.HasSuffix(in.File, ".0001.jsonl.gz")) {
			t.Errorf("%d: archived in %+v", i, in)
		}
	}
	if strings.Contains(r.out, readertest.Secret) {
		t.Error("a payload was shown without --full")
	}
	if r = w.call("logs"); r.code != 0 || !strings.Contains(r.err, "2 decisions only in archived days") {
		t.Errorf("%s%s", r.out, r.err)
	}
	page := w.call("logs", "-n", "5")
	_, next, _ := strings.Cut(page.err, "--after ")
	if r = w.call("logs", "--after", strings.Fields(next)[0]); r.code != 0 || strings.Count(r.out, "\n") != 2 || !strings.Contains(r.out, old[0].ID) {
		t.Errorf("the page behind the border:\n%s%s", r.out, r.err)
	}
}

func TestLogs_ArchivedID(t *testing.T) {
	t.Parallel()
	w, old := archivedWorld(t)
	r := w.call("logs", old[0].ID)
	if r.code != 0 || !strings.Contains(r.out, "archived in    ") || !strings.Contains(r.out, "archived day 2026-08-01") || strings.Contains(r.out, readertest.Secret) {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if r = w.call("logs", old[0].ID, "--full"); !strings.Contains(r.out, readertest.Secret) {
		t.Errorf("no payload:\n%s", r.out)
	}
	if r = w.call("logs", old[2].ID); r.code != 0 || strings.Contains(r.out, "archived in") || !strings.Contains(r.out, "the same decision as the row") {
		t.Errorf("a decision of both:\n%s%s", r.out, r.err)
	}
}

func TestWhy_ArchivedID(t *testing.T) {
	t.Parallel()
	w, old := archivedWorld(t)
	var got struct {
		Archived *reader.ArchivedIn
		Before   []struct {
			DecisionID string `json:"decision_id"`
		}
		NotLooked []string `json:"not_looked"`
		Since     struct{ Searched string }
	}
	r := w.call("why", old[1].ID, "--json", "--subject", "input:/user")
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != 0 || got.Archived == nil || len(got.NotLooked) != 0 {
		t.Fatalf("exit %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	if text := w.call("why", old[1].ID); text.code != 0 || !strings.Contains(text.out, "archived in") {
		t.Errorf("exit %d\n%s%s", text.code, text.out, text.err)
	}
	if d := w.call("diff", old[0].ID, old[1].ID); d.code != 0 {
		t.Errorf("exit %d\n%s%s", d.code, d.out, d.err)
	}
}

func (j joined) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	return j.both.Search(ctx, f, p)
}

// An id came with two timestamps. The older decision is only in an archived day, and the newer one has a row.
func TestWhy_AtOfAnArchivedDay(t *testing.T) {
	t.Parallel()
	fresh := func() (*world, reader.Decision) {
		w, old := archivedWorld(t)
		row := old[0]
		row.Time, row.StoredAt = now.Add(-time.Hour), now.Add(-time.Hour)
		w.store.Add(row)
		return w, old[0]
	}
	for at, code := range map[time.Duration]int{0: 0, time.Second: 1} {
		direct, old := fresh()
		remote, _ := fresh()
		args := []string{"why", old.ID, "--at", old.Time.Add(at).UTC().Format(time.RFC3339Nano)}
		for how, r := range map[string]result{"database": direct.call(args...), "desk": remote.overDesk(t, "auditor").call(args...)} {
			if r.code != code || (code == 0) != strings.Contains(r.out, old.Time.UTC().Format("2006-01-02 15:04:05")) {
				t.Errorf("%s, %v later: exit %d\n%s%s", how, at, r.code, r.out, r.err)
			}
		}
	}
}
