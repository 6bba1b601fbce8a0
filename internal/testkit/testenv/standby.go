//go:build integration

package testenv

import (
	"context"
	"fmt"
	"net"
	"path"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
)

// PostgresPair is a primary and its synchronous standby, with a link that can be cut. Roles change: after
// [PostgresPair.Promote] the standby is the primary, and [PostgresPair.Rejoin] gives it a new standby.
type PostgresPair struct {
	Primary, Standby *PostgresServer

	docker  *testcontainers.DockerClient
	options PairOptions
	link    *Wire
	dial    string // address of the primary for a standby
	servers int    // started so far
}

// PairOptions are those of both servers. Servers are counted from 0, with later ones that replace them.
type PairOptions struct {
	Settings []string                                   // as in [PostgresOptions]
	Binds    func(server int) ([]string, error)         // folders of this machine; a standby copies tablespaces into them
	Before   func(link string) (addr string, err error) // puts something before the link, and returns the address to dial
}

// standbyName is the standby's name, for which the primary waits.
const standbyName = "standby"

// joinStandby copies the primary and follows it. A restarted server keeps its copy, because it may be the primary.
// The arguments are those of the server. A failed copy is repeated in empty folders.
const joinStandby = `if ! [ -e /tmp/copied ]; then
	until pg_basebackup -R -X stream -c fast -D "$PGDATA" -d "$LINK"
	do rm -rf "$PGDATA" $SPACES; sleep 0.2; done
	chmod 700 "$PGDATA"
	touch /tmp/copied
fi
exec postgres -c unix_socket_directories= "$@"`

// OwnPostgresPair starts a primary and its standby for this test only. The primary waits for the standby after the
// first call of Synchronous.
func OwnPostgresPair(t testing.TB, options PairOptions) *PostgresPair {
	t.Helper()
	p := &PostgresPair{docker: engine(t), options: options}
	options.Settings = append([]string{"wal_keep_size=256MB"}, options.Settings...)
	p.options.Settings = options.Settings
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	binds, err := p.binds()
	must(t, "Postgres", err)
	p.Primary, err = startPostgres(p.docker, PostgresOptions{HostNetwork: true, Settings: options.Settings, Binds: binds})
	must(t, "Postgres", err)
	t.Cleanup(func() { must(t, "remove Postgres", p.Primary.remove()) })
	must(t, "let the standby in", p.Primary.Handle().Run(ctx, "bash", "-c", `echo "host replication all 127.0.0.1/32 trust" >> "$PGDATA/pg_hba.conf"`))
	must(t, "let the standby in", p.Primary.exec(ctx, p.Primary.addr, `SELECT pg_reload_conf()`))
	p.link, err = newWire(p.Primary.addr)
	must(t, "link the servers", err)
	t.Cleanup(p.link.Close)
	p.dial = p.link.Addr()
	if options.Before != nil {
		p.dial, err = options.Before(p.dial)
		must(t, "link the servers", err)
	}
	p.Standby, err = p.startStandby(ctx)
	must(t, "Postgres", err)
	t.Cleanup(func() { must(t, "remove Postgres", p.Standby.remove()) })
	return p
}

// binds returns the folders of the next server.
func (p *PostgresPair) binds() ([]string, error) {
	p.servers++
	if p.options.Binds == nil {
		return nil, nil
	}
	return p.options.Binds(p.servers - 1)
}

