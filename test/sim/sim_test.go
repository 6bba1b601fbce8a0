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

// longest limits the real time of one schedule. A longer one waits for something outside virtual time.
const longest = 4 * time.Minute

// TestSimulation plays schedules. With any faults, every decision ends in its expected home, and no commit passed one
// without a home.
func TestSimulation(t *testing.T) { //nolint:paralleltest // a seed decides the random numbers of the whole process
	from, n := *first, *schedules
	if *single >= 0 {
		from, n = uint64(*single)-*behind, 1+*behind
	}
	pool()
	if !exact.Possible { // schedules leave little memory behind, and many goroutines to scan
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
	askedAll.Lock()
	defer askedAll.Unlock()
	t.Logf("%d answers said until when they are complete. %d of them counted parked records or dead letters, and %d knew that no spool has records",
		askedAll.claims, askedAll.counted, askedAll.unspooled)
	reportDecisions(t)
}

// build names the tested commit, and whether the tree has changed since.
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
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it fails only for another argument
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// goodbyes is how long closed connections may live. The database driver takes up to 15 s to close one that it gives
// up. The fake broker does not wait for its writes.
const goodbyes = 16 * time.Second

// play plays the schedule of a seed and returns its virtual time.
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
		addChance()
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
	w.running.Go(w.asks.run)
	decided := make(chan struct{})
	w.running.Go(func() { w.operate(); close(decided) })
	w.happen()
	<-decided
	w.healed = time.Now()
	w.history.add("all is healed", "", "")
	w.settle()
	w.judge()
}
