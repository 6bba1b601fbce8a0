package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// others are told of in a sentence, as libraries name them.
var others = []string{"docket_kafka_", "go_", "process_"}

// written is the table of docs/metrics.md.
func written(t *testing.T) (rows map[string][]string, text string) {
	t.Helper()
	page, err := os.ReadFile(at("docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string][]string{}
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " |")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		name := strings.Trim(cells[0], "`")
		if rows[name] != nil || len(cells) != 6 {
			t.Errorf("%s: %d cells, or twice", name, len(cells))
			continue
		}
		rows[name] = cells
	}
	return rows, string(page)
}

func TestDocs_MetricsTableIsComplete(t *testing.T) {
	t.Parallel()
	known, err := registered()
	if err != nil {
		t.Fatal(err)
	}
	rows, text := written(t)
	for name, m := range known {
		if i := slices.IndexFunc(others, func(prefix string) bool { return strings.HasPrefix(name, prefix) }); i >= 0 {
			if !strings.Contains(text, "`"+others[i]+"*`") {
				t.Errorf("docs/metrics.md does not mention %s*", others[i])
			}
			continue
		}
		cells := rows[name]
		if cells == nil {
			t.Errorf("docs/metrics.md has no row for %s", name)
			continue
		}
		letters := map[string]string{"consumer": "c", "parking-replayer": "r", "docket": "d", "collector": "o"}
		var of []string
		for _, p := range m.programs {
			of = append(of, letters[p])
		}
		if got, want := cells[3], strings.Join(of, " "); got != want {
			t.Errorf("%s is of %q, want %q", name, got, want)
		}
		if m.kind != "" && cells[1] != m.kind || cells[1] == "" {
			t.Errorf("%s is a %s, not a %s", name, m.kind, cells[1])
		}
		if got, want := sorted(cells[2]), sorted(m.labels); got != want {
			t.Errorf("%s has the labels %q, not %q", name, want, got)
		}
		if cells[4] == "" {
			t.Errorf("%s has no meaning", name)
		}
	}
	for name := range rows {
		if known[name] == nil {
			t.Errorf("docs/metrics.md tells of %s, which no program has", name)
		}
	}
}

func sorted(labels string) string {
	all := map[string]bool{}
	for _, l := range strings.Split(labels, ", ") {
		all[l] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), ", ")
}

func TestDocs_QueriesNameExistingMetrics(t *testing.T) {
	t.Parallel()
	known, err := registered()
	if err != nil {
		t.Fatal(err)
	}
	_, text := written(t)
	blocks := regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) < 8 {
		t.Errorf("%d queries", len(blocks))
	}
	for _, b := range blocks {
		for line := range strings.Lines(b[1]) {
			if err := balanced(line); err != nil {
				t.Errorf("%v: %s", err, line)
			}
			for _, name := range asked(line, known) {
				if known[name] == nil {
					t.Errorf("no program has %s", name)
				}
			}
		}
	}
}
