package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A directory that others may write to is refused with a hint, and one that is missing is made for this user alone.
func TestPrepare_RefusesUnsafe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made := filepath.Join(dir, "a", "b")
	if err := Prepare(made); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := Prepare(made); err != nil {
		t.Errorf("again: %v", err)
	}
	for mode, safe := range map[os.FileMode]bool{0o700: true, 0o750: true, 0o755: true, 0o770: false, 0o702: false, 0o777: false, 0o777 | os.ModeSticky: false} {
		if err := os.Chmod(made, mode); err != nil {
			t.Fatal(err)
		}
		err := Prepare(made)
		var unsafe *UnsafeError
		if errors.As(err, &unsafe) == safe || !safe && unsafe.Hint() == "" {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if !trusted(0, 1000) || !trusted(1000, 1000) || trusted(1001, 1000) || trusted(1000, 0) {
		t.Error("the user and root are trusted, and nobody else")
	}
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Chmod(made, 0o700), os.Symlink(made, link)); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(link); err != nil {
		t.Errorf("a link: %v", err)
	}
}
