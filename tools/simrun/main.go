// Command simrun plays many schedules of the simulation: one process for each core, each with a stretch of seeds at a
// time, and adds up what they tell. It ends with 1 where a schedule failed. Some are played again, and it tells how many went
// another way.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

type config struct {
	binary   string
	dir      string // where the test runs: the folder of its package
	first, n uint64
	chunk    uint64 // seeds that a process plays
	procs    int
	keep     bool // continue after a failure
	checks   int  // seeds to play again
	every    time.Duration
	deadline time.Duration // of one process
	summary  string        // file that gets one line; empty: none
}

func main() {
	var c config
	flag.StringVar(&c.binary, "binary", "", "the compiled test")
	flag.StringVar(&c.dir, "dir", ".", "directory that the test runs in")
	flag.Uint64Var(&c.first, "first", 0, "seed of the first schedule")
	flag.Uint64Var(&c.n, "n", 1000, "schedules")
	flag.Uint64Var(&c.chunk, "chunk", 500, "schedules of one process")
	flag.IntVar(&c.procs, "procs", 1, "processes side by side")
	flag.BoolVar(&c.keep, "keep", false, "continue after a failure")
	flag.IntVar(&c.checks, "checks", 8, "seeds that are played again, each alone in a process")
	flag.DurationVar(&c.every, "every", time.Minute, "between two lines of progress")
	flag.DurationVar(&c.deadline, "deadline", 20*time.Minute, "longest that one process may take")
	flag.StringVar(&c.summary, "summary", "", "file that a line for the test suites' summary is appended to")
	checking := flag.Bool("check", false, "see that seeds replay exactly, and that this can fail")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *checking {
		err = check(ctx, &campaign{config: c, out: os.Stdout})
	} else {
		err = run(ctx, c, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "simrun:", err)
		os.Exit(1)
	}
}

// campaign is a run of many processes.
type campaign struct {
	config
	out  io.Writer
	stop context.CancelFunc

	mu     sync.Mutex
	next   uint64 // seed that no process has yet
	total  tally
	traces map[uint64]string
	starts map[uint64]uint64 // by seed: that of the first schedule of its process
	failed []uint64
	broken error // a process that ended without telling why
}

func run(ctx context.Context, c config, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := &campaign{config: c, out: out, stop: cancel, next: c.first, traces: map[uint64]string{}, starts: map[uint64]uint64{}}
	began := time.Now()
	k.playAll(ctx, began)
	slices.Sort(k.failed)
	var v reruns
	if k.broken == nil && k.total.Exact > 0 && k.total.Exact == k.total.Schedules {
		v = k.again(context.WithoutCancel(ctx))
	}
	fmt.Fprintln(out)
	k.total.report(out, time.Since(began), c.procs, v, k.failed, int(c.n))
	if err := k.summarise(v); err != nil {
		return err
	}
	switch {
	case k.broken != nil:
		return k.broken
	case len(k.failed) > 0:
		return fmt.Errorf("%d schedules failed", len(k.failed))
	case uint64(k.total.Schedules) != c.n:
		return fmt.Errorf("played %d schedules of %d", k.total.Schedules, c.n)
	}
	return nil
}

