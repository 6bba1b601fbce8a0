package chaos

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Table is the closing table of a campaign.
type Table struct {
	Seed     uint64
	Duration time.Duration // of the load
	Commit   string        // of the programs
	Rows     []Row
	Faults   map[string]int // injected, by kind
	Undone   map[string]int // planned, and could not be done
	Kills    map[string]int // processes killed, by how
	Findings []string
}

// Row is one line of figures.
type Row struct {
	Name, Value string
}

// all are the rows in order, with what every table begins and ends with.
func (t Table) all() []Row {
	outcome := "passed"
	if len(t.Findings) > 0 {
		outcome = fmt.Sprintf("FAILED: %d findings", len(t.Findings))
	}
	rows := []Row{
		{"seed", fmt.Sprint(t.Seed)}, {"load", t.Duration.Round(time.Second).String()}, {"commit", t.Commit},
		{"faults injected", fmt.Sprintf("%d of %d kinds", sum(t.Faults), len(t.Faults))},
		{"processes killed", counts(t.Kills)},
	}
	return append(append(rows, t.Rows...), Row{"verdict", outcome})
}

// Text writes the table for a screen.
func (t Table) Text(to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, r := range t.all() {
		fmt.Fprintf(w, "%s\t%s\n", r.Name, r.Value)
	}
	for _, kind := range slices.Sorted(maps.Keys(t.Faults)) {
		fmt.Fprintf(w, "  %s\t%d\n", kind, t.Faults[kind])
	}
	for _, kind := range slices.Sorted(maps.Keys(t.Undone)) {
		fmt.Fprintf(w, "  not done, as another fault was in the way: %s\t%d\n", kind, t.Undone[kind])
	}
	_ = w.Flush()
	for i, f := range t.Findings {
		if i == 20 {
			fmt.Fprintf(to, "… and %d more\n", len(t.Findings)-i)
			return
		}
		fmt.Fprintf(to, "FOUND %s\n", f)
	}
}

// Markdown writes the table for a page.
func (t Table) Markdown(to io.Writer) {
	fmt.Fprint(to, "| what | how much |\n|---|---|\n")
	for _, r := range t.all() {
		fmt.Fprintf(to, "| %s | %s |\n", cell(r.Name), cell(r.Value))
	}
	fmt.Fprint(to, "\n| fault | times |\n|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(t.Faults)) {
		fmt.Fprintf(to, "| %s | %d |\n", cell(kind), t.Faults[kind])
	}
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func sum(m map[string]int) (n int) {
	for _, count := range m {
		n += count
	}
	return n
}

// counts is a map as "name 3, other 2", the largest first.
func counts(m map[string]int) string {
	if len(m) == 0 {
		return "0"
	}
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%s %d", name, m[name])
	}
	return strings.Join(parts, ", ")
}
