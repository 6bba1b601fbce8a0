package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Row is one line of the page: a measurement and its goal.
type Row struct {
	What     string
	Measured Figure
	Goal     *Goal // nil: said, not judged
	Format   string
	Note     string
}

// Goal is a bound that a figure has to keep.
type Goal struct {
	Bound  float64
	AtMost bool // else at least
}

// AtMost is a goal that no figure may exceed.
func AtMost(bound float64) *Goal { return &Goal{Bound: bound, AtMost: true} }

// AtLeast is a goal that a figure has to reach.
func AtLeast(bound float64) *Goal { return &Goal{Bound: bound} }

// Met says whether a figure keeps the bound. One that was not measured does not.
func (g Goal) Met(value float64) bool {
	if g.AtMost {
		return value <= g.Bound
	}
	return value >= g.Bound
}

// Outcome is "met", or by how much of the bound the goal was missed.
func (g Goal) Outcome(value float64) string {
	switch {
	case math.IsNaN(value):
		return "**not measured**"
	case g.Met(value):
		return "met"
	}
	return fmt.Sprintf("**missed by %.1f %%**", math.Abs(value/g.Bound-1)*100)
}

// Seen is one kind of run for the second table.
type Seen struct {
	Name string
	Runs []Run
}

// Page is all that a run has to say.
type Page struct {
	Machine []string // lines
	Rows    []Row
	Seen    []Seen
	Notes   []string
	Tables  []string // each with its lines
}

// Markdown writes the page.
func (p Page) Markdown(to io.Writer) {
	for _, line := range p.Machine {
		fmt.Fprintf(to, "- %s\n", line)
	}
	fmt.Fprint(to, "\n| what | goal | measured | verdict | by round | how |\n|---|---|---|---|---|---|\n")
	for _, r := range p.Rows {
		fmt.Fprintln(to, r.markdown())
	}
	fmt.Fprint(to, "\nMedians of the runs. Processor time is of user and system together, in seconds for a million decisions.\n\n"+
		"| run | rounds | rows/s | start-up | worker CPU | Postgres CPU | Kafka CPU | peak memory of the worker | log of Postgres, bytes a row | others, share of the machine |\n"+
		"|---|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range p.Seen {
		fmt.Fprintln(to, s.markdown())
	}
	if len(p.Notes) > 0 {
		fmt.Fprintln(to)
	}
	for _, note := range p.Notes {
		fmt.Fprintf(to, "- %s\n", note)
	}
	for _, table := range p.Tables {
		fmt.Fprintf(to, "\n%s", table)
	}
}

func (r Row) markdown() string {
	format := r.Format
	if format == "" {
		format = "%.2f"
	}
	goal, outcome := "", "said"
	if r.Goal != nil {
		sign := "≥"
		if r.Goal.AtMost {
			sign = "≤"
		}
		goal, outcome = sign+" "+fmt.Sprintf(format, r.Goal.Bound), r.Goal.Outcome(r.Measured.Value)
	}
	if r.Measured.AllNoisy() {
		outcome += ", all rounds noisy"
	}
	var values []string
	for _, v := range r.Measured.Of {
		values = append(values, fmt.Sprintf(format, v))
	}
	rounds := strings.Join(values, ", ")
	if n := r.Measured.Noisy; n > 0 && !r.Measured.AllNoisy() {
		rounds += fmt.Sprintf(" (%d noisy left out)", n)
	}
	return cells(r.What, goal, fmt.Sprintf(format, r.Measured.Value), outcome, rounds, r.Note)
}

func (s Seen) markdown() string {
	median := func(f func(Run) float64) float64 { return Over(s.Runs, f).Value }
	perMillion := func(of func(Run) time.Duration) string {
		return amount("%.2f", median(func(r Run) float64 { return of(r).Seconds() / float64(r.Rows) * 1e6 }))
	}
	noisy, retries := 0, int64(0)
	for _, r := range s.Runs {
		retries += r.Retries
		if r.Noisy() {
			noisy++
		}
	}
	others := fmt.Sprintf("%.0f %%", median(func(r Run) float64 { return r.Foreign })*100)
	if noisy > 0 {
		others += fmt.Sprintf(", %d of %d noisy", noisy, len(s.Runs))
	}
	name := s.Name
	if retries > 0 {
		name += fmt.Sprintf(" (%d writes tried again)", retries)
	}
	return cells(name, fmt.Sprint(len(s.Runs)), fmt.Sprintf("%.0f", median(Run.Rate)),
		amount("%.2f s", median(func(r Run) float64 { return r.StartUp.Seconds() })),
		amount("%.2f", median(Run.WorkerCPU)),
		perMillion(func(r Run) time.Duration { return r.Postgres }),
		perMillion(func(r Run) time.Duration { return r.Kafka }),
		amount("%.0f MiB", median(func(r Run) float64 { return float64(r.Peak) / (1 << 20) })),
		amount("%.0f", median(func(r Run) float64 { return float64(r.WAL) / float64(r.Rows) })), others)
}

// amount is a dash for what there is none of.
func amount(format string, v float64) string {
	if v == 0 || math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

func cells(values ...string) string {
	for i, v := range values {
		values[i] = strings.ReplaceAll(v, "|", `\|`)
	}
	return "| " + strings.Join(values, " | ") + " |"
}
