package tree

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// Each command says which archive of a day is missing that the database noted, or which file, and exits with 1.
func TestArchive_AbsentIsTold(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	const none = "2026-08-01 left the table, and no archive has it: it was removed, or is elsewhere"
	for name, c := range map[string]struct {
		remove func(first *archive.Manifest, second *archive.Manifest) []string
		want   string // NAME and FILE are those of the first archive
		why    string
	}{
		"a manifest": {func(first, _ *archive.Manifest) []string { return []string{first.Name() + ".manifest.json"} },
			"archive NAME has no manifest any more: it was removed, or is elsewhere", "archive NAME has no manifest any more"},
		"a file": {func(first, _ *archive.Manifest) []string { return []string{first.Files[0].Name} }, "archive NAME is broken: FILE is missing", "FILE is missing"},
		"the day's directory": {func(_, _ *archive.Manifest) []string { return []string{"decision_logs/day=2026-08-01"} },
			"archive NAME is broken: FILE is missing", "FILE is missing"},
		"all": {func(first, second *archive.Manifest) []string {
			return []string{first.Name() + ".manifest.json", second.Name() + ".manifest.json", "decision_logs"}
		}, none, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var ms []*archive.Manifest
			left := archive.Left{Day: archive.DayOf(at)}
			var old []reader.Decision
			for i := range 2 {
				old = append(old, readertest.Decision(200+i, at.Add(time.Duration(i)*time.Minute)))
				m, err := archivetest.Write(t.Context(), archive.Dir(dir), 10, old[i])
				if err != nil {
					t.Fatal(err)
				}
				ms, left.Archives = append(ms, m), append(left.Archives, m.Name())
			}
			w := &world{store: decisions(1), days: young{}, shelf: archive.Dir(dir), left: []archive.Left{left}, environ: []string{"DOCKET_ARCHIVE_TO=" + dir}}
			w.both = func(table *readertest.Store, days *cold.Days) reader.Store {
				return joined{table, cold.Store{Table: table, Days: days}}
			}
			for _, args := range [][]string{{"archive", "list"}, {"archive", "verify", "--all"}, {"archive", "verify", "--day", "2026-08-01"}} {
				if r := w.call(args...); r.code != 0 || strings.Contains(r.err, "missing") || strings.Contains(r.err, "removed") {
					t.Errorf("intact, %v: exit %d\n%s%s", args, r.code, r.out, r.err)
				}
			}
			for _, file := range c.remove(ms[0], ms[1]) {
				if err := os.RemoveAll(filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
			}
			named := strings.NewReplacer("NAME", ms[0].Name(), "FILE", ms[0].Files[0].Name)
			for _, args := range [][]string{{"archive", "list"}, {"archive", "verify", "--all"}, {"archive", "verify", "--day", "2026-08-01"}} {
				r := w.call(args...)
				if want := "docket: " + named.Replace(c.want) + "\n"; r.code != 1 || strings.Count(r.err, want) != 1 {
					t.Errorf("%v: exit %d, want %q once\n%s%s", args, r.code, want, r.out, r.err)
				}
				quiet(t, r.out+r.err)
			}
			for _, args := range [][]string{{"why", old[0].ID}, {"logs", old[0].ID}, {"logs", "--since", "2026-08-01", "--until", "2026-08-02"}} {
				if r := w.call(args...); !strings.Contains(r.out+r.err, named.Replace(c.why)) {
					t.Errorf("%v: exit %d\n%s%s", args, r.code, r.out, r.err)
				}
			}
			r := w.call("archive", "list", "--json")
			var answer struct {
				Entries []struct {
					Name    string
					Missing []string `json:"missing_files"`
				}
			}
			err := json.Unmarshal([]byte(r.out), &answer)
			if is := name == "a file"; err != nil || r.code != 1 || is && (len(answer.Entries) != 2 || len(answer.Entries[0].Missing) != 1) {
				t.Errorf("exit %d, %v\n%s", r.code, err, r.out)
			}
		})
	}
}

