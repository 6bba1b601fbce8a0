package lookup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/internal/history/archive"
)

// TestFind_LostArchiveOfLetters: an archive of dead letters that the ledger noted may have the only copy. If it is not there, the
// answer is not complete, and names it. If it was given up, the answer says so.
func TestFind_LostArchiveOfLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	archiveLetters(w, "d-1", "x")
	files, err := filepath.Glob(filepath.Join(w.shelf, "*.manifest.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	name := strings.TrimSuffix(filepath.Base(files[0]), ".manifest.json")
	noted, fault := []archive.Noted{{Archive: name}}, error(nil)
	look := w.look()
	look.Noted = func(context.Context) ([]archive.Noted, error) {
		if fault != nil {
			return nil, fault
		}
		return noted, nil
	}
	is := func(what string, complete, forgets, nowhere bool, says string) {
		t.Helper()
		a := look.Find(t.Context(), "d-1")
		told := false
		for _, g := range a.NotLooked {
			told = told || strings.Contains(g.String(), says)
		}
		if a.Complete() != complete || a.Forgets() != forgets || a.Nowhere() != nowhere || says != "" && !told {
			t.Errorf("%s: complete %v, forgets %v, nowhere %v: %v", what, a.Complete(), a.Forgets(), a.Nowhere(), a.NotLooked)
		}
	}
	is("there", true, false, false, "")
	fault = errors.New("away")
	is("the ledger is away", false, false, false, "it is not known whether archives are missing: away")
	fault = nil
	noted[0].Forgotten = &archive.Forgotten{At: noon, By: "mara", Reason: "over"}
	is("given up, and back", true, false, false, "")

	if err := os.WriteFile(files[0], []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	is("broken", false, false, true, name+" is broken")
	all, err := filepath.Glob(filepath.Join(w.shelf, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if err := os.RemoveAll(f); err != nil {
			t.Fatal(err)
		}
	}
	is("given up", true, true, true, name+" was forgotten on purpose by mara")
	noted[0].Forgotten = nil
	is("lost", false, false, true, "archive "+name+" has no manifest any more")
	for range 4 {
		noted = append(noted, noted[0])
	}
	is("several are lost", false, false, true, "and 2 others have no manifest")
}
