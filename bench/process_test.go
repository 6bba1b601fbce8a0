//go:build integration

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// stuck is how long a worker may bring nothing home before the run counts as broken.
const stuck = 2 * time.Minute

// process is a worker as the machine sees it, Docket or another.
type process struct {
	cmd     *exec.Cmd
	name    string // in errors
	log     string
	started time.Time
	ended   chan struct{}
	fine    []int // exit codes of one that was asked to end
}

// launch starts a program in a folder, with its output in a log. An end with 0 is fine, and with the other codes given.
func launch(name, program, dir, logFile string, env []string, fine ...int) (*process, error) {
	p := &process{cmd: exec.Command(program), name: name, log: logFile, ended: make(chan struct{}), fine: append(fine, 0)} // ended by stop or kill, in order
	log, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("make a log: %w", err)
	}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = dir, log, log, env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, errors.Join(err, log.Close()))
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState, which stop and until look at
		_ = log.Close()  // the worker had its own handle of it
		close(p.ended)
	}()
	return p, nil
}

// stop ends the process in order.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only for one that has ended, whose exit code comes next
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		p.kill()
		return fmt.Errorf("%s did not end within a minute, see %s", p.name, p.log)
	}
	if code := p.cmd.ProcessState.ExitCode(); !slices.Contains(p.fine, code) {
		return fmt.Errorf("%s ended with %d, see %s", p.name, code, p.log)
	}
	return nil
}

// kill ends the process at once; one that has ended is left as it is.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only for one that has ended
	<-p.ended
}

// used is the processor time of a process that has ended, by the kernel's books: start and end included.
func (p *process) used() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// until asks again and again, until done, an error, the worker's end or the limit, at which it counts as stuck.
func (p *process) until(ctx context.Context, limit, pause time.Duration, done func() (bool, error)) error {
	deadline := time.After(limit)
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.ended:
			return fmt.Errorf("%s has ended, see %s", p.name, p.log)
		case <-deadline:
			return fmt.Errorf("%s is stuck, see %s", p.name, p.log)
		case <-time.After(pause):
		}
	}
}
