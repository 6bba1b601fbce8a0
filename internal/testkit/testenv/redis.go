//go:build integration

package testenv

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
	"golang.org/x/sync/errgroup"
)

// RedisImage is the image that Redis is started from.
const RedisImage = "redis:7"

// RedisServer is one Redis. It keeps nothing on disk, so a restart makes it empty.
type RedisServer struct {
	*node

	addr string   // host:port on loopback
	cli  []string // redis-cli, with the port inside
}

// Redis returns the server that all tests of the binary share. All of them feel what a test does to it. A test that
// pauses, kills or reconfigures must use [OwnRedis].
func Redis(t testing.TB) *RedisServer {
	t.Helper()
	docker := engine(t)
	server, err := shared.redis.get(func() (*RedisServer, error) { return startRedis(docker) })
	must(t, "Redis", err)
	return server
}

// OwnRedis starts a server for this test only, until the test ends, with options of redis-server.
func OwnRedis(t testing.TB, options ...string) *RedisServer {
	t.Helper()
	server, err := startRedis(engine(t), options...)
	must(t, "Redis", err)
	t.Cleanup(func() { must(t, "remove Redis", server.remove()) })
	return server
}

// OwnRedisOnHost is [OwnRedis] without a proxy between server and client, for measurements.
func OwnRedisOnHost(t testing.TB) *RedisServer {
	t.Helper()
	addr, err := freeAddr()
	must(t, "Redis", err)
	host, port, err := net.SplitHostPort(addr)
	must(t, "Redis", err)
	req := testcontainers.ContainerRequest{Image: RedisImage, Cmd: append(slices.Clone(withoutDisk), "--bind", host, "--port", port), HostConfigModifier: onHost}
	server := &RedisServer{addr: addr, cli: []string{"redis-cli", "-e", "-p", port}}
	server.node, err = launch(engine(t), req, nil, func(ctx context.Context) error { return redisAnswers(ctx, addr) })
	must(t, "Redis", err)
	t.Cleanup(func() { must(t, "remove Redis", server.remove()) })
	return server
}

// withoutDisk are the options of a server that keeps nothing.
var withoutDisk = []string{"redis-server", "--save", "", "--appendonly", "no"}

func startRedis(docker *testcontainers.DockerClient, options ...string) (*RedisServer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	server := &RedisServer{addr: addr, cli: []string{"redis-cli", "-e"}}
	req := testcontainers.ContainerRequest{Image: RedisImage, Cmd: append(slices.Clone(withoutDisk), options...)}
	server.node, err = launch(docker, req, map[string]string{"6379/tcp": addr}, func(ctx context.Context) error { return redisAnswers(ctx, addr) })
	return server, err
}

// Addr is host:port of the server.
func (r *RedisServer) Addr() string { return r.addr }

// Command runs a command of redis-cli in the container and returns its output.
func (r *RedisServer) Command(t testing.TB, words ...string) string {
	t.Helper()
	out, err := r.Handle().Output(t.Context(), append(slices.Clone(r.cli), words...)...)
	must(t, "run a command in Redis", err)
	return out
}

// redisAnswers returns nil if a server answers a PING with anything but that it loads its data.
func redisAnswers(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it was only asked
	if until, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(until); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && strings.HasPrefix(line, "-LOADING") {
		err = fmt.Errorf("Redis answers %s", strings.TrimSpace(line))
	}
	return err
}

// RedisCluster has three nodes, all of them masters.
type RedisCluster struct {
	nodes []*RedisServer
}

// OwnRedisCluster starts three nodes for this test only, until the test ends.
func OwnRedisCluster(t testing.TB) *RedisCluster {
	t.Helper()
	docker := engine(t)
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	inner, err := tcnetwork.New(ctx)
	must(t, "make a network", err)
	t.Cleanup(func() { _ = inner.Remove(context.WithoutCancel(t.Context())) }) // the reaper removes the rest
	cluster := &RedisCluster{}
	t.Cleanup(func() { must(t, "remove the cluster", cluster.remove()) })
	create := []string{"redis-cli", "--cluster", "create"}
	for range clusterSize {
		addr, err := freeAddr()
		must(t, "Redis", err)
		host, port, err := net.SplitHostPort(addr)
		must(t, "Redis", err)
		// Clients are sent to the address on this machine. The nodes reach each other at their own.
		req := testcontainers.ContainerRequest{
			Image: RedisImage, Networks: []string{inner.Name},
			Cmd: append(slices.Clone(withoutDisk), "--cluster-enabled", "yes", "--cluster-announce-hostname", host,
				"--cluster-preferred-endpoint-type", "hostname", "--port", port),
		}
		server := &RedisServer{addr: addr}
		server.node, err = boot(ctx, docker, req, map[string]string{port + "/tcp": addr}, func(ctx context.Context) error { return redisAnswers(ctx, addr) })
		must(t, "Redis", err)
		cluster.nodes = append(cluster.nodes, server)
		must(t, "Redis", server.await(ctx))
		ip, err := server.ctr.ContainerIP(ctx)
		must(t, "look up the address of a node", err)
		create = append(create, net.JoinHostPort(ip, port))
	}
	out, err := cluster.nodes[0].Handle().Output(ctx, append(create, "--cluster-yes")...)
	if err != nil {
		t.Fatalf("testenv: make a cluster of Redis: %v\n%s", err, out)
	}
	for _, n := range cluster.nodes {
		_, port, _ := net.SplitHostPort(n.addr)
		n.ready = func(ctx context.Context) error {
			info, err := n.Handle().Output(ctx, "redis-cli", "-p", port, "cluster", "info")
			if err == nil && !strings.Contains(info, "cluster_state:ok") {
				err = fmt.Errorf("the cluster is not ready: %s", info)
			}
			return err
		}
		must(t, "Redis", n.await(ctx))
	}
	return cluster
}

// Command runs a command of redis-cli in each node.
func (c *RedisCluster) Command(t testing.TB, words ...string) {
	t.Helper()
	for _, n := range c.nodes {
		_, port, err := net.SplitHostPort(n.addr)
		must(t, "Redis", err)
		_, err = n.Handle().Output(t.Context(), append([]string{"redis-cli", "-e", "-p", port}, words...)...)
		must(t, "run a command in Redis", err)
	}
}

// Addrs are host:port of all nodes.
func (c *RedisCluster) Addrs() []string {
	var addrs []string
	for _, n := range c.nodes {
		addrs = append(addrs, n.addr)
	}
	return addrs
}

func (c *RedisCluster) remove() error {
	var all errgroup.Group
	for _, n := range c.nodes {
		all.Go(n.remove)
	}
	return all.Wait()
}
