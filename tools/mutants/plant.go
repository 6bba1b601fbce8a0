package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// files are the patched files of a mutant by their names from the root.
func (m mutant) files(root string) (map[string]string, error) {
	patched := map[string]string{}
	for _, h := range m.hunks {
		text, ok := patched[h.file]
		if !ok {
			content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(h.file)))
			if err != nil {
				return nil, err
			}
			text = string(content)
		}
		text, err := h.apply(text)
		if err != nil {
			return nil, err
		}
		patched[h.file] = text
	}
	return patched, nil
}

// apply finds the old lines, which must be there once and no more.
func (h hunk) apply(text string) (string, error) {
	at, n := 0, 0
	for start := 0; start < len(text); start += strings.IndexByte(text[start:]+"\n", '\n') + 1 {
		if strings.HasPrefix(text[start:], h.old) {
			at, n = start, n+1
		}
	}
	switch n {
	case 1:
		return text[:at] + h.now + text[at+len(h.old):], nil
	case 0:
		return "", fmt.Errorf("%s has no such lines any more: %q", h.file, first(h.old))
	}
	return "", fmt.Errorf("%s has these lines %d times: %q", h.file, n, first(h.old))
}

func first(lines string) string {
	line, _, _ := strings.Cut(lines, "\n")
	return strings.TrimSpace(line)
}

// packages are those of the files that a mutant changes, as the go command names them.
func (m mutant) packages() []string {
	var all []string
	seen := map[string]bool{}
	for _, h := range m.hunks {
		dir := "./" + filepath.ToSlash(filepath.Dir(filepath.FromSlash(h.file)))
		if !seen[dir] {
			seen[dir] = true
			all = append(all, dir)
		}
	}
	return all
}

// plant writes the patched files and the overlay that puts them in place of the tree's, and returns the overlay's name.
func (m mutant) plant(root, scratch string) (overlay string, err error) {
	patched, err := m.files(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range patched {
		copied := filepath.Join(scratch, m.name, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(file))] = copied
	}
	return writeOverlay(filepath.Join(scratch, m.name+".json"), replace)
}

func writeOverlay(name string, replace map[string]string) (string, error) {
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	return name, os.WriteFile(name, content, 0o600)
}
