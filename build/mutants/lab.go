package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// lab plants mutants and lets the tests look for them.
type lab struct {
	root, scratch string
	jobs          int
	short         bool
	simulation    stage
	progress      io.Writer
	exec          command

	servers sync.Mutex // one integration run at a time: more only makes servers start late
	talking sync.Mutex
}

// verdict is what became of one mutant.
type verdict struct {
	mutant
	by        stage
	caught    finding // test empty: it survived
	took      time.Duration
	simulated string // what the simulation said, where it was asked
	err       error  // the mutant says nothing: it does not apply, or not compile
}

// How long tests may take before they end themselves, and how much longer the runner waits for that.
const (
	fastLimit        = 2 * time.Minute
	integrationLimit = 6 * time.Minute
	patience         = 4 * time.Minute
)

// simulation is the black-box run that is asked about the mutants marked so: it knows nothing of the code inside. Where
// seeds is 0 it plays as many as take about half a minute.
func simulation(root string, seeds int) stage {
	if _, err := os.Stat(filepath.Join(root, "internal", "sim", "sim_test.go")); err == nil {
		return stage{args: fmt.Sprintf("./internal/sim -run ^TestSimulation$ -sim.schedules %d", cmp.Or(seeds, 1000))}
	}
	return stage{args: fmt.Sprintf("./internal/pipeline -run ^TestWholePipelineLosesNothingUnderSeededFaults$ -storms %d", cmp.Or(seeds, 16))}
}

// run sees first that the tests pass without any mutant, then tries each.
func (l *lab) run(ctx context.Context, mutants []mutant) ([]verdict, error) {
	if err := l.control(ctx, mutants); err != nil {
		return nil, err
	}
	verdicts := make([]verdict, len(mutants))
	done := 0
	l.each(len(mutants), func(i int) {
		v := l.try(ctx, mutants[i])
		verdicts[i] = v
		l.talking.Lock()
		defer l.talking.Unlock()
		done++
		_, _ = fmt.Fprintf(l.progress, "[%d/%d] %s\n", done, len(mutants), v)
	})
	return verdicts, ctx.Err()
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

// control runs every stage without a mutant.
func (l *lab) control(ctx context.Context, mutants []mutant) error {
	overlay, err := writeOverlay(filepath.Join(l.scratch, "none.json"), map[string]string{})
	if err != nil {
		return err
	}
	var all []stage
	seen := map[stage]bool{}
	want := func(s stage) {
		if !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	}
	for _, m := range mutants {
		for _, s := range l.stages(m) {
			want(s)
		}
		if m.simulation && !l.short {
			want(l.simulation)
		}
	}
	_, _ = fmt.Fprintf(l.progress, "without a mutant first: %d runs\n", len(all))
	errs := make([]error, len(all))
	l.each(len(all), func(i int) {
		f, err := l.test(ctx, overlay, all[i])
		if f.test != "" { // once more, as for a mutant: only what fails twice is no bad luck
			f, err = l.test(ctx, overlay, all[i])
		}
		switch {
		case err != nil:
			errs[i] = fmt.Errorf("without a mutant: %s: %w", all[i], err)
		case f.test != "":
			errs[i] = fmt.Errorf("without a mutant %s fails in %s", f.said(), all[i])
		case f.passed == 0:
			errs[i] = fmt.Errorf("no test runs in %s", all[i])
		}
	})
	return errors.Join(errs...)
}

// try plants one mutant and asks its tests, up to the first that fails and fails again: a test that failed for want of
// time on a busy machine has seen nothing.
func (l *lab) try(ctx context.Context, m mutant) (v verdict) {
	began := time.Now()
	v.mutant = m
	defer func() { v.took = time.Since(began) }()
	overlay, err := m.plant(l.root, l.scratch)
	if err != nil {
		v.err = err
		return v
	}
	for _, s := range l.stages(m) {
		f, err := l.test(ctx, overlay, s)
		if err != nil {
			v.err = fmt.Errorf("%s: %w", s, err)
			return v
		}
		if f.test == "" {
			continue
		}
		again := f
		if f.how != hung { // that took its time already
			again, err = l.test(ctx, overlay, s.only(f))
		}
		if err != nil {
			v.err = fmt.Errorf("%s: %w", s, err)
			return v
		}
		if again.test != "" { // else it was bad luck, and no catch
			v.by, v.caught = s, f
			break
		}
	}
	if m.simulation && !l.short {
		l.simulate(ctx, overlay, &v)
	}
	return v
}

// only is the stage again, for the test that failed alone where that is known for certain.
func (s stage) only(f finding) stage {
	if f.how == "" {
		top, _, _ := strings.Cut(f.test, "/")
		s.args += " -run ^" + top + "$"
	}
	return s
}

// simulate asks the simulation. Where nothing else did, it may be the one to catch the mutant.
func (l *lab) simulate(ctx context.Context, overlay string, v *verdict) {
	f, err := l.test(ctx, overlay, l.simulation)
	switch {
	case err != nil:
		v.err = fmt.Errorf("%s: %w", l.simulation, err)
	case f.test == "":
		v.simulated = "not seen"
	default:
		v.simulated = "seen by " + f.seed()
		if v.caught.test == "" {
			v.by, v.caught = l.simulation, f
		}
	}
}

// compile builds what the mutant changed: one that does not compile proves nothing.
func (l *lab) compile(ctx context.Context, m mutant, overlay string) error {
	args := append([]string{"build", "-overlay", overlay}, m.packages()...)
	said, err := l.exec(ctx, l.root, args, func(out io.Reader) error { _, err := io.Copy(io.Discard, out); return err })
	if err != nil {
		return fmt.Errorf("it does not compile: %w: %s", err, strings.Join(strings.Fields(said), " "))
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
	_, _ = fmt.Fprintf(l.progress, "%d mutants apply and compile\n", len(mutants))
	return nil
}

// test runs one stage with an overlay.
func (l *lab) test(ctx context.Context, overlay string, s stage) (finding, error) {
	limit, tags := fastLimit, "synctests"
	if s.integration {
		limit, tags = integrationLimit, "integration"
		l.servers.Lock()
		defer l.servers.Unlock()
	}
	ctx, cancel := context.WithTimeout(ctx, limit+patience)
	defer cancel()
	args := []string{"test", "-json", "-vet=off", "-failfast", "-overlay", overlay, "-tags", tags, "-timeout", limit.String()}
	var f finding
	said, err := l.exec(ctx, l.root, append(args, strings.Fields(s.args)...), func(out io.Reader) error {
		var err error
		if f, err = watch(out); err == nil && f.test != "" {
			err = errEnough
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return finding{}, fmt.Errorf("the runner's own time is over: %w", ctx.Err())
	case errors.Is(err, errEnough):
		return f, nil
	case err != nil:
		return finding{}, fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(said), " "))
	}
	return f, nil
}
