package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// toolchain writes the least that all patches apply to.
func toolchain(t *testing.T) string {
	t.Helper()
	files := map[string]string{}
	for _, p := range patches {
		files[p.file] += strings.Repeat("/*\n"+p.old+"\n*/", max(p.times, 1))
	}
	root := t.TempDir()
	for file, text := range files {
		path := filepath.Join(root, "src", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("package p\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRun_WritesTheOverlay(t *testing.T) {
	t.Parallel()
	to := t.TempDir()
	path, err := run(toolchain(t), to)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	overlay, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range patches {
		if !strings.Contains(string(overlay), filepath.Join("src", p.file)+`": "`+to) {
			t.Errorf("the overlay lacks %s", p.file)
		}
	}
	if !strings.Contains(string(overlay), addedAs) {
		t.Errorf("the overlay lacks %s", addedAs)
	}
}

func TestRun_RefusesAnotherToolchain(t *testing.T) {
	t.Parallel()
	for _, p := range patches {
		for name, change := range map[string]func(string) string{
			"a place is gone":  func(s string) string { return strings.Replace(s, p.old, "", 1) },
			"a place is twice": func(s string) string { return s + "/*\n" + p.old + "*/" },
		} {
			root, to := toolchain(t), filepath.Join(t.TempDir(), "to")
			path := filepath.Join(root, "src", p.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(change(string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := run(root, to); err == nil || !strings.Contains(err.Error(), p.file) {
				t.Errorf("%s in %s: %v", name, p.file, err)
			}
			if _, err := os.Stat(to); err == nil {
				t.Errorf("%s in %s: something was written", name, p.file)
			}
		}
	}
}
