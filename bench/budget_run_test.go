//go:build integration

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"docket/internal/testkit/testenv"
)

const budgetName = "Docket, empty table, under perf"

// budget writes how much processor time each kind of work takes of a decision: perf samples all processors while the worker
// drains the topic into the empty table. The consumer is built once more, with the names of its functions.
func (b *bench) budget(ctx context.Context) error {
	if _, err := exec.LookPath("perf"); err != nil {
		return errors.New("perf is missing: install linux-perf, and run as root")
	}
	t, err := b.logs(ctx)
	if err != nil {
		return err
	}
	named := filepath.Join(b.dir, "named", "consumer")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", named, "docket/cmd/consumer")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the consumer with names: %w", err)
	}
	return b.as(edition{named, b.dsn}, func() error {
		if _, err := b.drained(ctx, load{topic: t}); err != nil { // the servers' memory, and Kafka's compiler
			return fmt.Errorf("first drain: %w", err)
		}
		p := &perf{file: filepath.Join(b.dir, "perf.data"), postgres: b.postgres.Handle(), kafka: b.kafka.Handle()}
		run, err := b.measure(ctx, budgetName, func(ctx context.Context) (Run, error) {
			return b.drained(ctx, load{topic: t, probe: p})
		})
		if err != nil {
			return err
		}
		budgets, err := p.budgets(ctx, run)
		if err != nil {
			return err
		}
		var text strings.Builder
		Table(&text, t.decisions, budgets...)
		b.tables = append(b.tables, text.String())
		return nil
	})
}

// perf samples the whole machine.
type perf struct {
	file            string
	postgres, kafka testenv.Handle
	cmd             *exec.Cmd
	who             map[int]int // process to the position of its program in the budgets
}

func (p *perf) start(*worker) error {
	p.cmd = exec.Command("perf", "record", "-q", "-a", "-g", "-F", "397", "-o", p.file)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start perf: %w", err)
	}
	return nil
}

// end stops perf while the processes are still there, and notes which program each of them is.
func (p *perf) end(ctx context.Context, w *worker) error {
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("end perf: %w", err)
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("wait for perf: %w", err)
	}
	p.who = map[int]int{w.pid(): 0}
	for i, server := range []testenv.Handle{p.postgres, p.kafka} {
		pids, err := server.Processes(ctx)
		if err != nil {
			return err
		}
		for _, pid := range pids {
			p.who[pid] = i + 1
		}
	}
	return nil
}

func (p *perf) budgets(ctx context.Context, run Run) ([]Budget, error) {
	budgets := []Budget{
		{Who: "worker", Whole: run.Worker, Works: WorkerWorks()},
		{Who: "Postgres", Whole: run.Postgres, Works: PostgresWorks()},
		{Who: "Kafka", Whole: run.Kafka},
	}
	script := exec.CommandContext(ctx, "perf", "script", "-F", "pid,ip,sym", "-i", p.file)
	var out, said bytes.Buffer
	script.Stdout, script.Stderr = &out, &said
	if err := script.Run(); err != nil {
		return nil, fmt.Errorf("perf script: %w\n%s", err, said.String())
	}
	err := ReadSamples(&out, func(s Sample) {
		if at, ok := p.who[s.PID]; ok {
			budgets[at].Add(s.Stack)
		}
	})
	return budgets, err
}
