//go:build integration

package historydb_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
	"docket/migrations"
)

// notedOf returns the noted archives, and which of them were given up.
func notedOf(t *testing.T, r *historydb.Reader) (needed, forgotten []string) {
	t.Helper()
	noted, err := r.LettersNoted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range noted {
		if f := n.Forgotten; f != nil {
			forgotten = append(forgotten, n.Archive+" "+f.By+" "+f.Reason)
		} else {
			needed = append(needed, n.Archive)
		}
	}
	return needed, forgotten
}

// TestLettersNoted_UntilForgotten: the ledger notes an archive whoever says that letters are in it, and keeps its name when the
// letters leave. One that is lost can be given up: letters that the ledger still has are archived again. If it comes back, and
// letters are restored from it, it is needed again.
func TestLettersNoted_UntilForgotten(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	r := historydb.NewReader(open(t, d.URL, 0).DB)
	gone, stays := pgtest.Letter(1, `{"a":1}`), pgtest.Letter(2, `{"a":2}`)
	d.Entered(gone, stays)
	d.Closed(gone)
	if needed, forgotten := notedOf(t, r); needed != nil || forgotten != nil {
		t.Fatal(needed, forgotten)
	}
	shelf, kept := filepath.Join(t.TempDir(), "shelf"), filepath.Join(t.TempDir(), "kept")
	c := d.Carrier(shelf)
	first, err := c.Archive(t.Context(), pgtest.ClosedOn)
	if err != nil || len(first.Archives) != 1 {
		t.Fatal(first, err)
	}
	if n := d.Removed(); n != 1 {
		t.Fatal(n)
	}
	d.Closed(stays)
	second, err := c.Archive(t.Context(), pgtest.ClosedOn)
	if err != nil || len(second.Archives) != 1 {
		t.Fatal(second, err)
	}
	both := slices.Concat(first.Archives, second.Archives)
	if needed, forgotten := notedOf(t, r); !slices.Equal(needed, both) || forgotten != nil {
		t.Fatal(needed, forgotten)
	}

	if err := os.Rename(shelf, kept); err != nil {
		t.Fatal(err)
	}
	var away *archive.ShelfError
	if _, err := c.Forget(t.Context(), pgtest.ClosedOn, "over", false); !errors.As(err, &away) {
		t.Fatalf("a mount that is away: %v", err)
	}
	if err := os.Mkdir(shelf, 0o700); err != nil {
		t.Fatal(err)
	}
	done, err := c.Forget(t.Context(), pgtest.ClosedOn, "over", true)
	if err != nil || !slices.Equal(done.Archives, both) {
		t.Fatal(done, err)
	}
	if needed, _ := notedOf(t, r); len(needed) != 2 {
		t.Fatal("a dry run forgets")
	}
	if done, err = c.Forget(t.Context(), pgtest.ClosedOn, "over", false); err != nil || !slices.Equal(done.Archives, both) {
		t.Fatal(done, err)
	}
	if needed, forgotten := notedOf(t, r); needed != nil || len(forgotten) != 2 || forgotten[0] != both[0]+" mara over" {
		t.Fatal(needed, forgotten)
	}
	if done, err = c.Forget(t.Context(), pgtest.ClosedOn, "again", false); err != nil || done.Archives != nil || done.Earlier == nil || done.Earlier.Reason != "over" {
		t.Fatal(done, err)
	}
	lines, _, err := d.History(t.Context(), stays.ID)
	if last := lines[len(lines)-1]; err != nil || last.By != "mara" || last.Why != "in no archive" {
		t.Fatalf("%+v, %v", last, err)
	}
	if d.Removed() != 0 {
		t.Fatal("a letter left the ledger whose archive was lost")
	}
	third, err := c.Archive(t.Context(), pgtest.ClosedOn)
	if err != nil || third.Letters != 1 {
		t.Fatal(third, err)
	}
	if needed, _ := notedOf(t, r); !slices.Equal(needed, third.Archives) {
		t.Fatal(needed)
	}

	c.Shelf = archive.Dir(kept)
	if back, err := c.Restore(t.Context(), pgtest.ClosedOn); err != nil || back.Stored != 1 {
		t.Fatal(back, err)
	}
	if needed, forgotten := notedOf(t, r); !slices.Contains(needed, first.Archives[0]) || len(forgotten) != 1 {
		t.Fatal(needed, forgotten)
	}
	d.Sums()
}

// TestLettersNoted_Migrated: names of before the table come from the letters, from ranges that never entered the ledger, and from
// the audit of letters that left it. The migration can be run again, and keeps what was given up.
func TestLettersNoted_Migrated(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	letters := []ledger.Letter{pgtest.Letter(1, `{"a":1}`), pgtest.Letter(2, `{"a":2}`)}
	d.Entered(letters...)
	d.Closed(letters[0])
	c := d.Carrier(filepath.Join(t.TempDir(), "shelf"))
	first, err := c.Archive(t.Context(), pgtest.ClosedOn)
	if err != nil {
		t.Fatal(err)
	}
	d.Removed()
	d.Closed(letters[1])
	d.Exec(t, `UPDATE dead_letters SET archived_in = 'tape 7' WHERE state = 'RESOLVED'`)
	d.Exec(t, `INSERT INTO dead_letter_surplus (topic, partition, client, hour, first_offset, last_offset, next_offset, letters, first_at, last_at)
		VALUES ('dlq', 0, '', now(), 1, 2, 1, 2, now(), now())`)
	if lost, err := d.ArchivedSurplus(t.Context(), 1, 1, 2, "range", 2); err != nil || lost != 0 {
		t.Fatal(lost, err)
	}
	want := []string{first.Archives[0], "range", "tape 7"}
	r := historydb.NewReader(open(t, d.URL, 0).DB)
	if needed, _ := notedOf(t, r); !slices.Equal(needed, want) {
		t.Fatal(needed)
	}
	text, err := migrations.FS.ReadFile("00033_letter_archives.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, down, _ := strings.Cut(string(text), "-- +goose Down")
	reader := d.Role(t, "")
	d.Exec(t, down)
	if _, err := historydb.NewReader(open(t, d.URL, 0).DB).LettersNoted(t.Context()); !errors.Is(err, archive.ErrNotedUnread) {
		t.Fatalf("a database that was not migrated: %v", err)
	}
	name := strings.SplitN(strings.TrimPrefix(reader, "postgres://"), ":", 2)[0]
	poor := historydb.NewReader(open(t, reader, 0).DB)
	d.Exec(t, up)
	if _, err := poor.LettersNoted(t.Context()); !errors.Is(err, archive.ErrNotedUnread) {
		t.Fatalf("a login without the right: %v", err)
	}
	d.Exec(t, down)
	d.Exec(t, `GRANT SELECT ON dead_letters TO `+name)
	for range 2 {
		d.Exec(t, up)
		if needed, _ := notedOf(t, poor); !slices.Equal(needed, want) {
			t.Fatal(needed)
		}
	}
	d.Exec(t, `UPDATE dead_letter_archives SET forgotten_at = now(), forgotten_by = 'mara', forgotten_reason = 'over' WHERE archive = 'range'`)
	d.Exec(t, up)
	if needed, forgotten := notedOf(t, poor); len(needed) != 2 || len(forgotten) != 1 {
		t.Fatal(needed, forgotten)
	}
	if _, err := historydb.NewReader(open(t, pgtest.NewEmpty(t).URL, 0).DB).LettersNoted(t.Context()); err != nil {
		t.Fatalf("without a ledger: %v", err)
	}
}