// summarise appends the line that build/test shows.
func (k *campaign) summarise(v reruns) error {
	if k.summary == "" {
		return nil
	}
	file, err := os.OpenFile(k.summary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	replay := "no exact replay"
	if v.checked > 0 {
		replay = fmt.Sprintf("%d of %d replayed the same alone", v.checked-len(v.company)-len(v.differ), v.checked)
	}
	_, err = fmt.Fprintf(file, "%-12s %d schedules, %d failed, %s, %v virtual; ran against: models in one process, virtual time\n",
		"sim", k.total.Schedules, len(k.failed), replay, time.Duration(k.total.Virtual*float64(time.Second)).Round(time.Second))
	return errors.Join(err, file.Close())
}

func (k *campaign) playAll(ctx context.Context, began time.Time) {
	var working sync.WaitGroup
	for range k.procs {
		working.Go(func() {
			for {
				first, n := k.take()
				if n == 0 || ctx.Err() != nil {
					return
				}
				k.play(ctx, first, n)
			}
		})
	}
	done := make(chan struct{})
	go func() { working.Wait(); close(done) }()
	progress := time.NewTicker(k.every)
	defer progress.Stop()
	for {
		select {
		case <-done:
			return
		case <-progress.C:
			k.mu.Lock()
			n, failed := k.total.Schedules, len(k.failed)
			k.mu.Unlock()
			fmt.Fprintf(k.out, "%d of %d schedules, %.0f per hour, %d failed\n", n, k.n, float64(n)/time.Since(began).Hours(), failed)
		}
	}
}

// take gives the next stretch of seeds away. Stretches are shorter where few are left, so that all cores end together.
func (k *campaign) take() (first, n uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := k.first + k.n - k.next
	n = min(k.chunk, left, max(left/uint64(2*k.procs), 20))
	first = k.next
	k.next += n
	return first, n
}

func (k *campaign) play(ctx context.Context, first, n uint64) {
	output, err := k.process(ctx, "-sim.first="+strconv.FormatUint(first, 10), "-sim.schedules="+strconv.FormatUint(n, 10))
	if ctx.Err() != nil {
		return
	}
	p, bad := parse(output)
	k.mu.Lock()
	defer k.mu.Unlock()
	for seed, trace := range p.traces {
		k.traces[seed], k.starts[seed] = trace, first
	}
	k.failed = append(k.failed, p.failed...)
	if p.last != nil {
		k.total.add(*p.last)
	}
	if err == nil && bad == nil && p.last != nil && len(p.failed) == 0 {
		return
	}
	_, _ = io.WriteString(k.out, output)
	if len(p.failed) == 0 {
		k.broken = errors.Join(fmt.Errorf("the process of seeds %d to %d failed", first, first+n-1), err, bad)
	}
	if !k.keep {
		k.stop()
	}
}

// process runs the test and returns what it printed.
func (k *campaign) process(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, k.deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.binary, append([]string{"-test.run=^TestSimulation$", "-test.timeout=0", "-sim.trace"}, args...)...)
	cmd.Dir = k.dir
	// One processor and no collection while a schedule is played: both are chance.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// again plays failed seeds, and some others, each alone in a process, and compares. A seed that takes another turn alone
// is played once more behind the same schedules as in the run.
func (k *campaign) again(ctx context.Context) reruns {
	seeds := make([]uint64, 0, len(k.traces))
	for seed := range k.traces {
		if !slices.Contains(k.failed, seed) {
			seeds = append(seeds, seed)
		}
	}
	rand.Shuffle(len(seeds), func(i, j int) { seeds[i], seeds[j] = seeds[j], seeds[i] })
	seeds = append(slices.Clone(k.failed[:min(len(k.failed), 20)]), seeds[:min(len(seeds), k.checks)]...)
	v := reruns{checked: len(seeds), company: map[uint64]uint64{}}
	for _, seed := range seeds {
		alone, first := k.same(ctx, seed, seed), k.starts[seed]
		switch {
		case alone:
		case k.same(ctx, first, seed):
			v.company[seed] = first
		default:
			v.differ = append(v.differ, seed)
		}
		if slices.Contains(k.failed, seed) {
			fmt.Fprintf(k.out, "seed %d, alone in a new process: failed the same way: %t\n", seed, alone)
		}
	}
	return v
}

// same plays the seeds from first to seed in a new process, and says whether the last went as it did in the run.
func (k *campaign) same(ctx context.Context, first, seed uint64) bool {
	output, _ := k.process(ctx, "-sim.first="+strconv.FormatUint(first, 10), "-sim.schedules="+strconv.FormatUint(seed-first+1, 10)) // how it ended is compared
	p, err := parse(output)
	return err == nil && p.traces[seed] == k.traces[seed] && slices.Contains(p.failed, seed) == slices.Contains(k.failed, seed)
}
