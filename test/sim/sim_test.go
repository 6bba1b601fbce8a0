//go:build synctests

package sim

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"docket/internal/testkit/exact"
)

var (
	first     = flag.Uint64("sim.first", 0, "seed of the first schedule")
	schedules = flag.Uint64("sim.schedules", 40, "schedules to play")
	single    = flag.Int64("sim.seed", -1, "play this one alone and tell its history")
	behind    = flag.Uint64("sim.after", 0, "with -sim.seed: play as many of the seeds before it first")
	trace     = flag.Bool("sim.trace", false, "print the hash of every schedule's history")
	effectsOn = flag.Bool("sim.effects", false, "with -sim.seed: tell every effect too")
	logs      = flag.Bool("sim.logs", false, "with -sim.seed: show the logs of the programs")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// longest is how much of the wall's time one schedule may take: beyond it something waits where virtual time cannot see it.
const longest = 4 * time.Minute

// TestSimulation plays schedules: whatever goes wrong, in whatever order it heals, every decision ends in the home that it
// deserves, and at no commit was anything without one.
func TestSimulation(t *testing.T) { //nolint:paralleltest // a seed decides the random numbers of the whole process
	from, n := *first, *schedules
	if *single >= 0 {
		from, n = uint64(*single)-*behind, 1+*behind
	}
	pool()
	if !exact.Possible { // schedules leave little behind, and many goroutines to look through
		defer debug.SetGCPercent(debug.SetGCPercent(400))
	}
	warmUp(t)
	began, spent, total := time.Now(), cpu(), &tally{Faults: map[string]int{}}
	virtual := time.Duration(0)
	for seed := from; seed < from+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { virtual += play(t, seed, total) })
	}
	total.print(virtual, cpu()-spent)
	t.Logf("%d schedules in %v, %v of CPU each, %v virtual each", n, time.Since(began).Round(time.Millisecond),
		((cpu() - spent) / time.Duration(n)).Round(100*time.Microsecond), (virtual / time.Duration(n)).Round(time.Millisecond))
	for _, what := range slices.Sorted(maps.Keys(openEnds.of)) {
		t.Logf("not decided in %d: %s", openEnds.of[what], what)
	}
	reportDecisions(t)
}

// build names what is tested: the commit, and whether the tree is another by now.
var build = sync.OnceValue(func() string {
	commit, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(commit))
	if changed, err := exec.Command("git", "status", "--porcelain").Output(); err != nil || len(changed) > 0 {
		name += ", dirty"
	}
	return name
})

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it can only fail for who asks for another
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// goodbyes is how long what has been closed may go on: the database driver takes up to 15 s to part from a connection that
// it gives up, and the fake broker does not wait for what it is writing.
const goodbyes = 16 * time.Second

// play plays the schedule of a seed and says how long it took in virtual time.
func play(t *testing.T, seed uint64, total *tally) (virtual time.Duration) {
	cryptotest.SetGlobalRandom(t, seed)
	s := plan(seed)
	watchdog := time.AfterFunc(longest, func() {
		stacks := make([]byte, 4<<20)
		fmt.Fprintf(os.Stderr, "seed %d takes too long\n%v\n%s\n", seed, s, stacks[:runtime.Stack(stacks, true)])
		os.Exit(3)
	})
	defer watchdog.Stop()
	var broken []string
	var told string
	synctest.Test(t, func(t *testing.T) {
		isExact := exact.Start(seed, *steps && (seed == uint64(*single) || seed == *first+*schedules-1))
		forget()
		stumble()
		alone := *single >= 0 && seed == uint64(*single)
		h, out := newHistory(), io.Writer(nil)
		if alone {
			h.tell, h.every = func(l string) { fmt.Println(l) }, *effectsOn
			fmt.Print(s)
			if *logs {
				out = os.Stdout
			}
		}
		defer func() { total.add(s, h, isExact, len(broken) > 0 || t.Failed()) }()
		w := open(t, s, h, out)
		w.play()
		time.Sleep(goodbyes)
		virtual = h.since()
		if broken = w.broken(); len(broken) > 0 && !alone {
			told = h.String()
		}
	})
	if len(broken) > 0 {
		t.Errorf("%s\n\nseed %d, build %s\n%v\n%s\nreplay: make sim SEED=%d", strings.Join(broken, "\n"), seed, build(), s, told, seed)
	}
	return virtual
}

// play lets everything happen, waits until it has settled, and judges.
func (w *world) play() {
	defer w.close()
	w.feeding = true
	for _, s := range w.slots {
		w.running.Go(s.run)
	}
	w.running.Go(w.feed)
	decided := make(chan struct{})
	w.running.Go(func() { w.operate(); close(decided) })
	w.happen()
	<-decided
	w.healed = time.Now()
	w.history.add("all is healed", "", "")
	w.settle()
	w.judge()
}
