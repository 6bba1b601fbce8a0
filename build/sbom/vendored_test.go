package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const assets = "../../internal/desk/console/assets"

func TestVendored_ListedWithLicence(t *testing.T) {
	t.Parallel()
	parts, err := vendored(assets)
	if err != nil || len(parts) != 1 || parts[0].path != "htmx.org" || parts[0].licence != "0BSD" || !strings.Contains(parts[0].texts[0], "Zero-Clause BSD") {
		t.Fatalf("%+v, %v", parts, err)
	}
	bill, notice := filepath.Join(t.TempDir(), "bill.json"), filepath.Join(t.TempDir(), "notice.txt")
	if err := writeBill(bill, "v1", "2026-01-02T03:04:05Z", parts); err != nil {
		t.Fatal(err)
	}
	if err := writeNotice(notice, "v1", parts); err != nil {
		t.Fatal(err)
	}
	var bom struct {
		Components []struct {
			Name, Version, Purl string
			Hashes              []struct{ Alg, Content string }
			Licenses            []struct{ License struct{ ID string } }
		}
	}
	text, err := os.ReadFile(bill)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &bom); err != nil || len(bom.Components) != 1 {
		t.Fatal(err, string(text))
	}
	if c := bom.Components[0]; c.Purl != "pkg:npm/htmx.org@"+c.Version || len(c.Hashes) != 1 || c.Hashes[0].Alg != "SHA-256" || len(c.Hashes[0].Content) != 64 || c.Licenses[0].License.ID != "0BSD" {
		t.Errorf("%+v", c)
	}
	if text, err := os.ReadFile(notice); err != nil || !strings.Contains(string(text), "htmx.org "+parts[0].version+" (0BSD)") {
		t.Error(err, string(text))
	}
}

func TestVendored_Refuses(t *testing.T) {
	t.Parallel()
	note, err := os.ReadFile(filepath.Join(assets, "htmx.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for says, files := range map[string]map[string]string{
		"has another sum":      {"htmx.txt": string(note), "htmx.min.js": "changed", "htmx.LICENSE": "x"},
		"has no note":          {"other.min.js": "x"},
		"read its licence":     {"htmx.txt": string(note), "htmx.min.js": "x"},
		"it lacks a name":      {"x.txt": "version: 1\n"},
		"the sum of one file":  {"x.txt": "name: x\nversion: 1\nlicence: MIT, see L\n", "L": "x"},
		"no such file or dire": {"x.txt": "name: x\nversion: 1\nlicence: MIT, see L\nsha256 of x.min.js: " + strings.Repeat("0", 64) + "\n", "L": "x"},
	} {
		folder := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := vendored(folder); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
