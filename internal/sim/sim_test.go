//go:build synctests

package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"docket/internal/exact"
)

var (
	first     = flag.Uint64("sim.first", 0, "seed of the first schedule")
	schedules = flag.Uint64("sim.schedules", 40, "schedules to play")
	single    = flag.Int64("sim.seed", -1, "play this one alone and tell its history")
	trace     = flag.Bool("sim.trace", false, "print the hash of every schedule's history")
	effectsOn = flag.Bool("sim.effects", false, "with -sim.seed: tell every effect too")
	logs      = flag.Bool("sim.logs", false, "with -sim.seed: show the logs of the programs")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// longest is how much of the wall's time one schedule may take: beyond it something waits where virtual time cannot see it.
const longest = time.Minute

// TestSimulation plays schedules: whatever goes wrong, in whatever order it heals, every decision ends in the home that it
// deserves, and at no commit was anything without one.
func TestSimulation(t *testing.T) {
	from, n := *first, *schedules
	if *single >= 0 {
		from, n = uint64(*single), 1
	}
	pool()
	warmUp(t)
	began, spent, total := time.Now(), cpu(), &tally{Faults: map[string]int{}}
	virtual := time.Duration(0)
	for seed := from; seed < from+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { virtual += play(t, seed, total) })
	}
	total.print(virtual, cpu()-spent)
	t.Logf("%d schedules in %v, %v of CPU each, %v virtual each", n, time.Since(began).Round(time.Millisecond),
		((cpu() - spent) / time.Duration(n)).Round(100*time.Microsecond), (virtual / time.Duration(n)).Round(time.Millisecond))
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it can only fail for who asks for another
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

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
	synctest.Test(t, func(t *testing.T) {
		isExact := exact.Start(seed, *steps && (seed == uint64(*single) || seed == *first+*schedules-1))
		forget()
		stumble()
		h, log := newHistory(), zerolog.Nop()
		if alone := *single >= 0 && seed == uint64(*single); alone {
			h.tell, h.every = func(l string) { fmt.Println(l) }, *effectsOn
			fmt.Print(s)
			if *logs {
				log = zerolog.New(os.Stdout)
			}
		}
		w := open(t, s, h, log)
		w.play()
		virtual = h.since()
		defer func() { total.add(s, h, isExact, t.Failed()) }()
		if broken := w.broken(); len(broken) > 0 {
			told := h.String()
			if *single >= 0 {
				told = ""
			}
			t.Errorf("%s\n\n%v\n%s\nreplay: make sim SEED=%d", strings.Join(broken, "\n"), s, told, seed)
		}
	})
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
	w.happen()
	w.history.add("all is healed", "", "")
	w.settle()
	w.judge()
}
