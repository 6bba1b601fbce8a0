package bench

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestGoal_MetOrMissed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		goal  *Goal
		value float64
		want  string
	}{
		{AtLeast(0.9), 0.9, "met"},
		{AtLeast(0.9), 0.81, "**missed by 10.0 %**"},
		{AtMost(4), 4, "met"},
		{AtMost(4), 5, "**missed by 25.0 %**"},
		{AtLeast(1), math.NaN(), "**not measured**"},
		{AtMost(1), math.NaN(), "**not measured**"},
	} {
		if got := c.goal.Outcome(c.value); got != c.want {
			t.Errorf("%+v, %v: %s, want %s", *c.goal, c.value, got, c.want)
		}
	}
}

func TestPage_GoalFigureVerdictRounds(t *testing.T) {
	t.Parallel()
	page := Page{
		Machine: []string{"machine: two cores"},
		Rows: []Row{
			{What: "fast|slow", Measured: Figure{Value: 0.5, Of: []float64{0.5, 0.25}, Rounds: 2, Noisy: 1}, Goal: AtLeast(1), Note: "same round"},
			{What: "said only", Measured: Over(runs(0.5, 0.9), Run.Rate), Format: "%.0f"},
		},
		Seen:  []Seen{{Name: "docket", Runs: []Run{{Rows: 1_000_000, Took: 10 * time.Second, Worker: 3 * time.Second, Peak: 64 << 20, WAL: 5e8, Foreign: 0.2, Retries: 2}}}},
		Notes: []string{"a note"},
	}
	var text strings.Builder
	page.Markdown(&text)
	for _, line := range []string{
		"- machine: two cores",
		`| fast\|slow | ≥ 1.00 | 0.50 | **missed by 50.0 %** | 0.50, 0.25 (1 noisy left out) | same round |`,
		"| said only |  | 2 | said, all rounds noisy | 2 |  |",
		"| docket (2 writes tried again) | 1 | 100000 | – | 3.00 | – | – | 64 MiB | 500 | 20 %, 1 of 1 noisy |",
		"- a note",
	} {
		if !strings.Contains(text.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, text.String())
		}
	}
}
