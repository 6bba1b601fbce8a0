package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// archiving returns a carrier of rows that are out of the table, with two rows in a file.
func archiving(shelf Shelf, lines bool, left *Left, rows []string) (*Carrier, *stepping) {
	table := &stepping{where: Leaving, lines: rows, left: left}
	return &Carrier{Table: table, Shelf: shelf, By: "desk", Docket: "test", Now: time.Now, Lines: lines, PartRows: 2}, table
}

// restorable fails unless each line is in a whole archive of the day.
func restorable(t *testing.T, dir string, day Day, lines []string) {
	t.Helper()
	all, err := Whole(t.Context(), Dir(dir), "decision_logs", &day)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, m := range all {
		if err := Check(t.Context(), Dir(dir), m, func(line []byte) error { have[string(line)] = true; return nil }); err != nil {
			t.Error(err)
		}
	}
	for _, line := range lines {
		if !have[line] {
			t.Errorf("%d archives, and none has %s", len(all), line)
		}
	}
}

// A run that is killed at any write or removal is finished by the next one, with no file left. If manifests are lost meanwhile,
// files stay that can be the only copy. That holds for a whole day and for its late decisions, in each format.
func TestUnfinished_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	day, all := dayNamed(t, "2026-03-04"), fewLines(9)
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "x", "") // small ones
	}
	for _, lines := range []bool{false, true} {
		for _, late := range []bool{false, true} {
			for _, lost := range []bool{false, true} {
				for _, when := range Whens {
					t.Run(fmt.Sprintf("lines %t, late %t, manifests lost %t, killed %s", lines, late, lost, when), func(t *testing.T) {
						t.Parallel()
						for lives := 0; ; lives++ {
							if killedAt(t, day, all, lines, late, lost, when, lives) {
								continue
							}
							if lives < 5 { // a marker, two files, a manifest and the removal of the marker
								t.Errorf("only %d steps", lives)
							}
							return
						}
					})
				}
			}
		}
	}
}

// killedAt archives a day with a killed run and another one. It returns false if the run was not killed.
func killedAt(t *testing.T, day Day, all []string, lines, late, lost bool, when string, lives int) bool {
	dir := t.TempDir()
	rows, left := all[:5], (*Left)(nil)
	if late {
		c, first := archiving(Dir(dir), lines, nil, rows)
		if _, err := c.Archive(t.Context(), day, false); err != nil {
			t.Fatal(err)
		}
		rows, left = all[5:], &Left{Day: day, Archives: first.needs.Archives}
	}
	c, _ := archiving(&Mortal{Shelf: Dir(dir), Dir: dir, Lives: lives, When: when}, lines, left, rows)
	if _, err := c.Archive(t.Context(), day, false); err == nil {
		return false
	}
	before := map[string][]string{}
	lose := func() {
		for _, name := range Losing(t, dir, lost) {
			if before[name] = FilesOf(t, dir, name); len(before[name]) == 0 {
				t.Fatalf("%s has no files", name)
			}
		}
	}
	lose()
	for range 2 { // also a run that is killed while it removes files
		c, _ = archiving(&Mortal{Shelf: Dir(dir), Dir: dir, Lives: 2, When: when}, lines, left, rows)
		_, _ = c.Archive(t.Context(), day, false) // it is killed, or ends before; the run below has to succeed
		lose()
	}
	c, table := archiving(Dir(dir), lines, left, rows)
	if done, err := c.Archive(t.Context(), day, false); err != nil || !done.Dropped || !table.dropped {
		t.Fatalf("killed at %d: %+v, %v", lives, done, err)
	}
	NothingLeft(t, dir, "decision_logs", slices.Collect(maps.Keys(before)))
	for name, files := range before {
		if !slices.Equal(FilesOf(t, dir, name), files) {
			t.Errorf("killed at %d: %s lost files", lives, name)
		}
	}
	if late && !lost {
		rows = all
	}
	restorable(t, dir, day, rows)
	return true
}

