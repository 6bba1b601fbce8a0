//go:build integration

package historydb_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
)

// TestLeft_UntilRestored: a day that was dropped is known until it is back. A search tells of it if its archive is removed.
func TestLeft_UntilRestored(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	r := historydb.NewReader(open(t, a.URL, 0).DB)
	is := func(what string, want int) {
		t.Helper()
		if left, err := r.Left(t.Context()); err != nil || len(left) != want || want == 1 && left[0].Day != a.day {
			t.Errorf("%s: %v, %v", what, left, err)
		}
	}
	search := func(what string, decisions int, gap string) {
		t.Helper()
		days := cold.New(cold.Config{
			Where: a.dir, Table: "decision_logs", LineBytes: 1 << 20, Patience: time.Minute, Left: r.Left,
			Shelf: func() (archive.Shelf, error) { return archive.Dir(a.dir), nil },
		})
		store := cold.Store{Table: r, Days: days}
		found, err := store.Search(t.Context(), reader.Filter{Since: a.day.Time, Until: a.day.Next().Time}, reader.Page{Limit: 100})
		if got := strings.Join(reader.GapTexts(found.NotLooked), "; "); err != nil || len(found.Decisions) != decisions || (got == "") != (gap == "") || !strings.Contains(got, gap) {
			t.Errorf("%s: %d decisions, %q, %v", what, len(found.Decisions), got, err)
		}
	}
	is("a day in the table", 0)
	a.archive(true)
	is("a day that was kept", 0)
	a.archive(false)
	is("an archived day", 1)
	search("an archived day", 20, "")
	elsewhere := a.dir + "-elsewhere"
	if err := os.Rename(a.dir, elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(a.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	search("an archive that is missing", 0, "2026-03-04 left the table, and no archive has it")
	if err := os.Remove(a.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(elsewhere, a.dir); err != nil {
		t.Fatal(err)
	}
	a.restore()
	is("a restored day", 0)
	if _, err := historydb.NewReader(open(t, a.Role(t, "SELECT"), 0).DB).Left(t.Context()); err == nil {
		t.Error("a role without rights knows the days")
	}
	a.Exec(t, `ALTER TABLE decision_counts_left RENAME TO elsewhere`)
	if _, err := r.Left(t.Context()); err == nil {
		t.Error("the days are known without their table")
	}
}

// TestForget_UntilRestored: a forgotten day is noted with its author once, its late decisions do not end that, and a restore does.
func TestForget_UntilRestored(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	r := historydb.NewReader(open(t, a.URL, 0).DB)
	shelf := a.c.Shelf
	forget := func(reason, refused string) {
		t.Helper()
		if _, err := a.c.Forget(t.Context(), a.day, reason, false); (err == nil) != (refused == "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v, want %q", reason, err, refused)
		}
	}
	noted := func(reason string) {
		t.Helper()
		left, err := r.Left(t.Context())
		if err != nil || len(left) != 1 || (left[0].Forgotten != nil) != (reason != "") {
			t.Fatalf("%v, %v", left, err)
		}
		if f := left[0].Forgotten; f != nil && (f.By != "mara" || f.Reason != reason || time.Since(f.At) > time.Hour || f.At.After(time.Now().Add(time.Hour))) {
			t.Errorf("%+v", f)
		}
		h, err := r.Holdings(t.Context(), archive.DayOf(time.Now()))
		if err != nil || len(h.Left) != 1 || (h.Left[0].Forgotten != nil) != (reason != "") {
			t.Errorf("%+v, %v", h.Left, err)
		}
	}
	forget("in the table", "still in the table")
	a.archive(false)
	forget("archived", "is not gone")
	noted("")
	a.c.Shelf = archive.Dir(t.TempDir())
	if earlier, err := a.c.Forget(t.Context(), a.day, "dry", true); err != nil || earlier != nil {
		t.Errorf("dry: %v, %v", earlier, err)
	}
	noted("")
	forget("a year is over", "")
	noted("a year is over")
	forget("again", "")
	noted("a year is over")
	a.rows(100, 3)
	forget("with late ones", "")
	a.archive(false)
	noted("a year is over")

	a.c.Shelf = shelf
	cannot := (*archive.CannotError)(nil)
	if _, err := a.c.Restore(t.Context(), a.day); !errors.As(err, &cannot) {
		t.Errorf("without its late decisions: %v", err)
	}
	a.c.Incomplete = true
	if r := a.restore(); len(r.Missing) != 1 || r.Stored != 20 {
		t.Errorf("%+v", r)
	}
	forget("restored", "still in the table")
	if left, err := r.Left(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestForget_BeforeItsMigration: a database from before the note has days that left, and none of them is forgotten.
func TestForget_BeforeItsMigration(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	a.archive(false)
	a.Exec(t, `ALTER TABLE decision_counts_left DROP COLUMN forgotten_at, DROP COLUMN forgotten_by, DROP COLUMN forgotten_reason`)
	left, err := historydb.NewReader(open(t, a.URL, 0).DB).Left(t.Context())
	if err != nil || len(left) != 1 || left[0].Forgotten != nil {
		t.Errorf("%v, %v", left, err)
	}
}

// TestLeft_ArchivesAreNoted: the archives that a dropped day needs are known, also after late decisions, and until it is restored.
func TestLeft_ArchivesAreNoted(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	r := historydb.NewReader(open(t, a.URL, 0).DB)
	noted := func(what string, want ...string) {
		t.Helper()
		left, err := r.Left(t.Context())
		if err != nil || len(left) != min(1, len(want)) || len(want) > 0 && !slices.Equal(left[0].Archives, want) {
			t.Errorf("%s: %v, %v, want %v", what, left, err, want)
		}
	}
	kept := a.archive(true)
	noted("kept")
	first := a.archive(false)
	if !first.Reused || first.Archive != kept.Archive {
		t.Errorf("%+v", first)
	}
	noted("dropped", first.Archive)
	a.rows(100, 3)
	late := a.archive(false)
	noted("late decisions", first.Archive, late.Archive)

	manifest := filepath.Join(a.dir, first.Archive+".manifest.json")
	check(t, os.Rename(manifest, manifest+".away"))
	cannot := (*archive.CannotError)(nil)
	if _, err := a.c.Restore(t.Context(), a.day); !errors.As(err, &cannot) || !strings.Contains(err.Error(), first.Archive) || !strings.Contains(cannot.Hint(), "--incomplete") {
		t.Errorf("a restore of a part: %v", err)
	}
	a.rows(200, 3)
	later := a.archive(false)
	noted("later decisions, and an archive is missing", first.Archive, late.Archive, later.Archive)
	check(t, os.Rename(manifest+".away", manifest))
	if r := a.restore(); r.Stored != 26 || len(r.Missing) != 0 {
		t.Errorf("%+v", r)
	}
	noted("restored")
	again := a.archive(false)
	noted("archived again: one has the rows of all", again.Archive)
}

// TestLeft_BeforeItsMigration: a database without a place for the names of archives drops a day, and a day can be forgotten there.
func TestLeft_BeforeItsMigration(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	a.Exec(t, `ALTER TABLE decision_counts_left DROP COLUMN archives, DROP COLUMN forgotten_archives`)
	if done := a.archive(false); !done.Dropped {
		t.Fatalf("%+v", done)
	}
	r := historydb.NewReader(open(t, a.URL, 0).DB)
	if left, err := r.Left(t.Context()); err != nil || len(left) != 1 || left[0].Archives != nil {
		t.Errorf("%v, %v", left, err)
	}
	a.c.Shelf = archive.Dir(t.TempDir())
	if _, err := a.c.Forget(t.Context(), a.day, "over", false); err != nil {
		t.Error(err)
	}
	if left, err := r.Left(t.Context()); err != nil || len(left) != 1 || left[0].Forgotten == nil {
		t.Errorf("%v, %v", left, err)
	}
	a.Exec(t, `ALTER TABLE decision_counts_left ADD COLUMN archives text[], ADD COLUMN forgotten_archives text[]`) // the migration
	a.rows(100, 3)
	late := a.archive(false)
	if left, err := r.Left(t.Context()); err != nil || len(left) != 1 || !slices.Equal(left[0].Archives, []string{late.Archive}) {
		t.Errorf("%v, %v", left, err)
	}
}

// TestLeft_UnknownNeedsKeepFiles: of a day that an earlier release dropped, files without a manifest can be the only copy.
func TestLeft_UnknownNeedsKeepFiles(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	first := a.archive(false)
	a.Exec(t, `UPDATE decision_counts_left SET archives = NULL`)
	manifest := filepath.Join(a.dir, first.Archive+".manifest.json")
	check(t, os.Rename(manifest, manifest+".away"))
	for n := range 2 { // the second run knows the archive of the first
		a.rows(100*(n+1), 3)
		next := filepath.Join(a.dir, a.archive(false).Archive+".manifest.json")
		if n == 0 { // no archive has a manifest any more
			check(t, os.Rename(next, next+".away"))
		}
	}
	away, err := filepath.Glob(filepath.Join(a.dir, "*.away"))
	check(t, err)
	for _, name := range away {
		check(t, os.Rename(name, strings.TrimSuffix(name, ".away")))
	}
	if r := a.restore(); r.Stored != 26 {
		t.Errorf("%+v", r)
	}
}

// TestLeft_RestoredInPartKeepsFiles: files that a restore in part left out stay, however often the day is archived again.
func TestLeft_RestoredInPartKeepsFiles(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	a.archive(false)
	a.rows(100, 3)
	second := a.archive(false)
	manifest := filepath.Join(a.dir, second.Archive+".manifest.json")
	check(t, os.Rename(manifest, manifest+".away"))
	a.c.Incomplete = true
	if r := a.restore(); r.Stored != 20 || len(r.Missing) != 1 {
		t.Fatalf("%+v", r)
	}
	if r := a.archive(false); !r.Reused {
		t.Fatalf("%+v", r)
	}
	a.rows(200, 3)
	a.archive(false)
	check(t, os.Rename(manifest+".away", manifest))
	if r := a.restore(); r.Stored != 26 {
		t.Errorf("%+v", r)
	}
}

// TestLeft_KilledAfterItWasTakenOut: a first run that was killed before it dropped the day makes no archive needed.
func TestLeft_KilledAfterItWasTakenOut(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	useless := a.archive(true)
	a.rows(100, 1) // so that archive does not fit any more
	manifest := filepath.Join(a.dir, useless.Archive+".manifest.json")
	check(t, os.WriteFile(manifest, []byte("{"), 0o600))
	ctx, kill := context.WithCancel(t.Context())
	a.c.Told = func(s archive.Step) {
		if s == archive.StepDetached {
			kill()
		}
	}
	if _, err := a.c.Archive(ctx, a.day, false); err == nil {
		t.Fatal("it was not killed")
	}
	a.c.Told = nil
	a.archive(false)
	check(t, os.Remove(manifest))
	left, err := historydb.NewReader(open(t, a.URL, 0).DB).Left(t.Context())
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	there, err := archive.Whole(t.Context(), a.c.Shelf, "decision_logs", &a.day)
	if lacks := left[0].Lacks(there); err != nil || len(lacks) != 0 {
		t.Errorf("it lacks %v, %v", lacks, err)
	}
}

// TestForget_ArchivesComeBackInPart: archives of a forgotten day that come back without the others are not the whole day.
func TestForget_ArchivesComeBackInPart(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	r := historydb.NewReader(open(t, a.URL, 0).DB)
	a.archive(false)
	a.rows(100, 3)
	late := a.archive(false)
	shelf := a.c.Shelf
	a.c.Shelf = archive.Dir(t.TempDir())
	if _, err := a.c.Forget(t.Context(), a.day, "over", false); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(a.dir, late.Archive+".manifest.json")
	check(t, os.Rename(manifest, manifest+".away"))
	a.c.Shelf = shelf
	days := cold.New(cold.Config{
		Where: a.dir, Table: "decision_logs", LineBytes: 1 << 20, Patience: time.Minute, Left: r.Left,
		Shelf: func() (archive.Shelf, error) { return shelf, nil },
	})
	defer days.Close()
	found, err := (&cold.Store{Table: r, Days: days}).Search(t.Context(), reader.Filter{Since: a.day.Time, Until: a.day.Next().Time}, reader.Page{Limit: 100})
	if got := strings.Join(reader.GapTexts(found.NotLooked), "; "); err != nil || len(found.Decisions) != 20 || !strings.Contains(got, late.Archive) {
		t.Errorf("%d decisions, %q, %v", len(found.Decisions), got, err)
	}
	cannot := (*archive.CannotError)(nil)
	if _, err := a.c.Restore(t.Context(), a.day); !errors.As(err, &cannot) {
		t.Errorf("a restore of a part: %v", err)
	}
	check(t, os.Rename(manifest+".away", manifest))
	if r := a.restore(); r.Stored != 23 || len(r.Missing) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestForget_AgainAfterLateDecisions: an archive that was made after its day was forgotten is given up by a second note. So are
// archives that an earlier release left noted when it forgot the day.
func TestForget_AgainAfterLateDecisions(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	r := historydb.NewReader(open(t, a.URL, 0).DB)
	var all []string
	for _, reason := range []string{"first", "second", "third"} {
		all = append(all, a.archive(false).Archive)
		slices.Sort(all) // each is the first on its shelf
		a.c.Shelf = archive.Dir(t.TempDir())
		if reason == "third" { // as an earlier release did
			a.Exec(t, `UPDATE decision_counts_left SET forgotten_at = now(), forgotten_by = 'oleg', forgotten_reason = 'earlier'`)
		}
		if earlier, err := a.c.Forget(t.Context(), a.day, reason, false); err != nil || earlier != nil {
			t.Fatalf("%s: %v, %v", reason, earlier, err)
		}
		left, err := r.Left(t.Context())
		if err != nil || len(left) != 1 || left[0].Forgotten == nil || left[0].Forgotten.Reason != reason || len(left[0].Archives) != 0 || !slices.Equal(left[0].Forgotten.Archives, all) {
			t.Errorf("%s: %+v, %v", reason, left, err)
		}
		if absent := archive.Absent(left, nil); len(absent) != 0 {
			t.Errorf("%s: %v", reason, absent)
		}
		a.rows(100*len(all), 3)
	}
}

// refusing is a shelf that does not say whether it stored files of some name.
type refusing struct {
	archive.Shelf
	suffix string
}

func (r refusing) Put(ctx context.Context, name string, from io.Reader) error {
	err := r.Shelf.Put(ctx, name, from)
	if err == nil && strings.HasSuffix(name, r.suffix) {
		err = errors.New("no answer")
	}
	return err
}

// TestLeft_KilledLateRun: the files of a late run that did not end go with the next one. An earlier archive keeps its files. It lost
// its manifest, and a copy of the place brought its marker back.
func TestLeft_KilledLateRun(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	first := a.archive(false)
	manifest := filepath.Join(a.dir, first.Archive+".manifest.json")
	check(t, os.Rename(manifest, manifest+".away"))
	check(t, os.WriteFile(filepath.Join(a.dir, first.Archive+".started"), nil, 0o600))
	a.rows(100, 3)
	shelf := a.c.Shelf
	a.c.Shelf = refusing{shelf, ".parquet"}
	if _, err := a.c.Archive(t.Context(), a.day, false); err == nil {
		t.Fatal("it did not fail")
	}
	a.c.Shelf = shelf
	parts := func() int {
		files, err := filepath.Glob(filepath.Join(a.dir, "decision_logs", "day=*", "*.parquet"))
		check(t, err)
		return len(files)
	}
	left := parts()
	second := a.archive(false)
	if n := parts(); n != left || second.Files != 1 {
		t.Errorf("%d files are left, before %d", n, left)
	}
	if markers, err := filepath.Glob(filepath.Join(a.dir, "*.started")); err != nil || len(markers) > 0 {
		t.Errorf("%v, %v", markers, err)
	}
	check(t, os.Rename(manifest+".away", manifest))
	if r := a.restore(); r.Stored != 23 || len(r.Archives) != 2 {
		t.Errorf("%+v", r)
	}
}
