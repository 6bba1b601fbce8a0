package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tally is what schedules add up to. Its fields are those of the line `sim: {…}` that the test prints at its end.
type tally struct {
	Schedules int            `json:"schedules"`
	Exact     int            `json:"exact"`
	Stray     uint64         `json:"stray"`
	Steps     uint64         `json:"steps"`
	Virtual   float64        `json:"virtual_seconds"`
	CPU       float64        `json:"cpu_seconds"`
	Effects   int            `json:"effects"`
	Kills     int            `json:"kills"`
	Faults    map[string]int `json:"faults"`
}

func (t *tally) add(o tally) {
	t.Schedules += o.Schedules
	t.Exact += o.Exact
	t.Stray += o.Stray
	t.Steps += o.Steps
	t.Virtual += o.Virtual
	t.CPU += o.CPU
	t.Effects += o.Effects
	t.Kills += o.Kills
	if t.Faults == nil {
		t.Faults = map[string]int{}
	}
	for kind, n := range o.Faults {
		t.Faults[kind] += n
	}
}

// played is what one process of the test told.
type played struct {
	traces map[uint64]string // by seed: hash of the effects and of the interleaving
	failed []uint64
	last   *tally // nil where the process did not come to its end
}

var traceLine = regexp.MustCompile(`^seed (\d+) (trace [0-9a-f]+ order [0-9a-f]+) (ok|FAILED)$`)

// parse reads what a process printed.
func parse(output string) (played, error) {
	p := played{traces: map[uint64]string{}}
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		if raw, ok := strings.CutPrefix(line, "sim: "); ok {
			p.last = &tally{}
			if err := json.Unmarshal([]byte(raw), p.last); err != nil {
				return p, fmt.Errorf("the test's own count: %w", err)
			}
			continue
		}
		m := traceLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var seed uint64
		if _, err := fmt.Sscan(m[1], &seed); err != nil {
			return p, fmt.Errorf("seed of a trace: %w", err)
		}
		p.traces[seed] = m[2]
		if m[3] == "FAILED" {
			p.failed = append(p.failed, seed)
		}
	}
	return p, nil
}

// reruns has the result of playing seeds again, each alone in a process of its own.
type reruns struct {
	checked int
	company map[uint64]uint64 // went another way alone, and the same behind the schedules from this seed on
	differ  []uint64          // went another way both times
}

// report prints the closing lines.
func (t *tally) report(out io.Writer, wall time.Duration, procs int, v reruns, failed []uint64, total int) {
	virtual := time.Duration(t.Virtual * float64(time.Second)).Round(time.Second)
	fmt.Fprintf(out, "schedules:   %d of %d, %d failed\n", t.Schedules, total, len(failed))
	fmt.Fprintf(out, "simulated:   %v of virtual time, %d effects, %d processes killed\n", virtual, t.Effects, t.Kills)
	kinds := make([]string, 0, len(t.Faults))
	sum := 0
	for kind, n := range t.Faults {
		kinds = append(kinds, kind)
		sum += n
	}
	slices.SortFunc(kinds, func(a, b string) int { return t.Faults[b] - t.Faults[a] + strings.Compare(a, b)/2 })
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %d", kind, t.Faults[kind])
	}
	fmt.Fprintf(out, "faults:      %d: %s\n", sum, strings.Join(kinds, ", "))
	fmt.Fprintf(out, "took:        %v on %d cores, %.1f ms of CPU for a schedule, %.0f schedules per hour\n",
		wall.Round(100*time.Millisecond), procs, 1000*t.CPU/float64(max(t.Schedules, 1)), float64(t.Schedules)/wall.Hours())
	switch {
	case t.Exact == 0:
		fmt.Fprintln(out, "replay:      not exact: the ordinary runtime was used (EXACT=0, or a toolchain that is not known); a seed repeats the faults, not the order of goroutines")
	case len(v.company)+len(v.differ) > 0:
		fmt.Fprintf(out, "replay:      %d played again alone: %d identical, %d only behind the same schedules as before %v, %d another way %v\n", v.checked,
			v.checked-len(v.company)-len(v.differ), len(v.company), slices.Sorted(maps.Keys(v.company)), len(v.differ), v.differ)
	default:
		fmt.Fprintf(out, "replay:      %d seeds played again, each alone in a new process: all identical, effect by effect and switch by switch\n", v.checked)
	}
	for _, seed := range failed {
		command := fmt.Sprintf("make sim SEED=%d", seed)
		if first, ok := v.company[seed]; ok {
			command += fmt.Sprintf(" FIRST=%d", first)
		}
		fmt.Fprintf(out, "FAILED       %s\n", command)
	}
}