// unfinished writes the files of an archive of two parts, and its marker.
func unfinished(t *testing.T, shelf Shelf, m *Manifest, marker bool) (files []string) {
	t.Helper()
	files = []string{m.partName(1), m.partName(2)}
	for _, name := range files {
		if err := shelf.Put(t.Context(), name, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	if marker {
		if err := shelf.Put(t.Context(), m.Name()+startedSuffix, strings.NewReader(startedText)); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Files without a manifest can be the only copy of decisions. They go only if their run left its marker, and only where the
// database did not rely on them.
func TestUnfinished_OnlyWithAMarker(t *testing.T) {
	t.Parallel()
	day := dayNamed(t, "2026-03-04")
	leftover := Manifest{Table: "decision_logs", Day: day.String(), Generation: 3, Source: Source{ID: "abcdef"}, Attempt: "00000000", Hash: Total{}.Hash(), Files: []File{}}
	other := leftover
	other.Source.ID = "3f9a2c"
	for what, c := range map[string]struct {
		left     *Left
		whole    []int // generations that have a manifest
		needed   bool
		complete bool // it has a manifest itself
		unknown  bool
	}{
		"never left":              {},
		"restored":                {whole: []int{2}},
		"a later one is there":    {whole: []int{4}},
		"needed":                  {left: &Left{Archives: []string{leftover.Name()}}, needed: true},
		"others are needed":       {left: &Left{Archives: []string{"decision_logs-2026-03-04-009-abcdef-11111111"}}},
		"not known":               {left: &Left{}, needed: true, unknown: true},
		"not known, and complete": {left: &Left{}, complete: true},
		"given up":                {left: &Left{Archives: []string{}, Forgotten: &Forgotten{Archives: []string{leftover.Name()}}}, needed: true},
		"given up without it":     {left: &Left{Archives: []string{}, Forgotten: &Forgotten{}}},
		"its manifest is damaged": {complete: true},
	} {
		for _, format := range []int{FormatLines, FormatParquet} {
			for _, marker := range []bool{true, false} {
				dir := t.TempDir()
				shelf := Dir(dir)
				mine, others := leftover, other
				mine.Format, others.Format = format, format
				files, theirs := unfinished(t, shelf, &mine, marker), unfinished(t, shelf, &others, true)
				for _, generation := range c.whole {
					m := leftover
					m.Format, m.Generation = FormatLines, generation
					if err := seal(t.Context(), shelf, &m); err != nil {
						t.Fatal(err)
					}
				}
				if c.complete {
					if err := shelf.Put(t.Context(), mine.Name()+manifestSuffix, strings.NewReader("{")); err != nil {
						t.Fatal(err)
					}
				}
				carrier, _ := archiving(shelf, format == FormatLines, c.left, fewLines(1))
				if _, err := carrier.Archive(t.Context(), day, true); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				want := files
				if marker && !c.needed && !c.complete {
					want = nil
				}
				if got := FilesOf(t, dir, mine.Name()); !slices.Equal(got, want) {
					t.Errorf("%s, format %d, marker %t: %v, want %v", what, format, marker, got, want)
				}
				there := AllFiles(t, dir)
				if got, want := slices.Contains(there, mine.Name()+startedSuffix), marker && c.unknown; got != want {
					t.Errorf("%s: the marker is there: %t, want %t", what, got, want)
				}
				if !slices.Contains(there, others.Name()+startedSuffix) || !slices.Equal(FilesOf(t, dir, others.Name()), theirs) {
					t.Errorf("%s: files of another database are gone", what)
				}
			}
		}
	}
}

// refusing is a day whose rows cannot be read to their end.
type refusing struct{ *stepping }

func (r refusing) Open(context.Context, Day) (OpenDay, error) { return r, nil }

func (r refusing) Read(ctx context.Context, shape Shape, each func([]byte) error) (Facts, error) {
	facts, err := r.stepping.Read(ctx, shape, each)
	return facts, errors.Join(err, errRefused)
}

var errRefused = errors.New("refused")

// tracking is a shelf that keeps what was written and removed, in order. at is called before each.
type tracking struct {
	Shelf
	did []string
	at  func(did string) error
}

func (k *tracking) do(did string) error {
	k.did = append(k.did, did)
	if k.at != nil {
		return k.at(did)
	}
	return nil
}

func (k *tracking) Put(ctx context.Context, name string, r io.Reader) error {
	err := k.Shelf.Put(ctx, name, r)
	return errors.Join(err, k.do("put "+name))
}

func (k *tracking) Remove(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), k.do("remove "+name)); err != nil {
		return err
	}
	return k.Shelf.Remove(ctx, name)
}

// A run that fails removes its files and then its marker, also one that is stopped.
func TestUnfinished_FailedRun(t *testing.T) {
	t.Parallel()
	day := dayNamed(t, "2026-03-04")
	for _, stopped := range []bool{false, true} {
		dir := t.TempDir()
		shelf := &tracking{Shelf: Dir(dir)}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		c, table := archiving(shelf, false, nil, fewLines(40)) // in two portions
		c.Table = refusing{table}
		if stopped {
			c.Table = losing{table, func() error {
				if len(shelf.did) > 20 { // all is written
					stop()
				}
				return ctx.Err()
			}}
		}
		if _, err := c.Archive(ctx, day, false); err == nil {
			t.Fatal("it was archived")
		}
		if names := AllFiles(t, dir); len(names) > 0 || len(shelf.did) < 5 || !strings.HasSuffix(shelf.did[0], startedSuffix) || !strings.HasSuffix(shelf.did[len(shelf.did)-1], startedSuffix) {
			t.Errorf("stopped %t: %v, did %q", stopped, names, shelf.did)
		}
	}
}

// A storage that does not say whether it stored a file can store it later. So the marker stays for the next run.
func TestUnfinished_FileInDoubt(t *testing.T) {
	t.Parallel()
	day := dayNamed(t, "2026-03-04")
	for _, doubt := range []string{".0001.parquet", ".0003.parquet", manifestSuffix} {
		dir := t.TempDir()
		c, _ := archiving(&tracking{Shelf: Dir(dir), at: func(did string) error {
			if strings.HasPrefix(did, "put ") && strings.HasSuffix(did, doubt) {
				return errRefused
			}
			return nil
		}}, false, nil, fewLines(5))
		if _, err := c.Archive(t.Context(), day, false); !errors.Is(err, errRefused) {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(AllFiles(t, dir), func(name string) bool { return strings.HasSuffix(name, startedSuffix) }) {
			t.Errorf("%s: the marker is gone", doubt)
		}
		c, _ = archiving(Dir(dir), false, nil, fewLines(5))
		if done, err := c.Archive(t.Context(), day, false); err != nil || !done.Dropped || done.Reused != (doubt == manifestSuffix) {
			t.Errorf("%s: %+v, %v", doubt, done, err)
		}
		NothingLeft(t, dir, "decision_logs", nil)
	}
}

// A marker that cannot be removed ends the run, before the day is dropped.
func TestUnfinished_MarkerThatStays(t *testing.T) {
	t.Parallel()
	day, dir := dayNamed(t, "2026-03-04"), t.TempDir()
	shelf := &tracking{Shelf: Dir(dir), at: func(did string) error {
		if strings.HasPrefix(did, "remove ") {
			return errRefused
		}
		return nil
	}}
	for range 2 {
		c, table := archiving(shelf, false, nil, fewLines(5))
		if _, err := c.Archive(t.Context(), day, false); !errors.Is(err, errRefused) || table.dropped {
			t.Errorf("%v, dropped %t", err, table.dropped)
		}
	}
}

// losing is a day whose lock can be lost.
type losing struct {
	*stepping
	lost func() error
}

func (l losing) Open(context.Context, Day) (OpenDay, error) { return l, nil }

func (l losing) Source(ctx context.Context) (Source, error) {
	if err := l.lost(); err != nil {
		return Source{}, err
	}
	return l.stepping.Source(ctx)
}

// A run that lost its lock while it wrote leaves nothing, and takes nothing from the run that has the lock now.
func TestUnfinished_LostLock(t *testing.T) {
	t.Parallel()
	day := dayNamed(t, "2026-03-04")
	for _, at := range []string{startedSuffix, ".0001.parquet", ".0003.parquet"} {
		dir, lost := t.TempDir(), false
		shelf := &tracking{Shelf: Dir(dir)}
		shelf.at = func(did string) error {
			if lost || !strings.HasSuffix(did, at) {
				return nil
			}
			lost = true
			c, _ := archiving(Dir(dir), false, nil, fewLines(5))
			done, err := c.Archive(t.Context(), day, false)
			if err != nil || !done.Dropped {
				t.Errorf("%s: the other run: %+v, %v", at, done, err)
			}
			return nil
		}
		c, table := archiving(shelf, false, nil, fewLines(5))
		c.Table = losing{table, func() error {
			if lost {
				return errRefused
			}
			return nil
		}}
		if _, err := c.Archive(t.Context(), day, false); !errors.Is(err, errRefused) || table.dropped {
			t.Errorf("%s: %v, dropped %t", at, err, table.dropped)
		}
		NothingLeft(t, dir, "decision_logs", nil)
		restorable(t, dir, day, fewLines(5))
	}
}

// A run that lost its lock can write its manifest while another one removes its files. That manifest goes, too.
func TestUnfinished_ManifestComesLate(t *testing.T) {
	t.Parallel()
	day, dir := dayNamed(t, "2026-03-04"), t.TempDir()
	m := &Manifest{Format: FormatParquet, Table: "decision_logs", Day: day.String(), Generation: 1, Source: Source{ID: "abcdef"}, Attempt: "00000000", Hash: Total{}.Hash(), Files: []File{}}
	unfinished(t, Dir(dir), m, true)
	shelf := &tracking{Shelf: Dir(dir)}
	shelf.at = func(did string) error {
		if did == "remove "+m.partName(2) {
			return seal(t.Context(), Dir(dir), m)
		}
		return nil
	}
	c, table := archiving(shelf, false, nil, fewLines(5))
	if done, err := c.Archive(t.Context(), day, false); err != nil || !slices.Equal(table.needs.Archives, []string{done.Archive}) {
		t.Errorf("%v, needs %v", err, table.needs)
	}
	NothingLeft(t, dir, "decision_logs", nil)
	if slices.Contains(AllFiles(t, dir), m.Name()+manifestSuffix) {
		t.Error("the manifest is there")
	}
}

// An archive without rows has no file, and needs no marker.
func TestUnfinished_NoRows(t *testing.T) {
	t.Parallel()
	day, dir := dayNamed(t, "2026-03-04"), t.TempDir()
	c, _ := archiving(Dir(dir), false, nil, nil)
	if done, err := c.Archive(t.Context(), day, false); err != nil || !done.Dropped || len(AllFiles(t, dir)) != 1 {
		t.Errorf("%+v, %v, %v", done, err, AllFiles(t, dir))
	}
}

// A killed run can leave a temporary file, which no engine reads. It goes with the file of its name.
func TestDir_TemporaryFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	beside := filepath.Join(dir, "decision_logs", "day=2026-03-04", ".n.parquet.tmp")
	if besides(filepath.Join(filepath.Dir(beside), "n.parquet")) != beside {
		t.Fatal("its name has no dot")
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(beside), 0o700), os.WriteFile(beside, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Dir(dir).Remove(t.Context(), "decision_logs/day=2026-03-04/n.parquet"); err != nil || len(AllFiles(t, dir)) > 0 {
		t.Errorf("%v, %v", err, AllFiles(t, dir))
	}
}

// behind is a shelf whose listing does not have some files yet.
type behind struct {
	Shelf
	lacks string // the end of their names
	err   error  // of a look at one of them
}

func (b behind) List(ctx context.Context, prefix string) ([]string, error) {
	names, err := b.Shelf.List(ctx, prefix)
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, b.lacks) }), err
}

