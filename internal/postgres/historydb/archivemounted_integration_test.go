//go:build integration

package historydb_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"docket/internal/history/archive"
	"docket/internal/testkit/pgtest"
)

// TestArchive_DirectoryThatIsNotMounted: once something was archived, neither days nor dead letters are archived to a directory that is
// missing, as it would be made on another disk.
func TestArchive_DirectoryThatIsNotMounted(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	a.archive(false)
	a.rows(100, 3)
	check(t, os.Rename(a.dir, a.dir+"-elsewhere"))
	var refused *archive.CannotError
	if done, err := a.c.Archive(t.Context(), a.day, false); !errors.As(err, &refused) || done.Dropped {
		t.Errorf("%+v, %v", done, err)
	}
	letters := (&pgtest.Letters{DB: a.DB, T: t}).Carrier(a.dir)
	if _, _, err := letters.Keep(t.Context(), a.day, func(each func([]byte) error) error { return each([]byte(`{}`)) }); !errors.As(err, &refused) {
		t.Errorf("dead letters: %v", err)
	}
	if _, err := os.Stat(a.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was made again: %v", err)
	}
	check(t, os.Rename(a.dir+"-elsewhere", a.dir))
	if done := a.archive(false); !done.Dropped || done.Rows != 3 {
		t.Errorf("%+v", done)
	}
	all, err := filepath.Glob(filepath.Join(a.dir, "*.manifest.json"))
	if err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}
