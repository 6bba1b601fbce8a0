//go:build integration

package testenv

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

const (
	startWait = 90 * time.Second       // for a server to be ready, on a machine that is busy
	stopWait  = 30 * time.Second       // for a server to end after a signal
	pollPause = 100 * time.Millisecond // between two looks at a server
)

// node is one container with one port at a fixed address of this machine.
type node struct {
	docker *testcontainers.DockerClient
	ctr    testcontainers.Container
	addr   string                          // host:port on loopback
	ready  func(ctx context.Context) error // nil once the server serves
}

// launch starts a container whose port inner is published at addr and waits
// until it is ready.
func launch(docker *testcontainers.DockerClient, req testcontainers.ContainerRequest, inner, addr string,
	ready func(ctx context.Context) error,
) (*node, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("read the address to publish: %w", err)
	}
	req.ExposedPorts = []string{inner}
	req.HostConfigModifier = func(host *container.HostConfig) {
		host.PortBindings = network.PortMap{
			network.MustParsePort(inner): {{HostIP: at.Addr(), HostPort: strconv.Itoa(int(at.Port()))}},
		}
	}
	ctr, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: req, Started: true})
	n := &node{docker: docker, ctr: ctr, addr: addr, ready: ready}
	if err == nil {
		err = n.await(ctx)
	}
	if err != nil {
		_ = n.remove() // the reaper takes what is left
		return nil, fmt.Errorf("start %s: %w", req.Image, err)
	}
	return n, nil
}

// await returns once the server serves, or with the last reason why not.
func (n *node) await(ctx context.Context) error {
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := n.ready(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w", err)
		case <-tick.C:
		}
	}
}

func (n *node) remove() error {
	if n.ctr == nil {
		return nil
	}
	return testcontainers.TerminateContainer(n.ctr, testcontainers.StopTimeout(0))
}

// Pause freezes the server: connections stay open and nothing answers.
func (n *node) Pause(t testing.TB) {
	t.Helper()
	_, err := n.docker.ContainerPause(t.Context(), n.ctr.GetContainerID(), client.ContainerPauseOptions{})
	must(t, "pause", err)
}

// Unpause lets a paused server go on and waits until it answers.
func (n *node) Unpause(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startWait)
	defer cancel()
	_, err := n.docker.ContainerUnpause(ctx, n.ctr.GetContainerID(), client.ContainerUnpauseOptions{})
	must(t, "unpause", err)
	must(t, "unpause", n.await(ctx))
}

// Kill ends the server without a word to it, as a power cut would.
func (n *node) Kill(t testing.TB) {
	t.Helper()
	n.signal(t, "SIGKILL")
}

// Start starts a server that was killed or stopped, at the same address and with
// the data it had, and waits until it serves.
func (n *node) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startWait)
	defer cancel()
	_, err := n.docker.ContainerStart(ctx, n.ctr.GetContainerID(), client.ContainerStartOptions{})
	must(t, "start", err)
	must(t, "start", n.await(ctx))
}

// signal sends a signal that ends the server and waits until it has ended.
func (n *node) signal(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stopWait)
	defer cancel()
	id := n.ctr.GetContainerID()
	ended := n.docker.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	_, err := n.docker.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: name})
	must(t, "send "+name, err)
	select {
	case <-ended.Result:
	case err := <-ended.Error:
		must(t, "wait for the end after "+name, err)
	}
}

func must(t testing.TB, act string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("testenv: %s: %v", act, err)
	}
}
