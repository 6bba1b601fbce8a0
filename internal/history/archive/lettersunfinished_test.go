package archive_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docket/internal/history/archive"
)

// noted fails unless each letter is noted in an archive that has a manifest.
func noted(t *testing.T, c *archive.LettersCarrier, b *book) {
	t.Helper()
	for id, l := range b.letters {
		if !slices.ContainsFunc(manifests(t, c), func(m *archive.Manifest) bool { return m.Name() == l.in }) {
			t.Errorf("%s is in %q, which has no manifest", id, l.in)
		}
	}
}

// A run that is killed at any write or removal is finished by the next one, with no file left. If manifests are lost meanwhile,
// files stay that can be the only copy of a letter.
func TestLetters_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		for _, when := range archive.Whens {
			t.Run(fmt.Sprintf("manifests lost %t, killed %s", lost, when), func(t *testing.T) {
				t.Parallel()
				for lives := 0; ; lives++ {
					c, b, dir := carrying(t, "a", "b", "c", "d", "e")
					whole := c.Shelf
					c.Shelf = &archive.Mortal{Shelf: whole, Dir: dir, Lives: lives, When: when}
					if _, err := c.Archive(t.Context(), lettersDay); err == nil {
						if lives < 5 { // a marker, three files, a manifest and the removal of the marker
							t.Errorf("only %d steps", lives)
						}
						return
					}
					before := map[string][]string{}
					lose := func() {
						for _, name := range archive.Losing(t, dir, lost) {
							if before[name] = archive.FilesOf(t, dir, name); len(before[name]) == 0 {
								t.Fatalf("%s has no files", name)
							}
						}
					}
					lose()
					for range 2 { // also a run that is killed while it removes files
						c.Shelf = &archive.Mortal{Shelf: whole, Dir: dir, Lives: 2, When: when}
						if _, err := c.Archive(t.Context(), lettersDay); err == nil && len(b.waiting()) > 0 {
							t.Fatal("letters wait")
						}
						lose()
					}
					if len(b.waiting()) == 0 && lost {
						t.Fatal("a run with two lives has finished")
					}
					c.Shelf = whole
					if _, err := c.Archive(t.Context(), lettersDay); err != nil || len(b.waiting()) > 0 {
						t.Fatalf("killed at %d: %v", lives, err)
					}
					archive.NothingLeft(t, dir, archive.LettersName, slices.Collect(maps.Keys(before)))
					for name, files := range before {
						if !slices.Equal(archive.FilesOf(t, dir, name), files) {
							t.Errorf("killed at %d: %s lost files", lives, name)
						}
					}
					noted(t, c, b)
				}
			})
		}
	}
}

// The newest archive can lose its manifest after its letters were noted, and removed from the ledger. The next archive of the day
// keeps its files, so that they can be restored once the manifest is back.
func TestLetters_NewestManifestIsLost(t *testing.T) {
	t.Parallel()
	c, b, dir := carrying(t, "a", "b", "c")
	first, err := c.Archive(t.Context(), lettersDay)
	if err != nil {
		t.Fatal(err)
	}
	clear(b.letters)
	manifest := filepath.Join(dir, first.Archives[0]+".manifest.json")
	if err := os.Rename(manifest, manifest+".away"); err != nil {
		t.Fatal(err)
	}
	b.letters["d"] = &closed{value: "of d"}
	if done, err := c.Archive(t.Context(), lettersDay); err != nil || done.Letters != 1 || !strings.Contains(done.Archives[0], "-002-") {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, _, err := c.Keep(t.Context(), lettersDay, func(each func([]byte) error) error {
		return each([]byte(`{"dead_letter_id":"e","value":"of e"}`))
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(manifest+".away", manifest); err != nil {
		t.Fatal(err)
	}
	if back, err := c.Restore(t.Context(), lettersDay); err != nil || back.Stored != 4 {
		t.Errorf("%+v, %v", back, err)
	}
}

// TestLetters_NotedArchiveKeepsItsFiles: a copy of the place can have markers. A noted archive whose manifest is lost keeps its files
// all the same, and so does each while the notes cannot be read.
func TestLetters_NotedArchiveKeepsItsFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		noted  bool
		unread error
		stays  bool
	}{{true, nil, true}, {false, nil, false}, {false, archive.ErrNotedUnread, true}} {
		carrier, b, dir := carrying(t, "a")
		first, err := carrier.Archive(t.Context(), lettersDay)
		if err != nil {
			t.Fatal(err)
		}
		name := first.Archives[0]
		before := archive.FilesOf(t, dir, name)
		if err := os.Rename(filepath.Join(dir, name+".manifest.json"), filepath.Join(dir, name+".started")); err != nil {
			t.Fatal(err)
		}
		if c.noted {
			b.noted = []archive.Noted{{Archive: name}}
		}
		b.unread = c.unread
		b.letters["d"] = &closed{value: "of d"}
		if _, err := carrier.Archive(t.Context(), lettersDay); err != nil {
			t.Fatal(err)
		}
		if after := archive.FilesOf(t, dir, name); slices.Equal(after, before) != c.stays {
			t.Errorf("%+v: %q are left of %q", c, after, before)
		}
	}
}

// A killed run is finished by the next run of the day. No letter has to wait, and the run can keep letters that are in no ledger.
func TestLetters_KilledRunIsFinished(t *testing.T) {
	t.Parallel()
	line := func(each func([]byte) error) error { return each([]byte(`{"dead_letter_id":"x","value":"of x"}`)) }
	for what, run := range map[string]func(c *archive.LettersCarrier) error{
		"no letter waits": func(c *archive.LettersCarrier) error {
			_, err := c.Archive(t.Context(), lettersDay)
			return err
		},
		"kept": func(c *archive.LettersCarrier) error {
			_, _, err := c.Keep(t.Context(), lettersDay, line)
			return err
		},
	} {
		c, b, dir := carrying(t)
		whole := c.Shelf
		c.Shelf = &archive.Mortal{Shelf: whole, Dir: dir, Lives: 2, When: "after"} // a marker, a file, a manifest
		if _, _, err := c.Keep(t.Context(), lettersDay, line); !errors.Is(err, archive.ErrKilled) || b.taken {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, manifests(t, &archive.LettersCarrier{Shelf: whole})[0].Name()+".manifest.json")); err != nil {
			t.Fatal(err)
		}
		if c.Shelf = whole; len(archive.AllFiles(t, dir)) != 2 {
			t.Fatal(archive.AllFiles(t, dir))
		}
		if err := run(c); err != nil {
			t.Error(err)
		}
		archive.NothingLeft(t, dir, archive.LettersName, nil)
		if got := len(manifests(t, c)); (got == 1) != (what == "kept") {
			t.Errorf("%s: %d archives", what, got)
		}
	}
}
