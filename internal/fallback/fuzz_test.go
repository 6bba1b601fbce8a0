package fallback_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"docket/internal/fallback"
	"docket/internal/testkit/fstest"
)

// recovered starts on a disk and recovers everything. No file may make either fail.
func recovered(t *testing.T, m *fstest.FS) []string {
	t.Helper()
	s, err := fallback.Open(cfg(), m, zerolog.Nop())
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	b := &broker{}
	for range 8 {
		if _, err := s.Recover(t.Context(), b); err != nil {
			t.Fatalf("recover: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return b.keys()
}

// FuzzMeta: whatever a meta says, the whole data file beside it is published, each record once.
func FuzzMeta(f *testing.F) {
	data, meta, err := fallback.ImageOf(linesOf("a", "b"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(meta)
	for _, text := range []string{
		"", "null", "{}", "[]", `{"num_events":-1,"sha256":"x","bytes":-1}`, `{"num_events":1e99}`, strings.Replace(string(meta), "2", "3", 1),
		`{"num_events":2,"created_at":"never","sha256":"","bytes":0}`, string(meta) + string(meta), strings.Repeat(" ", 5000),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, meta []byte) {
		m := fstest.New()
		m.Plant("1700000001_a_1.jsonl.gz", data, 0o600, 1)
		m.Plant("1700000001_a_1.meta.json", meta, 0o600, 1)
		plant(t, m, "1700000002_a_2", linesOf("other"))
		if got := recovered(t, m); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a", "b", "other"}) {
			t.Fatalf("published %q beside the meta %q", got, meta)
		}
	})
}

// FuzzFile: no file of any name and content blocks the start or the other files.
func FuzzFile(f *testing.F) {
	data, meta, err := fallback.ImageOf(linesOf("a", "b"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{
		"1700000001_a_1.jsonl.gz", "1700000001_a.oversize_1.jsonl.gz", "1700000001_a_1.meta.json", ".1700000001_a_1.jsonl.gz.tmp", "1700000001_a_1.jsonl.gz.bad",
		"99999999999999999999_a_1.jsonl.gz", "-1_a_1.jsonl.gz", "1700000001__.jsonl.gz", "1700000001_a_18446744073709551616.jsonl.gz", "corrupt.reason", "x",
	} {
		f.Add(name, data)
		f.Add(name, meta)
		f.Add(name, data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		if name == "" || name == "." || name == ".." || name == "corrupt" || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, "1700000002_a_2") {
			return // an invalid name, or taken
		}
		m := fstest.New()
		m.Plant(name, content, 0o600, 1)
		plant(t, m, "1700000002_a_2", linesOf("other"))
		if got := recovered(t, m); !slices.Contains(got, "other") {
			t.Fatalf("published %q", got)
		}
	})
}
