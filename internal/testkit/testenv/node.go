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
	"github.com/testcontainers/testcontainers-go"
)

const (
	startWait = 3 * time.Minute        // for a server to be ready, on a busy machine
	stopWait  = 30 * time.Second       // for a server to end after a signal
	pollPause = 100 * time.Millisecond // between two looks at a server
)

// node is one container with one port at a fixed address of this machine.
type node struct {
	docker *testcontainers.DockerClient
	ctr    testcontainers.Container
	ready  func(ctx context.Context) error // nil once the server serves
}

// launch starts a container with its ports, by their name inside, at addresses of this machine. It waits until it is
// ready.
func launch(docker *testcontainers.DockerClient, req testcontainers.ContainerRequest, ports map[string]string,
	ready func(ctx context.Context) error,
) (*node, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	n, err := boot(ctx, docker, req, ports, ready)
	if err != nil {
		return nil, err
	}
	if err := n.await(ctx); err != nil {
		_ = n.remove() // the reaper removes the rest
		return nil, fmt.Errorf("start %s: %w", req.Image, err)
	}
	return n, nil
}

// boot starts a container with its ports, by their name inside, at addresses of this machine. It does not wait until
// the server is ready.
func boot(ctx context.Context, docker *testcontainers.DockerClient, req testcontainers.ContainerRequest,
	ports map[string]string, ready func(ctx context.Context) error,
) (*node, error) {
	bound := network.PortMap{}
	for inner, addr := range ports {
		at, err := netip.ParseAddrPort(addr)
		if err != nil {
			return nil, fmt.Errorf("read the address to publish: %w", err)
		}
		bound[network.MustParsePort(inner)] = []network.PortBinding{{HostIP: at.Addr(), HostPort: strconv.Itoa(int(at.Port()))}}
		req.ExposedPorts = append(req.ExposedPorts, inner)
	}
	more := req.HostConfigModifier
	req.HostConfigModifier = func(host *container.HostConfig) {
		if more != nil {
			more(host)
		}
		host.PortBindings = bound
	}
	ctr, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: req, Started: true})
	n := &node{docker: docker, ctr: ctr, ready: ready}
	if err != nil {
		_ = n.remove() // the reaper removes the rest
		return nil, fmt.Errorf("start %s: %w", req.Image, err)
	}
	return n, nil
}

// onHost lets a container share this machine's network.
func onHost(host *container.HostConfig) { host.NetworkMode = network.NetworkHost }

// await returns once the server serves, or with the last error.
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
	must(t, "pause", n.Handle().Pause(t.Context()))
}

// Unpause resumes a paused server and waits until it answers.
func (n *node) Unpause(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startWait)
	defer cancel()
	must(t, "unpause", n.Handle().Unpause(ctx))
}

// Kill ends the server without warning, like a power cut.
func (n *node) Kill(t testing.TB) {
	t.Helper()
	n.signal(t, "SIGKILL")
}

// Start starts a killed or stopped server, at the same address and with its data, and waits until it serves.
func (n *node) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startWait)
	defer cancel()
	must(t, "start", n.Handle().Start(ctx))
}

// signal sends a signal that ends the server and waits for the end.
func (n *node) signal(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stopWait)
	defer cancel()
	must(t, "send "+name, n.Handle().End(ctx, name))
}

func must(t testing.TB, act string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("testenv: %s: %v", act, err)
	}
}
