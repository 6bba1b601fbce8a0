package app

import (
	"bytes"
	"context"
	"errors"
	"path"
	"runtime/pprof"
	"strings"
	"time"

	"docket/internal/service/config"
	"docket/internal/service/telemetry"
)

// ErrWedged ends a program whose worker is stuck: a new process reads the batch again.
var ErrWedged = errors.New("a batch has shown no sign of progress for too long")

// ErrOverdue ends a program that did not come to rest in time after it was stopped.
var ErrOverdue = errors.New("stopping took longer than DOCKET_SHUTDOWN_TIMEOUT allows; what was in hand stays uncommitted")

const leastPatience = 30 * time.Second

// patience is how long a batch may go without a sign of progress before /healthz turns red. It is longer than any
// single thing that a batch waits for; after twice as long the program ends.
func patience(s config.Settings) time.Duration { return max(leastPatience, s.RetryBudget()) }

// watch ends the program when a batch is stuck. A hold and a pause are no lack of progress.
func (p *Program) watch(ctx context.Context) error {
	tick := time.NewTicker(max(time.Millisecond, p.patience/8))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if p.pipe.Wedged(2*p.patience) != nil {
			p.log.Error().Dur(telemetry.KeyTook, 2*p.patience).Strs(telemetry.KeyStacks, stacks()).
				Str(telemetry.KeyHint, "report the stacks; the program ends so that another instance takes over").Msg("worker stalled")
			return ErrWedged
		}
	}
}

// stacks are the goroutines that run Docket's code, as names of functions and lines. They show where the worker is stuck,
// before the process ends. Values are left out, as they could be parts of a payload.
func stacks() []string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return nil
	}
	var ours []string
	for _, one := range strings.Split(all.String(), "\n\n") {
		if strings.Contains(one, "docket/internal/consumer/pipeline") {
			ours = append(ours, functions(one))
		}
	}
	return ours
}

// functions gives the functions of a stack, the innermost first, with their lines.
func functions(stack string) string {
	var names []string
	for line := range strings.Lines(stack) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] == "#" {
			names = append(names, fields[2]+" "+path.Base(fields[3]))
		}
	}
	return strings.Join(names, " < ")
}
