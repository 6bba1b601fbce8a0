//go:build integration

package testenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go/exec"
)

// Handle controls a server from any goroutine: its methods return an error instead of ending a test. It is safe for
// concurrent use, as far as the acts make sense together.
type Handle struct {
	n *node
}

// Handle returns the methods that return errors.
func (n *node) Handle() Handle { return Handle{n} }

// Pause freezes the server: connections stay open and nothing answers. It retries for a while, because on a busy
// machine the kernel may not freeze all processes of a container in time.
func (h Handle) Pause(ctx context.Context) error {
	for until := time.Now().Add(stopWait); ; time.Sleep(pollPause) {
		_, err := h.n.docker.ContainerPause(ctx, h.n.ctr.GetContainerID(), client.ContainerPauseOptions{})
		if err == nil {
			return nil
		}
		if state, errState := h.state(ctx); errState == nil && state.Paused {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return act("pause", err)
		}
	}
}

// Thaw resumes a paused server, without waiting for its answer. It does nothing to a running one.
func (h Handle) Thaw(ctx context.Context) error {
	state, err := h.state(ctx)
	if err != nil || !state.Paused {
		return err
	}
	_, err = h.n.docker.ContainerUnpause(ctx, h.n.ctr.GetContainerID(), client.ContainerUnpauseOptions{})
	return act("unpause", err)
}

// Unpause resumes a paused server and waits until it answers.
func (h Handle) Unpause(ctx context.Context) error {
	if err := h.Thaw(ctx); err != nil {
		return err
	}
	return h.Await(ctx)
}

// Start starts a killed or stopped server, at the same address and with its data, and waits until it serves.
func (h Handle) Start(ctx context.Context) error {
	if _, err := h.n.docker.ContainerStart(ctx, h.n.ctr.GetContainerID(), client.ContainerStartOptions{}); err != nil {
		return act("start", err)
	}
	return h.Await(ctx)
}

// Await returns once the server serves.
func (h Handle) Await(ctx context.Context) error { return h.n.await(ctx) }

// End sends a signal that ends the server and waits for the end. It does nothing to a stopped one.
func (h Handle) End(ctx context.Context, signal string) error {
	if state, err := h.state(ctx); err != nil || !state.Running {
		return err
	}
	id := h.n.ctr.GetContainerID()
	ended := h.n.docker.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	if _, err := h.n.docker.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: signal}); err != nil {
		return act("send "+signal, err)
	}
	select {
	case <-ended.Result:
		return nil
	case err := <-ended.Error:
		return act("wait for the end after "+signal, err)
	}
}

// Running reports whether the server's process exists, paused or not.
func (h Handle) Running(ctx context.Context) (bool, error) {
	state, err := h.state(ctx)
	if err != nil {
		return false, err
	}
	return state.Running, nil
}

func (h Handle) state(ctx context.Context) (*container.State, error) {
	found, err := h.n.docker.ContainerInspect(ctx, h.n.ctr.GetContainerID(), client.ContainerInspectOptions{})
	if err != nil {
		return nil, act("look at a container", err)
	}
	if found.Container.State == nil {
		return nil, errors.New("the engine does not say how a container is")
	}
	return found.Container.State, nil
}

// Run runs a command inside the container as root. An exit code other than 0 is an error.
func (h Handle) Run(ctx context.Context, command ...string) error {
	code, _, err := h.n.ctr.Exec(ctx, command, exec.WithUser("root"))
	if err != nil {
		return act("run "+command[0]+" in a container", err)
	}
	if code != 0 {
		return fmt.Errorf("%s in a container ended with %d", command[0], code)
	}
	return nil
}

// Output runs a command inside the container as root and returns what it printed.
// An exit code other than 0 is an error.
func (h Handle) Output(ctx context.Context, command ...string) (string, error) {
	code, from, err := h.n.ctr.Exec(ctx, command, exec.WithUser("root"), exec.Multiplexed())
	if err != nil {
		return "", act("run "+command[0]+" in a container", err)
	}
	printed, err := io.ReadAll(from)
	if err != nil {
		return "", act("read what "+command[0]+" printed", err)
	}
	if code != 0 {
		return "", fmt.Errorf("%s in a container ended with %d: %s", command[0], code, printed)
	}
	return string(printed), nil
}

// CPU returns the processor time that all processes of the container have used since it was started, in user and system mode.
func (h Handle) CPU(ctx context.Context) (time.Duration, error) {
	got, err := h.n.docker.ContainerStats(ctx, h.n.ctr.GetContainerID(), client.ContainerStatsOptions{})
	if err != nil {
		return 0, act("ask for the use of a container", err)
	}
	defer func() { _ = got.Body.Close() }() // it was only read
	var stats container.StatsResponse
	if err := json.NewDecoder(got.Body).Decode(&stats); err != nil {
		return 0, act("read the use of a container", err)
	}
	return time.Duration(stats.CPUStats.CPUUsage.TotalUsage), nil
}

// Processes returns the processes of the container, by their numbers outside of it.
func (h Handle) Processes(ctx context.Context) (pids []int, err error) {
	top, err := h.n.docker.ContainerTop(ctx, h.n.ctr.GetContainerID(), client.ContainerTopOptions{Arguments: []string{"-eo", "pid"}})
	if err != nil {
		return nil, act("list the processes of a container", err)
	}
	for _, line := range top.Processes {
		pid, err := strconv.Atoi(line[0])
		if err != nil {
			return nil, act("read the number of a process", err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// Logs copies what the server has logged so far.
func (h Handle) Logs(ctx context.Context, to io.Writer) error {
	from, err := h.n.ctr.Logs(ctx)
	if err != nil {
		return act("read a container's log", err)
	}
	defer func() { _ = from.Close() }() // it was only read
	_, err = io.Copy(to, from)
	return act("read a container's log", err)
}

func act(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
