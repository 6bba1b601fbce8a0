package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// lab plants mutants and lets the tests look for them.
type lab struct {
	root, scratch string
	jobs          int
	short         bool
	schedules     int // that the simulation plays for each mutant it is asked about
	progress      io.Writer
	bench         *bench

	took    map[string]time.Duration // by package, and by package and test: how long it took without a mutant
	servers sync.Mutex               // one integration run at a time: more only makes servers start late
	talking sync.Mutex
}

// outcome is what became of one mutant.
type outcome struct {
	mutant
	by        stage
	caught    finding // test empty: it survived
	took      time.Duration
	simulated string // the answer of the simulation, if it was asked
	err       error  // the mutant says nothing: it does not apply, or not compile
}

// simulation is the black-box run that is asked about the mutants marked so: it knows nothing of the code inside.
var simulation = stage{pkg: "./test/sim", tests: "TestSimulation"}

// run sees first that the tests pass without any mutant, then tries each.
func (l *lab) run(ctx context.Context, mutants []mutant) ([]outcome, error) {
	if err := l.control(ctx, mutants); err != nil {
		return nil, err
	}
	outcomes := make([]outcome, len(mutants))
	done := 0
	l.each(len(mutants), func(i int) {
		if ctx.Err() != nil {
			return
		}
		v := l.try(ctx, mutants[i])
		outcomes[i] = v
		l.talking.Lock()
		defer l.talking.Unlock()
		done++
		fmt.Fprintf(l.progress, "[%d/%d] %s\n", done, len(mutants), v)
	})
	return outcomes, ctx.Err()
}

// each calls do for 0 to n-1, so many at a time as there are jobs.
func (l *lab) each(n int, do func(i int)) {
	next := make(chan int)
	var working sync.WaitGroup
	for range min(l.jobs, n) {
		working.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	working.Wait()
}

// stages are what is run for a mutant, without the simulation.
func (l *lab) stages(m mutant) []stage {
	var some []stage
	for _, s := range m.tests {
		if !l.short || !s.integration {
			some = append(some, s)
		}
	}
	return some
}

// try plants one mutant and asks its tests, up to the first that fails and fails again: a test that failed for want of
// time on a busy machine has seen nothing.
func (l *lab) try(ctx context.Context, m mutant) (v outcome) {
	began := time.Now()
	v.mutant = m
	defer func() { v.took = time.Since(began) }()
	overlay, err := m.plant(l.root, l.scratch)
	if err != nil {
		v.err = err
		return v
	}
	built := map[string]binary{}
	defer func() {
		for _, bin := range built {
			_ = os.Remove(bin.file) // the folder goes at the end anyway; this only keeps it small
		}
	}()
	for _, s := range l.stages(m) {
		if _, there := built[s.where()]; !there {
			if built[s.where()], v.err = l.bench.build(ctx, overlay, s); v.err != nil {
				return v
			}
		}
		f, err := l.confirmed(ctx, built[s.where()], s)
		if err != nil {
			v.err = fmt.Errorf("%v: %w", s, err)
			return v
		}
		if f.test != "" {
			v.by, v.caught = s, f
			break
		}
	}
	if m.simulation && !l.short {
		l.simulate(ctx, overlay, &v)
	}
	return v
}

// confirmed is a finding that was made twice, where there is one.
func (l *lab) confirmed(ctx context.Context, bin binary, s stage) (finding, error) {
	f, err := l.ask(ctx, bin, s, l.limit(s))
	if err != nil || f.test == "" {
		return f, err
	}
	again, err := l.ask(ctx, bin, s.only(f), l.limit(s))
	if again.test == "" {
		return again, err // it was bad luck, and no catch
	}
	return f, err
}

// only is the stage again, for the test that failed alone where that is known for certain.
func (s stage) only(f finding) stage {
	if f.how == "" || f.how == hung {
		if top, _, _ := strings.Cut(f.test, "/"); testName.MatchString(top) {
			s.tests = top
		}
	}
	return s
}

// ask runs the tests of a stage.
func (l *lab) ask(ctx context.Context, bin binary, s stage, limit time.Duration) (finding, error) {
	if s.integration {
		l.servers.Lock()
		defer l.servers.Unlock()
	}
	var args []string
	if s.tests != "" {
		args = append(args, "-test.run=^("+s.tests+")$")
	}
	return l.bench.ask(ctx, bin, limit, args...)
}

// simulate asks the simulation. Where nothing else did, it may be the one to catch the mutant.
func (l *lab) simulate(ctx context.Context, overlay string, v *outcome) {
	bin, err := l.bench.build(ctx, overlay, simulation)
	if err != nil {
		v.err = err
		return
	}
	defer func() { _ = os.Remove(bin.file) }() // as above
	switch f, err := l.simulated(ctx, bin); {
	case err != nil:
		v.err = fmt.Errorf("%v: %w", simulation, err)
	case f.test == "":
		v.simulated = fmt.Sprintf("not seen in %d", l.schedules)
	default:
		v.simulated = "seen at " + f.seed()
		if v.caught.test == "" {
			v.by, v.caught = simulation, f
		}
	}
}

// simulated plays the schedules up to the first that fails.
func (l *lab) simulated(ctx context.Context, bin binary) (finding, error) {
	return l.bench.ask(ctx, bin, longLimit+time.Duration(l.schedules)*time.Second, "-test.run=^TestSimulation$", fmt.Sprintf("-sim.schedules=%d", l.schedules))
}

// compile builds what the mutant changed: one that does not compile proves nothing.
func (l *lab) compile(ctx context.Context, m mutant, overlay string) error {
	err := l.bench.goTool(ctx, append([]string{"build", "-overlay", overlay}, m.packages()...)...)
	if err != nil {
		return fmt.Errorf("it does not compile: %w", err)
	}
	return nil
}

// check sees that every mutant applies and compiles.
func (l *lab) check(ctx context.Context, mutants []mutant) error {
	errs := make([]error, len(mutants))
	l.each(len(mutants), func(i int) {
		overlay, err := mutants[i].plant(l.root, l.scratch)
		if err == nil {
			err = l.compile(ctx, mutants[i], overlay)
		}
		if err != nil {
			errs[i] = fmt.Errorf("%s: %w", mutants[i].name, err)
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintf(l.progress, "%d mutants apply and compile\n", len(mutants))
	return nil
}