func (b behind) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if b.err != nil && strings.HasSuffix(name, b.lacks) {
		return nil, b.err
	}
	return b.Shelf.Get(ctx, name)
}

// TestUnfinished_ListingIsBehind: a listing that does not have a manifest yet costs no archive. If the place does not say
// whether the manifest is there, nothing is removed.
func TestUnfinished_ListingIsBehind(t *testing.T) {
	t.Parallel()
	day := dayNamed(t, "2026-03-04")
	for _, table := range []string{"decision_logs", LettersName} {
		for _, away := range []error{nil, errors.New("away")} {
			dir := t.TempDir()
			m := Manifest{Format: FormatLines, Table: table, Day: day.String(), Generation: 3, Source: Source{ID: "abcdef"}, Attempt: "00000000", Hash: Total{}.Hash(), Files: []File{}}
			files := unfinished(t, Dir(dir), &m, true)
			if err := seal(t.Context(), Dir(dir), &m); err != nil {
				t.Fatal(err)
			}
			if err := finish(t.Context(), behind{Dir(dir), manifestSuffix, away}, table, day, "abcdef", func(string) staying { return nothing }); !errors.Is(err, away) {
				t.Errorf("%v", err)
			}
			there := AllFiles(t, dir)
			if got := FilesOf(t, dir, m.Name()); !slices.Equal(got, files) || !slices.Contains(there, m.Name()+manifestSuffix) {
				t.Errorf("%s, away %v: %v", table, away, there)
			}
			if slices.Contains(there, m.Name()+startedSuffix) != (away != nil) {
				t.Errorf("%s, away %v: the marker: %v", table, away, there)
			}
		}
	}
}
