package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// How long a mutant's tests may take before they count as hanging: many times what they take without one, within bounds.
const (
	shortLimit       = 30 * time.Second
	longLimit        = 3 * time.Minute
	integrationLimit = 6 * time.Minute
)

// limit is that of a stage, known from the control run.
func (l *lab) limit(s stage) time.Duration {
	took := l.took[s.where()]
	if len(s.names()) > 0 {
		took = 0
		for _, name := range s.names() {
			took = max(took, l.took[s.where()+" "+name])
		}
	}
	if s.integration {
		return integrationLimit
	}
	return min(shortLimit+6*took, longLimit)
}

// control runs the tests of all mutants without any mutant. A test that fails by itself proves nothing when it fails
// with a mutant, and a test that does not exist never fails.
func (l *lab) control(ctx context.Context, mutants []mutant) error {
	overlay, err := writeOverlay(l.scratch+"/none.json", map[string]string{})
	if err != nil {
		return err
	}
	var runs []*rehearsal
	add := func(s stage) {
		for _, r := range runs {
			if r.pkg == s.pkg && r.integration == s.integration {
				r.add(s)
				return
			}
		}
		runs = append(runs, &rehearsal{stage: stage{pkg: s.pkg, integration: s.integration}, all: len(s.names()) == 0, names: s.names()})
	}
	simulated := false
	for _, m := range mutants {
		for _, s := range l.stages(m) {
			add(s)
		}
		simulated = simulated || m.simulation && !l.short
	}
	fmt.Fprintf(l.progress, "without a mutant first: %d packages\n", len(runs))
	errs := make([]error, len(runs)+1)
	l.took = map[string]time.Duration{}
	l.each(len(runs), func(i int) { errs[i] = l.rehearse(ctx, overlay, runs[i]) })
	if simulated {
		errs[len(runs)] = l.rehearseSimulation(ctx, overlay)
	}
	return errors.Join(errs...)
}

// rehearsal is what is run of one package.
type rehearsal struct {
	stage
	all   bool
	names []string
}

func (r *rehearsal) add(s stage) {
	r.all = r.all || len(s.names()) == 0
	for _, name := range s.names() {
		if !slices.Contains(r.names, name) {
			r.names = append(r.names, name)
		}
	}
}

func (l *lab) rehearse(ctx context.Context, overlay string, r *rehearsal) error {
	bin, err := l.bench.build(ctx, overlay, r.stage)
	if err != nil {
		return fmt.Errorf("without a mutant: %w", err)
	}
	if !r.all {
		r.tests = joined(r.names)
	}
	began := time.Now()
	f, err := l.ask(ctx, bin, r.stage, integrationLimit)
	if f.test != "" { // once more, as for a mutant: a single failure may be bad luck
		f, err = l.ask(ctx, bin, r.stage, integrationLimit)
	}
	switch {
	case err != nil:
		return fmt.Errorf("without a mutant: %v: %w", r.stage, err)
	case f.test != "":
		return fmt.Errorf("without a mutant %s fails in %v", f.said(), r.stage)
	case len(f.passed) == 0:
		return fmt.Errorf("no test runs in %v", r.stage)
	}
	l.talking.Lock()
	defer l.talking.Unlock()
	l.took[r.where()] = time.Since(began)
	var errs []error
	for _, name := range r.names {
		took, passed := f.passed[name]
		if !passed {
			errs = append(errs, fmt.Errorf("no test in %s is called %s", r.where(), name))
		}
		l.took[r.where()+" "+name] = took
	}
	return errors.Join(errs...)
}

func (l *lab) rehearseSimulation(ctx context.Context, overlay string) error {
	bin, err := l.bench.build(ctx, overlay, simulation)
	if err != nil {
		return fmt.Errorf("without a mutant: %w", err)
	}
	switch f, err := l.simulated(ctx, bin); {
	case err != nil:
		return fmt.Errorf("without a mutant: %v: %w", simulation, err)
	case f.test != "":
		return fmt.Errorf("without a mutant the simulation fails: %s", f.seed())
	}
	return nil
}
