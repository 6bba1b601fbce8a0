// Command sbom writes the bill of materials (CycloneDX 1.6, JSON) and the licences of programs. Both come from the
// build information of the programs: exactly the modules that were linked, without those of tests.
//
//	sbom -version v1 -time 2026-01-02T03:04:05Z -sbom out.json -notice NOTICES.txt -vendored FOLDER program...
//
// Files of others that are compiled in come from the notes in the folder of -vendored. Licence texts come from Go's module cache. Equal programs give equal files.
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	release := flag.String("version", "dev", "of the programs")
	when := flag.String("time", "", "RFC 3339, of the commit")
	out := flag.String("sbom", "", "file to write")
	notice := flag.String("notice", "", "file to write")
	folder := flag.String("vendored", "", "folder with files of others that are compiled in")
	flag.Parse()
	if err := run(*release, *when, *out, *notice, *folder, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// part is a module or a vendored file with its licence.
type part struct {
	path, version, sum string
	url                string // of the package; empty: that of a Go module
	hash               string // SHA-256 of a vendored file, in hex
	licence            string // SPDX, empty where the text is not known
	texts              []string
}

func run(release, when, out, notice, folder string, programs []string) error {
	parts := map[string]part{}
	toolchain := ""
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return fmt.Errorf("read %s: %w", program, err)
		}
		if toolchain == "" || version.Compare(toolchain, info.GoVersion) < 0 {
			toolchain = info.GoVersion
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			parts[m.Path] = part{path: m.Path, version: m.Version, sum: m.Sum}
		}
	}
	if len(parts) == 0 {
		return errors.New("the programs name no modules")
	}
	sorted := []part{}
	for _, p := range parts {
		sorted = append(sorted, p)
	}
	slices.SortFunc(sorted, func(a, b part) int { return strings.Compare(a.path, b.path) })
	for i := range sorted {
		if err := sorted[i].license(); err != nil {
			return err
		}
	}
	std := part{path: "std", version: strings.TrimPrefix(toolchain, "go"), licence: "BSD-3-Clause"}
	text, err := goLicense()
	if err != nil {
		return err
	}
	std.texts = []string{text}
	sorted = append(sorted, std)
	if folder != "" {
		more, err := vendored(folder)
		if err != nil {
			return err
		}
		sorted = append(sorted, more...)
	}
	if err := writeBill(out, release, when, sorted); err != nil {
		return err
	}
	return writeNotice(notice, release, sorted)
}

func goLicense() (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("ask for GOROOT: %w", err)
	}
	for _, file := range []string{filepath.Join(strings.TrimSpace(string(root)), "LICENSE"), "/usr/share/doc/golang/LICENSE"} {
		if text, err := os.ReadFile(file); err == nil {
			return string(text), nil
		}
	}
	return "", errors.New("Go's own LICENSE is not in GOROOT")
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)(\.(md|txt))?$|(?i)^licen[sc]e[-.]\w+$`)

// license reads the texts that lie at the top of the module.
func (p *part) license() error {
	cmd := exec.Command("go", "mod", "download", "-json", p.path+"@"+p.version)
	cmd.Dir = os.TempDir() // outside any module, so that exactly this version is meant
	raw, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("find %s@%s in the module cache: %w", p.path, p.version, err)
	}
	dir := regexp.MustCompile(`"Dir": "([^"]+)"`).FindSubmatch(raw)
	if dir == nil {
		return fmt.Errorf("%s@%s has no folder", p.path, p.version)
	}
	entries, err := os.ReadDir(string(dir[1]))
	if err != nil {
		return fmt.Errorf("look into %s: %w", p.path, err)
	}
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(string(dir[1]), e.Name()))
		if err != nil {
			return fmt.Errorf("read the licence of %s: %w", p.path, err)
		}
		p.texts = append(p.texts, string(text))
		if p.licence == "" {
			p.licence = spdx(string(text))
		}
	}
	if len(p.texts) == 0 {
		return fmt.Errorf("%s@%s has no licence at its top", p.path, p.version)
	}
	return nil
}

// spdx names a licence by phrases of its text that no other has; empty where none fits.
func spdx(text string) string {
	flat := strings.ToLower(strings.Join(strings.Fields(text), " "))
	has := func(phrases ...string) bool {
		for _, p := range phrases {
			if !strings.Contains(flat, p) {
				return false
			}
		}
		return true
	}
	switch {
	case has("apache license", "version 2.0, january 2004"):
		return "Apache-2.0"
	case has("mozilla public license", "2.0"):
		return "MPL-2.0"
	case has("gnu "):
		return ""
	case has("redistribution and use in source and binary forms", "endorse or promote products"):
		return "BSD-3-Clause"
	case has("redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("permission to use, copy, modify, and", "distribute this software for any purpose"):
		return "ISC"
	case has("permission is hereby granted, free of charge", "the above copyright notice and this permission notice"):
		return "MIT"
	}
	return ""
}

func writeBill(file, release, when string, parts []part) error {
	bom := cdx.NewBOM()
	bom.SpecVersion = cdx.SpecVersion1_6
	seed := sha256.New()
	const self = "docket"
	main := cdx.Component{
		BOMRef: self, Type: cdx.ComponentTypeApplication, Name: self, Version: release,
		PackageURL: "pkg:generic/docket@" + release, Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}
	bom.Metadata = &cdx.Metadata{Timestamp: when, Component: &main}
	components, refs := []cdx.Component{}, []string{}
	for _, p := range parts {
		fmt.Fprintln(seed, p.path, p.version, cmp.Or(p.sum, p.hash))
		url := cmp.Or(p.url, "pkg:golang/"+p.path+"@"+p.version)
		c := cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: p.path, Version: p.version, PackageURL: url, Scope: cdx.ScopeRequired}
		// A sum of Go is not the hash of a file, so it is written where nobody takes it for one.
		if p.sum != "" {
			c.Properties = &[]cdx.Property{{Name: "go:sum", Value: p.sum}}
			if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.sum, "h1:")); err != nil || len(raw) != sha256.Size {
				return fmt.Errorf("%s has the sum %q", p.path, p.sum)
			}
		}
		if p.hash != "" {
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.hash}}
		}
		if p.licence != "" {
			c.Licenses = &cdx.Licenses{{License: &cdx.License{ID: p.licence}}}
		} else {
			c.Licenses = &cdx.Licenses{{License: &cdx.License{Name: "see THIRD_PARTY_LICENSES.txt"}}}
		}
		components, refs = append(components, c), append(refs, url)
	}
	fmt.Fprintln(seed, release, when)
	id := hex.EncodeToString(seed.Sum(nil))
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%s-%s-5%s-a%s-%s", id[:8], id[8:12], id[13:16], id[17:20], id[20:32])
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: self, Dependencies: &refs}}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write the bill: %w", err)
	}
	err = cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
	return errors.Join(err, f.Close())
}

func writeNotice(file, release string, parts []part) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Docket %s is made from the modules and files below, each under its own licence.\n", release)
	for _, p := range parts {
		fmt.Fprintf(&b, "\n%s\n%s %s (%s)\n%s\n", strings.Repeat("=", 80), p.path, p.version, cmp.Or(p.licence, "see its text"), strings.Repeat("=", 80))
		for _, text := range p.texts {
			b.WriteString("\n" + strings.TrimSpace(text) + "\n")
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the licences: %w", err)
	}
	return nil
}