// startStandby makes a standby of the server at the other end of the link.
func (p *PostgresPair) startStandby(ctx context.Context) (*PostgresServer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	fromHost, fromPort, err := net.SplitHostPort(p.dial)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	binds, err := p.binds()
	if err != nil {
		return nil, err
	}
	var spaces []string
	for _, bind := range binds {
		_, inside, _ := strings.Cut(bind, ":")
		spaces = append(spaces, path.Join(inside, "*"))
	}
	args := []string{"bash", "-c", joinStandby, "bash"}
	for _, setting := range append([]string{"max_connections=200", "listen_addresses=" + host, "port=" + port}, p.options.Settings...) {
		args = append(args, "-c", setting)
	}
	req := testcontainers.ContainerRequest{
		Image: postgresImage(), User: "postgres",
		Env: map[string]string{
			"PGDATA": "/tmp/standby", "SPACES": strings.Join(spaces, " "),
			"LINK": fmt.Sprintf("host=%s port=%s user=postgres password=%s application_name=%s", fromHost, fromPort, password, standbyName),
		},
		Entrypoint: args,
		HostConfigModifier: func(host *container.HostConfig) {
			host.Binds = binds
			onHost(host)
		},
	}
	server := &PostgresServer{addr: addr}
	ready := func(ctx context.Context) error { return server.exec(ctx, addr, "SELECT 1") }
	if server.node, err = boot(ctx, p.docker, req, nil, ready); err != nil {
		return nil, err
	}
	if err := server.await(ctx); err != nil {
		_ = server.remove() // the reaper removes the rest
		return nil, fmt.Errorf("start a standby: %w", err)
	}
	return server, nil
}

// URL returns the URL of a database of the server, for a superuser.
func (p *PostgresServer) URL(database string) string { return dsn(p.addr, database) }

// Synchronous makes the primary wait for the standby from now on. It returns once the standby has all data.
func (p *PostgresPair) Synchronous(ctx context.Context) error {
	// The checkpointer makes commits wait once it has read the settings: it has when a checkpoint begins.
	for _, sql := range []string{`ALTER SYSTEM SET synchronous_standby_names = '` + standbyName + `'`, `SELECT pg_reload_conf()`, `CHECKPOINT`} {
		if err := p.Primary.exec(ctx, p.Primary.addr, sql); err != nil {
			return fmt.Errorf("wait for the standby: %w", err)
		}
	}
	return p.AwaitSync(ctx)
}

// AwaitSync returns once the primary has its synchronous standby, and the standby has all data.
func (p *PostgresPair) AwaitSync(ctx context.Context) error {
	inSync := &node{ready: func(ctx context.Context) error {
		for _, sql := range []string{
			`SELECT 1 / (SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync')`,
			`SELECT pg_logical_emit_message(true, 'testenv', '')`, // its commit waits until the standby has it
		} {
			if err := p.Primary.exec(ctx, p.Primary.addr, sql); err != nil {
				return err
			}
		}
		return nil
	}}
	return inSync.await(ctx)
}

// Alone makes the primary wait for no standby, until Synchronous.
func (p *PostgresPair) Alone(ctx context.Context) error {
	for _, sql := range []string{`ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`} {
		if err := p.Primary.exec(ctx, p.Primary.addr, sql); err != nil {
			return fmt.Errorf("wait for no standby: %w", err)
		}
	}
	return nil
}

// CutOff ends the link between the two for good.
func (p *PostgresPair) CutOff() { p.link.Close() }

// Promote returns once the standby takes writes. Then the pair's only other server is the old primary.
func (p *PostgresPair) Promote(ctx context.Context) error {
	if err := p.Standby.exec(ctx, p.Standby.addr, `SELECT 1 / pg_promote()::int`); err != nil {
		return fmt.Errorf("promote the standby: %w", err)
	}
	p.Primary, p.Standby = p.Standby, p.Primary
	return nil
}

// Rejoin ends the old primary after a promotion, and puts a copy of the new one in its place. It can be repeated.
func (p *PostgresPair) Rejoin(ctx context.Context) error {
	if err := p.Standby.remove(); err != nil {
		return fmt.Errorf("remove the former primary: %w", err)
	}
	p.link.Lead(p.Primary.addr)
	standby, err := p.startStandby(ctx)
	if err != nil {
		return err
	}
	p.Standby = standby
	return nil
}

// Failover kills the primary, like a power cut, and waits until the standby takes writes.
func (p *PostgresPair) Failover(t testing.TB) {
	t.Helper()
	p.Primary.Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	must(t, "fail over", p.Promote(ctx))
}
