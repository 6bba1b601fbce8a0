//go:build integration

package historydb_test

import (
	"path/filepath"
	"strings"
	"testing"

	"docket/internal/history/archive"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/pgtest"
)

// Archives that programs of earlier commits wrote are restored as the rows that were archived then.
func TestRestore_EarlierArchives(t *testing.T) {
	t.Parallel()
	for _, e := range archivetest.Earlier() {
		t.Run(e.Commit, func(t *testing.T) {
			t.Parallel()
			before := newArchived(t, pgtest.New(t))
			statements, err := e.Statements()
			check(t, err)
			for _, s := range statements {
				before.Exec(t, s)
			}
			a := newArchived(t, pgtest.New(t))
			check(t, e.Copy(a.dir))
			for _, want := range []struct{ stored, equal int64 }{{archivetest.EarlierRows, 0}, {0, archivetest.EarlierRows}} {
				r, err := a.c.Restore(t.Context(), archivetest.EarlierDay)
				if err != nil || r.Stored != want.stored || r.Equal != want.equal || r.Differs+r.Again != 0 || len(r.Archives) != 1 {
					t.Fatalf("%+v, %v", r, err)
				}
			}
			if got, want := a.text(), before.text(); got != want || strings.Count(got, "\n") != archivetest.EarlierRows-1 {
				t.Errorf("restored:\n%s\narchived:\n%s", got, want)
			}
		})
	}
}

// Dead letters that programs of earlier commits archived are entered again.
func TestRestore_EarlierLetters(t *testing.T) {
	t.Parallel()
	for _, e := range archivetest.Earlier() {
		if e.Letters == 0 {
			continue
		}
		t.Run(e.Commit, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewLetters(t)
			dir := filepath.Join(t.TempDir(), "shelf")
			check(t, e.Copy(dir))
			found, err := archive.FindLetters(t.Context(), archive.Dir(dir), func(id string) bool { return id == "letter-1" }, 1<<20, 1<<20)
			if err != nil || len(found.Found) != 1 || string(found.Found[0].Value) != `{"decision_id":"letter-1"}` {
				t.Errorf("%+v, %v", found, err)
			}
			c := d.Carrier(dir)
			for _, want := range []struct{ stored, equal int64 }{{int64(e.Letters), 0}, {0, int64(e.Letters)}} {
				r, err := c.Restore(t.Context(), archivetest.EarlierDay)
				if err != nil || r.Stored != want.stored || r.Equal != want.equal || r.Differs != 0 {
					t.Fatalf("%+v, %v", r, err)
				}
			}
		})
	}
}