// A list does not fail because of a day that was forgotten on purpose.
func TestArchive_ForgottenDayIsListed(t *testing.T) {
	t.Parallel()
	day, _ := archive.ParseDay("2026-08-01")
	w := &world{days: young{}, shelf: archive.Dir(t.TempDir()), left: []archive.Left{{Day: day, Forgotten: &archive.Forgotten{At: day.Time, By: "mara", Reason: "over"}, Archives: []string{}}}}
	if r := w.call("archive", "list", "--from", "x"); r.code != 0 || strings.Contains(r.err, "2026-08-01") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// meanwhile is a shelf that does something once, after its first listing.
type meanwhile struct {
	archive.Shelf
	once func()
}

func (m *meanwhile) List(ctx context.Context, prefix string) ([]string, error) {
	names, err := m.Shelf.List(ctx, prefix)
	if m.once != nil {
		m.once()
		m.once = nil
	}
	return names, err
}

// A day that is archived while a command looks is not missing.
func TestArchive_DayLeavesMeanwhile(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	for _, args := range [][]string{{"archive", "list", "--from", "x"}, {"archive", "verify", "--all", "--from", "x"}} {
		dir := archive.Dir(t.TempDir())
		write := func(i int) archive.Left {
			m, err := archivetest.Write(t.Context(), dir, 10, readertest.Decision(200+i, at.AddDate(0, 0, i)))
			if err != nil {
				t.Error(err)
				return archive.Left{}
			}
			return archive.Left{Day: archive.DayOf(at.AddDate(0, 0, i)), Archives: []string{m.Name()}}
		}
		w := &world{days: young{}, left: []archive.Left{write(0)}}
		w.shelf = &meanwhile{dir, func() { w.left = append(w.left, write(1)) }}
		if r := w.call(args...); r.code != 0 || strings.Contains(r.err, "2026-08-02") || len(w.left) != 2 {
			t.Errorf("%v: exit %d, %d days left\n%s%s", args, r.code, len(w.left), r.out, r.err)
		}
	}
}

// Files without a manifest are told, although no day left the table: those of a run that was killed, and those that can be the only copy.
func TestArchive_FilesWithoutAManifestAreTold(t *testing.T) {
	t.Parallel()
	dir := archive.Dir(t.TempDir())
	const killed, begun, lost = "decision_logs-2026-08-01-001-3f9a2c-00000000", "decision_logs-2026-08-02-001-3f9a2c-00000000", "dead_letters-2026-08-01-001-3f9a2c-00000000"
	for _, file := range []string{killed + ".started", "decision_logs/day=2026-08-01/" + killed + ".0001.parquet", begun + ".started", lost + ".0001.jsonl.gz"} {
		if err := dir.Put(t.Context(), file, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{days: young{}, shelf: dir}
	want := "archive " + killed + " is not finished, and has 1 file: a run is writing it, or was killed; the next run of the day removes what a killed one left\n" +
		"archive " + begun + " is not finished, and has 0 files: a run is writing it, or was killed; the next run of the day removes what a killed one left\n" +
		"1 file of archive " + lost + " without a manifest: it was removed, or a run of an earlier release was killed; no run removes them\n"
	if r := w.call("archive", "list", "--from", "x"); r.code != 0 || !strings.Contains(r.err, want) {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// emptied is a table without a row of any day.
type emptied struct{ young }

func (emptied) Open(context.Context, archive.Day) (archive.OpenDay, error) { return noDay{}, nil }

type noDay struct{ archive.OpenDay }

func (noDay) Left(context.Context) (*archive.Left, error) { return nil, nil }
func (noDay) Source(context.Context) (archive.Source, error) {
	return archive.Source{ID: "3f9a2c"}, nil
}
func (noDay) Where(context.Context) (archive.Location, error) { return archive.Nowhere, nil }
func (noDay) Close()                                          {}

// A day left the table with a second archive that replaces the first. The command counts its rows once, and fails if an
// archive that the day needs is gone.
func TestArchive_DayThatLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	all := []reader.Decision{readertest.Decision(200, at), readertest.Decision(201, at.Add(time.Minute)), readertest.Decision(202, at.Add(2*time.Minute))}
	var last *archive.Manifest
	for _, n := range []int{2, 3} {
		var err error
		if last, err = archivetest.Write(t.Context(), archive.Dir(dir), 10, all[:n]...); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{days: emptied{}, shelf: archive.Dir(dir), left: []archive.Left{{Day: archive.DayOf(at), Archives: []string{last.Name()}}}}
	args := []string{"archive", "--day", "2026-08-01", "--to", dir, "--operator", "mara", "--yes"}
	if r := w.call(args...); r.code != 0 || !strings.Contains(r.out, "2026-08-01: not in the table; already archived, 3 rows\n") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	for _, file := range []string{last.Name() + ".manifest.json", last.Supersedes[0] + ".manifest.json"} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
		if r := w.call(args...); r.code != 1 || !strings.Contains(r.err, "archive "+last.Name()+" has no manifest any more") {
			t.Errorf("without %s: exit %d\n%s%s", file, r.code, r.out, r.err)
		}
	}
	w.left = nil
	if r := w.call(args...); r.code != 0 || !strings.Contains(r.out, "no rows in the table and no archive") {
		t.Errorf("of another day: exit %d\n%s%s", r.code, r.out, r.err)
	}
}
