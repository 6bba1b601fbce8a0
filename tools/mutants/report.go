package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// said is the test, and how it failed where that was not by its own word.
func (f finding) said() string {
	if f.how == "" {
		return f.test
	}
	return f.test + " (" + f.how + ")"
}

// seed is what a failure of the simulation is known by: its subtests are named after their seeds.
func (f finding) seed() string {
	if _, seed, ok := strings.Cut(f.test, "/"); ok {
		return "seed " + seed
	}
	return f.said()
}

// String is the outcome on one line.
func (v outcome) String() string {
	took := v.took.Round(100 * time.Millisecond)
	switch {
	case v.err != nil:
		return fmt.Sprintf("%s: BROKEN: %v", v.name, v.err)
	case v.caught.test == "":
		return fmt.Sprintf("%s: SURVIVED (%s); it breaks: %s", v.name, took, v.breaks)
	}
	line := fmt.Sprintf("%s: caught by %s in %s (%s)", v.name, v.caught.said(), v.by.where(), took)
	if v.simulated != "" {
		line += "; simulation: " + v.simulated
	}
	return line
}

// report prints the table and the count. Its error says that the tests do not see everything, or that the list is wrong.
func report(out io.Writer, outcomes []outcome, cost string, markdown bool) error {
	rows := make([][]string, len(outcomes))
	caught, survived, broken, asked, seen := 0, 0, 0, 0, 0
	for i, v := range outcomes {
		by, in := v.caught.said(), v.by.where()
		switch {
		case v.err != nil:
			broken++
			by, in = "BROKEN", v.err.Error()
		case v.caught.test == "":
			survived++
			by, in = "SURVIVED", ""
		default:
			caught++
		}
		rows[i] = []string{v.name, v.breaks, by, in, v.simulated}
		asked, seen = asked+b2i(v.simulated != ""), seen+b2i(strings.HasPrefix(v.simulated, "seen"))
	}
	table(out, []string{"mutant", "breaks", "caught by", "in", "simulation"}, rows, markdown)
	if asked > 0 {
		fmt.Fprintf(out, "the simulation by itself saw %d of %d that it was asked about\n", seen, asked)
	}
	fmt.Fprintf(out, "%d planted, %d caught, %d survived", len(outcomes), caught, survived)
	if broken > 0 {
		fmt.Fprintf(out, ", %d broken", broken)
	}
	fmt.Fprintf(out, "; %s\n", cost)
	switch {
	case broken > 0:
		return errors.New("the list is wrong, or a run did not end: see BROKEN")
	case survived > 0:
		return errors.New("a bug was planted and no test noticed")
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// printList prints what would be planted.
func printList(out io.Writer, mutants []mutant, markdown bool) {
	rows := make([][]string, len(mutants))
	for i, m := range mutants {
		var tests []string
		for _, s := range m.tests {
			tests = append(tests, s.where())
		}
		if m.simulation {
			tests = append(tests, "simulation")
		}
		rows[i] = []string{m.name, m.breaks, m.hunks[0].file, strings.Join(tests, ", ")}
	}
	table(out, []string{"mutant", "breaks", "file", "asked"}, rows, markdown)
	count(out, mutants, markdown)
}

// count tells how many bugs are planted in which folder, the folder with most first.
func count(out io.Writer, mutants []mutant, markdown bool) {
	in, played := map[string]int{}, 0
	for _, m := range mutants {
		in[path.Dir(m.hunks[0].file)]++
		if m.simulation {
			played++
		}
	}
	folders := slices.SortedFunc(maps.Keys(in), func(a, b string) int {
		return cmp.Or(in[b]-in[a], strings.Compare(a, b))
	})
	rows := make([][]string, len(folders))
	for i, f := range folders {
		rows[i] = []string{f, strconv.Itoa(in[f])}
	}
	fmt.Fprintln(out)
	table(out, []string{"folder", "bugs"}, rows, markdown)
	fmt.Fprintf(out, "\n%d bugs; the simulation alone is asked about %d\n", len(mutants), played)
}

func table(out io.Writer, head []string, rows [][]string, markdown bool) {
	if !markdown {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{head}, rows...) {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		_ = w.Flush()
		return
	}
	line := func(cells []string) {
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	}
	line(head)
	fmt.Fprintln(out, "|"+strings.Repeat("---|", len(head)))
	for _, row := range rows {
		line(row)
	}
	fmt.Fprintln(out)
}
