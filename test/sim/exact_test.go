//go:build synctests

package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"docket/internal/testkit/exact"
)

var steps = flag.Bool("sim.steps", false, "where the binary plays exactly: print every choice of the runtime")

var chance = flag.Bool("sim.chance", false, "let the process id decide something, so that a check of exactness can be seen to fail")

// fakeDrawn is how many random bytes kfake has used of a stock that all clusters of a process share.
//
//go:linkname fakeDrawn github.com/twmb/franz-go/pkg/kfake.randPoolAt
var fakeDrawn int

// forget removes the state that earlier schedules left in the process.
func forget() { fakeDrawn = 4 << 10 } // all of it: then the fake draws new ones

// addChance is what -sim.chance does.
func addChance() {
	if *chance {
		time.Sleep(time.Duration(os.Getpid()))
	}
}

// warmUp plays schedules that do not count. Values that a process computes once, at their first use, exist
// afterwards. So a schedule runs the same way as the first of its process and as the last.
func warmUp(t *testing.T) {
	if !exact.Possible {
		return
	}
	for i := range uint64(24) {
		t.Run("warm-up", func(t *testing.T) { play(t, 1<<62+i, &tally{Faults: map[string]int{}}) })
	}
}

// tally sums up the schedules of one run of the test; tools/simrun reads it.
type tally struct {
	Schedules int            `json:"schedules"`
	Exact     int            `json:"exact"` // schedules whose interleaving followed from the seed
	Stray     uint64         `json:"stray"` // iterations over maps that could differ from process to process
	Steps     uint64         `json:"steps"` // choices of the runtime
	Virtual   float64        `json:"virtual_seconds"`
	CPU       float64        `json:"cpu_seconds"`
	Effects   int            `json:"effects"`
	Kills     int            `json:"kills"`
	Faults    map[string]int `json:"faults"`
}

// add counts a schedule and, with traces, prints its trace.
func (y *tally) add(s *schedule, h *history, isExact bool, failed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	told := exact.Tell()
	y.Schedules++
	if isExact {
		y.Exact++
	}
	y.Stray += told.Stray
	y.Steps += told.Steps
	y.Effects += h.effects
	for _, e := range s.Events {
		y.Faults[e.What]++
	}
	for _, l := range h.lines {
		if l.what == "killed" {
			y.Kills++
		}
	}
	if *trace && s.Seed < 1<<62 {
		end := "ok"
		if failed {
			end = "FAILED"
		}
		fmt.Printf("seed %d trace %016x order %016x %s\n", s.Seed, h.trace.Sum64(), told.Digest, end)
	}
}

// print prints the tally on a separate line.
func (y *tally) print(virtual, spent time.Duration) {
	y.Virtual, y.CPU = virtual.Seconds(), spent.Seconds()
	line, err := json.Marshal(y)
	if err != nil {
		panic(err) // numbers and names
	}
	fmt.Printf("sim: %s\n", line)
}
