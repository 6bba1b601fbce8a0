//go:build integration

package testenv

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
)

// PostgresPair is a primary and its synchronous standby, with a link between them that can be cut.
type PostgresPair struct {
	Primary, Standby *PostgresServer

	link *Wire
}

// standbyName is what the standby calls itself, and what the primary waits for.
const standbyName = "standby"

// joinStandby copies the primary and follows it. The address of the link comes first, then the standby's own host and port.
const joinStandby = `until pg_basebackup -R -X stream -c fast -D "$PGDATA" -d "host=$0 port=$1 user=postgres password=` + password + ` application_name=` + standbyName + `"
do rm -rf "$PGDATA"; sleep 0.2; done
chmod 700 "$PGDATA"
exec postgres -c max_connections=200 -c listen_addresses="$2" -c port="$3" -c unix_socket_directories=`

// OwnPostgresPair starts a primary and its standby for this test alone. The primary waits for the standby from the first
// call of Synchronous.
func OwnPostgresPair(t testing.TB) *PostgresPair {
	t.Helper()
	p := &PostgresPair{Primary: OwnPostgresWith(t, PostgresOptions{HostNetwork: true, Settings: []string{"wal_keep_size=256MB"}})}
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	must(t, "let the standby in", p.Primary.Handle().Run(ctx, "bash", "-c", `echo "host replication all 127.0.0.1/32 trust" >> "$PGDATA/pg_hba.conf"`))
	must(t, "let the standby in", p.Primary.exec(ctx, p.Primary.addr, `SELECT pg_reload_conf()`))
	var err error
	p.link, err = newWire(p.Primary.addr)
	must(t, "link the servers", err)
	t.Cleanup(p.link.Close)
	p.Standby, err = startStandby(engine(t), p.link.Addr())
	must(t, "Postgres", err)
	t.Cleanup(func() { must(t, "remove Postgres", p.Standby.remove()) })
	return p
}

func startStandby(docker *testcontainers.DockerClient, link string) (*PostgresServer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	fromHost, fromPort, err := net.SplitHostPort(link)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	req := testcontainers.ContainerRequest{
		Image: PostgresImage, User: "postgres",
		Env:                map[string]string{"PGDATA": "/tmp/standby"},
		Entrypoint:         []string{"bash", "-c", joinStandby, fromHost, fromPort, host, port},
		HostConfigModifier: func(host *container.HostConfig) { onHost(host) },
	}
	server := &PostgresServer{addr: addr}
	ready := func(ctx context.Context) error { return server.exec(ctx, addr, "SELECT 1") }
	server.node, err = launch(docker, req, nil, ready)
	if err != nil {
		return nil, err
	}
	return server, nil
}

// URL leads to a database of the server, with the rights of a superuser.
func (p *PostgresServer) URL(database string) string { return dsn(p.addr, database) }

// Synchronous has the primary wait for the standby from now on, and waits until it does.
func (p *PostgresPair) Synchronous(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	for _, sql := range []string{`ALTER SYSTEM SET synchronous_standby_names = '` + standbyName + `'`, `SELECT pg_reload_conf()`} {
		must(t, "wait for the standby", p.Primary.exec(ctx, p.Primary.addr, sql))
	}
	inSync := &node{ready: func(ctx context.Context) error {
		return p.Primary.exec(ctx, p.Primary.addr, `SELECT 1 / (SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync')`)
	}}
	must(t, "wait for the standby", inSync.await(ctx))
}

// CutOff ends the link between the two for good.
func (p *PostgresPair) CutOff() { p.link.Close() }

// Failover loses the primary, as a power cut would, and waits until the standby takes writes.
func (p *PostgresPair) Failover(t testing.TB) {
	t.Helper()
	p.Primary.Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	if err := p.Standby.exec(ctx, p.Standby.addr, `SELECT pg_promote()`); err != nil {
		must(t, "promote the standby", fmt.Errorf("promote: %w", err))
	}
}
