// Command detruntime prepares a Go runtime whose choices follow from a seed, for the binary of the simulation.
//
// Virtual time alone does not make a test repeatable. Chance and the wall clock decide which goroutine runs next, which
// ready case a select takes, and where the iteration of a map starts. So detruntime reads the installed toolchain's own
// files, makes the few replacements listed in [patches], and adds one file to package runtime. It prints the path of a
// file for `go build -overlay`. The toolchain itself stays as it is. If a place to replace is not there exactly once,
// the toolchain is unknown: detruntime ends with an error and writes nothing.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed runtime_exact.go.txt
var added string

// addedAs is where the added file appears, below GOROOT/src.
const addedAs = "runtime/exact.go"

func main() {
	to := flag.String("to", "", "directory for what is written")
	goroot := flag.String("goroot", "", "the toolchain; by default that of the go command")
	flag.Parse()
	path, err := run(*goroot, *to)
	if err != nil {
		fmt.Fprintln(os.Stderr, "detruntime:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

func run(goroot, to string) (string, error) {
	if goroot == "" {
		out, err := exec.CommandContext(context.Background(), "go", "env", "GOROOT").Output()
		if err != nil {
			return "", fmt.Errorf("ask for GOROOT: %w", err)
		}
		goroot = strings.TrimSpace(string(out))
	}
	to, err := filepath.Abs(to)
	if err != nil {
		return "", err
	}
	files, err := patched(filepath.Join(goroot, "src"))
	if err != nil {
		return "", err
	}
	files[addedAs] = added
	return write(files, filepath.Join(goroot, "src"), to)
}

// patched returns the changed text of every file of [patches], by its path below src.
func patched(src string) (map[string]string, error) {
	files := map[string]string{}
	for _, p := range patches {
		text, ok := files[p.file]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(src, p.file))
			if err != nil {
				return nil, fmt.Errorf("read the toolchain: %w", err)
			}
			text = string(raw)
		}
		want := max(p.times, 1)
		if n := strings.Count(text, p.old); n != want {
			return nil, fmt.Errorf("%s: found %d times instead of %d: %q", p.file, n, want, p.old)
		}
		files[p.file] = strings.ReplaceAll(text, p.old, p.new)
	}
	return files, nil
}

// write stores the files below to, and beside them the overlay that puts them in place of those below src.
func write(files map[string]string, src, to string) (string, error) {
	replace := map[string]string{}
	for file, text := range files {
		formatted, err := format.Source([]byte(text))
		if err != nil {
			return "", fmt.Errorf("%s is no Go any more: %w", file, err)
		}
		path := filepath.Join(to, strings.ReplaceAll(file, "/", "_"))
		if err := os.MkdirAll(to, 0o750); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, formatted, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(src, file)] = path
	}
	overlay, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	path := filepath.Join(to, "overlay.json")
	return path, os.WriteFile(path, append(overlay, '\n'), 0o600)
}
