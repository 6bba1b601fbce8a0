package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A vendored file is compiled into a program as it is, so no build information names it. A note beside it does: lines with
// name, version, source, licence and the sum of the file.
var (
	noteLine = regexp.MustCompile(`(?m)^(name|version|source|licence): (.+)$`)
	noteSum  = regexp.MustCompile(`(?m)^sha256 of (\S+\.(?:js|css|woff2)): ([0-9a-f]{64})$`)
	licensed = regexp.MustCompile(`^(\S+), see (\S+)$`)
)

// vendored reads the notes of a folder. A minified file without a note is an error, and so is one with another sum.
func vendored(folder string) ([]part, error) {
	notes, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, fmt.Errorf("list vendored files: %w", err)
	}
	var parts []part
	var named []string
	for _, note := range notes {
		p, files, err := readNote(note)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", note, err)
		}
		parts, named = append(parts, p), append(named, files...)
	}
	minified, err := filepath.Glob(filepath.Join(folder, "*.min.*"))
	if err != nil {
		return nil, fmt.Errorf("list vendored files: %w", err)
	}
	for _, file := range minified {
		if !slices.Contains(named, filepath.Base(file)) {
			return nil, fmt.Errorf("%s has no note beside it", file)
		}
	}
	return parts, nil
}

func readNote(note string) (p part, files []string, err error) {
	text, err := os.ReadFile(note)
	if err != nil {
		return p, nil, err
	}
	fields := map[string]string{}
	for _, m := range noteLine.FindAllSubmatch(text, -1) {
		fields[string(m[1])] = strings.TrimSpace(string(m[2]))
	}
	licence := licensed.FindStringSubmatch(fields["licence"])
	if fields["name"] == "" || fields["version"] == "" || licence == nil {
		return p, nil, errors.New("it lacks a name, a version or a licence")
	}
	p = part{path: fields["name"], version: fields["version"], licence: licence[1], url: "pkg:npm/" + fields["name"] + "@" + fields["version"]}
	terms, err := os.ReadFile(filepath.Join(filepath.Dir(note), filepath.Base(licence[2])))
	if err != nil {
		return p, nil, fmt.Errorf("read its licence: %w", err)
	}
	p.texts = []string{string(terms)}
	for _, m := range noteSum.FindAllSubmatch(text, -1) {
		content, err := os.ReadFile(filepath.Join(filepath.Dir(note), filepath.Base(string(m[1]))))
		if err != nil {
			return p, nil, err
		}
		sum := sha256.Sum256(content)
		p.hash = hex.EncodeToString(sum[:])
		if !bytes.Equal([]byte(p.hash), m[2]) {
			return p, nil, fmt.Errorf("%s has another sum", m[1])
		}
		files = append(files, string(m[1]))
	}
	if len(files) != 1 {
		return p, nil, errors.New("it must have the sum of one file")
	}
	return p, files, nil
}
