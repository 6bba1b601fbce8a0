// Command mutants plants bugs, one at a time, and sees each of them caught by the tests.
//
// The bugs are in list/. Each names the promise that it breaks and the tests that have to notice. It quotes a few lines
// of the code as they are, and as a slip would have left them. A bug is planted with `go test -overlay` from a copy outside the
// tree, so the tree is never touched and no mutant can reach a build. Before that the same tests run without any bug:
// where they fail by themselves, being caught would mean nothing.
//
//	go run ./tools/mutants                        all of them; exit 1 if one survives
//	go run ./tools/mutants -only NAME[,NAME...]   some of them
//	go run ./tools/mutants -check                 only whether each still applies and compiles
//	go run ./tools/mutants -print [-markdown]     the list, nothing is run
//
// It stays free of the code that it breaks: it knows text, the go command and its events.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed list/*.txt
var lists embed.FS

func main() { os.Exit(start()) }

func start() int {
	var o options
	flag.StringVar(&o.only, "only", "", "names of the mutants to run, separated by commas; all where empty")
	flag.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "mutants at a time")
	flag.BoolVar(&o.check, "check", false, "only see that every mutant applies and compiles")
	flag.BoolVar(&o.print, "print", false, "only print the list")
	flag.BoolVar(&o.markdown, "markdown", false, "print tables as Markdown")
	flag.BoolVar(&o.short, "short", false, "leave out the integration tests and the simulation; what only they catch survives")
	flag.BoolVar(&o.alone, "simulation", false, "ask the simulation alone, about the mutants that are marked for it")
	flag.IntVar(&o.seeds, "seeds", 300, "schedules that the simulation plays for each mutant it is asked about")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		return 1
	}
	return 0
}

type options struct {
	only                                 string
	jobs                                 int
	seeds                                int
	check, print, markdown, short, alone bool
}

func run(ctx context.Context, o options, out, progress io.Writer) error {
	all, err := readAll(lists)
	if err != nil {
		return err
	}
	chosen, err := choose(all, o.only)
	if err != nil {
		return err
	}
	if o.alone {
		chosen = slices.DeleteFunc(chosen, func(m mutant) bool { return !m.simulation })
		for i := range chosen {
			chosen[i].tests = nil
		}
	}
	if o.print {
		printList(out, chosen, o.markdown)
		return nil
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()

	began := time.Now()
	b, err := newBench(ctx, root, scratch)
	if err != nil {
		return err
	}
	l := &lab{root: root, scratch: scratch, jobs: max(1, o.jobs), short: o.short, schedules: max(1, o.seeds), progress: progress, bench: b}
	if o.check {
		return l.check(ctx, chosen)
	}
	outcomes, err := l.run(ctx, chosen)
	if err != nil {
		return err
	}
	cost := fmt.Sprintf("%v, %v of CPU", time.Since(began).Round(time.Second), b.cpu().Round(time.Second))
	return report(out, outcomes, cost, o.markdown)
}

// choose picks mutants by name, in the order of the list.
func choose(all []mutant, only string) ([]mutant, error) {
	if only == "" {
		return all, nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		wanted[strings.TrimSpace(name)] = true
	}
	var chosen []mutant
	for _, m := range all {
		if wanted[m.name] {
			chosen = append(chosen, m)
			delete(wanted, m.name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("no such mutant: %q", name)
	}
	return chosen, nil
}

// moduleRoot is the nearest directory upwards that holds go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = up
	}
}
