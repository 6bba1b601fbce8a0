//go:build !race

// The race detector makes this take more than a minute, and one goroutine does all of it.

package archive

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParquet_FindsAnyDamage(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	shelf := Dir(path)
	want := fewLines(100)
	m := parquet(t, shelf, want)
	if len(m.Files) != 3 || m.Files[0].Name != "decision_logs/day=2026-03-04/"+m.Name()+".0001.parquet" {
		t.Fatalf("%+v", m.Files)
	}
	var got []string
	if err := Check(t.Context(), shelf, m, func(line []byte) error { got = append(got, string(line)); return nil }); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%d lines, %v", len(got), err)
	}
	if all, err := Whole(t.Context(), shelf, m.Table, nil); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0].Files, m.Files) {
		t.Fatalf("%v, %v", all, err)
	}
	file := filepath.Join(path, m.Files[1].Name)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	another, err := os.ReadFile(filepath.Join(path, m.Files[0].Name))
	if err != nil {
		t.Fatal(err)
	}
	harm := map[string][]byte{"empty": {}, "cut": whole[:len(whole)-1], "cut in the middle": whole[:len(whole)/2], "longer": append(slices.Clone(whole), 0), "another file": another}
	for at := range len(whole) {
		if at >= 16 && at < len(whole)-600 && rand.IntN(len(whole)/40) > 0 || at >= len(whole)-600 && rand.IntN(6) > 0 {
			continue
		}
		b := slices.Clone(whole)
		b[at] ^= 1 << rand.IntN(8)
		harm[fmt.Sprintf("a bit of %08b at %d of %d", whole[at]^b[at], at, len(whole))] = b
	}
	for name, b := range harm {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Check(t.Context(), shelf, m, nil); !unreadable(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), shelf, m, nil); !isBroken(err) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("%v", err)
	}
}
