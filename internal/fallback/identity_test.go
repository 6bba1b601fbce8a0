package fallback_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"docket/internal/fallback"
	"docket/internal/testkit/fstest"
)

// held opens a directory and returns the id that it has.
func held(t *testing.T, fsys fallback.FS) string {
	t.Helper()
	s, err := fallback.Open(cfg(), fsys, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ := s.Held()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestHeld_IdentityStays(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	first := held(t, fallback.OS(dir))
	if len(first) != 16 || held(t, fallback.OS(dir)) != first {
		t.Fatalf("%q, and another one then", first)
	}
	text, err := os.ReadFile(filepath.Join(dir, ".lock"))
	if err != nil || string(text) != first+" 1\n"+first+" 2\n" {
		t.Fatalf("%q, %v", text, err)
	}
	if other := held(t, fallback.OS(filepath.Join(t.TempDir(), "spool"))); other == first {
		t.Error("two directories have one id")
	}
}

// A crash can leave a part of the line, or the empty file of an earlier release.
func TestHeld_TornIdentity(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "3f9a2c", "3f9a2c114f397d52 7", "3f9a2c114f397d52\n", "3f9a2c114f397d52 -1\n", "3f9a2c114f397d52 99999999999999\n", "3f9a2c114f397d52 1 and more\n", "\n\n"} {
		dir := filepath.Join(t.TempDir(), "spool")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".lock"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		id := held(t, fallback.OS(dir))
		if len(id) != 16 || id == "3f9a2c114f397d52" || held(t, fallback.OS(dir)) != id {
			t.Errorf("after %q: %q, and another one then", text, id)
		}
	}
	dir := filepath.Join(t.TempDir(), "spool")
	must(t, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, ".lock"), []byte("3f9a2c114f397d52 7\n3f9a2c114f397d"), 0o600))
	s := open(t, cfg(), fallback.OS(dir))
	if id, since, _ := s.Held(); id != "3f9a2c114f397d52" || since != 8<<32 {
		t.Errorf("after a torn line behind the seventh opening: %q, %d", id, since)
	}
}

// A disk that fails leaves the spool without an id, and does not keep it from opening.
func TestHeld_FailingDisk(t *testing.T) {
	t.Parallel()
	for _, op := range []fstest.Op{fstest.OpRead, fstest.OpWrite, fstest.OpSync} {
		m := fstest.New()
		m.Fail(fstest.Fault{Op: op, N: 1, Err: fstest.Errnos[0]})
		if id := held(t, m); id != "" {
			t.Errorf("%s: the id is %q", op, id)
		}
		m.Heal()
		if id := held(t, m); len(id) != 16 || held(t, m) != id {
			t.Errorf("%s: later it is %q, and another one then", op, id)
		}
	}
}

// The number rises with the first file and the last one, and from process to process.
func TestHeld_Since(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	var last int64
	is := func(what string, want, rises bool) {
		t.Helper()
		_, since, holds := s.Held()
		if holds != want || rises != (since > last) || since < last {
			t.Errorf("%s: holds %v, from %d to %d", what, holds, last, since)
		}
		last = since
	}
	is("new", false, true)
	for _, key := range []string{"a", "b"} {
		if err := s.Append(t.Context(), linesOf(key)); err != nil {
			t.Fatal(err)
		}
		is("with "+key, true, key == "a")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, cfg(), m)
	is("opened again, whatever the clock says", true, true)
	drain(t, s, &broker{})
	is("recovered", false, true)
	drain(t, s, &broker{})
	is("still empty", false, false)
}
