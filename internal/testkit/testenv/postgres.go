//go:build integration

package testenv

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
)

// PostgresMajor returns the major version of Postgres for tests: DOCKET_TEST_POSTGRES, else 17.
func PostgresMajor() int {
	named := os.Getenv("DOCKET_TEST_POSTGRES")
	if named == "" {
		return 17
	}
	major, err := strconv.Atoi(named)
	if err != nil {
		panic(fmt.Sprintf("DOCKET_TEST_POSTGRES is %q and no major version of Postgres", named))
	}
	return major
}

// dataFolder is the data folder of the shared server, because the images of the versions differ in theirs.
const dataFolder = "/var/lib/postgresql/tested"

func postgresImage() string { return fmt.Sprintf("postgres:%d", PostgresMajor()) }

const password = "docket" // for a server that lives for one test run on loopback

// ShutdownMode is how Postgres ends its sessions at a shutdown.
type ShutdownMode string

// The modes in Postgres's documentation, by their signal.
const (
	Fast      ShutdownMode = "SIGINT"  // sessions end with 57P01, data is checkpointed
	Immediate ShutdownMode = "SIGQUIT" // sessions are cut, the next start recovers from the log
)

// PostgresServer is one Postgres server with any number of databases.
type PostgresServer struct {
	*node

	addr      string   // host:port on loopback
	templates sync.Map // name to *once[string]
	databases atomic.Int64
}

// Postgres returns the server that all tests of the binary share. All of them feel what a test does to it. A test
// that pauses, kills or restarts must not run in parallel, or must use [OwnPostgres].
func Postgres(t testing.TB) *PostgresServer {
	t.Helper()
	docker := engine(t)
	server, err := shared.postgres.get(func() (*PostgresServer, error) { return startPostgres(docker, PostgresOptions{Memory: true}) })
	must(t, "Postgres", err)
	return server
}

// OwnPostgres starts a server for this test only, until the test ends.
func OwnPostgres(t testing.TB) *PostgresServer {
	t.Helper()
	return OwnPostgresWith(t, PostgresOptions{})
}

// PostgresOptions change a test's own server.
type PostgresOptions struct {
	Settings []string // as in "max_connections=40"; the last of a name counts
	Binds    []string // folders of this machine, as in "/host/folder:/inside"

	// Memory is for a server with many short tests. Its data is in memory, where a sync costs nothing, and is lost
	// when the server stops. Its password is cheap to check.
	Memory bool

	Small map[string]string // folders in memory and their sizes, as in "/limited": "16m"

	HostNetwork bool // no proxy between server and client, for measurements
}

// OwnPostgresWith is [OwnPostgres] with options.
func OwnPostgresWith(t testing.TB, options PostgresOptions) *PostgresServer {
	t.Helper()
	server, err := startPostgres(engine(t), options)
	must(t, "Postgres", err)
	t.Cleanup(func() { must(t, "remove Postgres", server.remove()) })
	return server
}

func startPostgres(docker *testcontainers.DockerClient, options PostgresOptions) (*PostgresServer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	// It syncs as in production, because a killed server must come back with its committed data.
	req := testcontainers.ContainerRequest{
		Image: postgresImage(),
		Env:   map[string]string{"POSTGRES_PASSWORD": password},
		Cmd:   []string{"postgres", "-c", "max_connections=200"},
	}
	req.Tmpfs = map[string]string{}
	for folder, size := range options.Small {
		req.Tmpfs[folder] = "size=" + size
	}
	if options.Memory {
		req.Tmpfs[dataFolder], req.Env["PGDATA"] = "", dataFolder
		if PostgresMajor() >= 16 { // they have the parameter
			req.Env["POSTGRES_INITDB_ARGS"] = "-c scram_iterations=1"
		}
		req.Cmd = append(req.Cmd, "-c", "max_wal_size=256MB") // data in memory stays small
	}
	for _, setting := range options.Settings {
		req.Cmd = append(req.Cmd, "-c", setting)
	}
	ports := map[string]string{"5432/tcp": addr}
	if options.HostNetwork {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		req.Cmd = append(req.Cmd, "-c", "listen_addresses="+host, "-c", "port="+port)
		ports = nil
	}
	req.HostConfigModifier = func(host *container.HostConfig) {
		host.Binds = options.Binds
		if options.HostNetwork {
			onHost(host)
		}
	}
	server := &PostgresServer{addr: addr}
	ready := func(ctx context.Context) error { return server.exec(ctx, addr, "SELECT 1") }
	server.node, err = launch(docker, req, ports, ready)
	if err != nil {
		return nil, err
	}
	return server, nil
}

// Restart ends the server in the given mode and starts it again.
func (p *PostgresServer) Restart(t testing.TB, mode ShutdownMode) {
	t.Helper()
	p.Stop(t, mode)
	p.Start(t)
}

// Stop ends the server in the given mode; Start brings it back.
func (p *PostgresServer) Stop(t testing.TB, mode ShutdownMode) {
	t.Helper()
	p.signal(t, string(mode))
}

// Database makes an empty database for this test and returns its DSN, for a superuser. It is dropped when the test
// ends.
func (p *PostgresServer) Database(t testing.TB) string {
	t.Helper()
	return p.create(t, "template1")
}

// DatabaseFrom makes a database for this test from a template. prepare fills the template once for each name, so that
// a hundred tests migrate once.
func (p *PostgresServer) DatabaseFrom(t testing.TB, name string, prepare func(ctx context.Context, dsn string) error) string {
	t.Helper()
	slot, _ := p.templates.LoadOrStore(name, &once[string]{})
	template, err := slot.(*once[string]).get(func() (string, error) {
		database := fmt.Sprintf("template_%d", p.databases.Add(1))
		ctx, cancel := context.WithTimeout(context.Background(), startWait)
		defer cancel()
		if err := p.exec(ctx, p.addr, "CREATE DATABASE "+pgx.Identifier{database}.Sanitize()); err != nil {
			return "", err
		}
		return database, prepare(ctx, dsn(p.addr, database))
	})
	must(t, "prepare the template "+strconv.Quote(name), err)
	return p.create(t, template)
}

func (p *PostgresServer) create(t testing.TB, template string) string {
	t.Helper()
	database := fmt.Sprintf("test_%d", p.databases.Add(1))
	name := pgx.Identifier{database}.Sanitize()
	must(t, "create a database", p.exec(t.Context(), p.addr,
		"CREATE DATABASE "+name+" TEMPLATE "+pgx.Identifier{template}.Sanitize()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopWait)
		defer cancel()
		must(t, "drop a database", p.exec(ctx, p.addr, "DROP DATABASE "+name+" WITH (FORCE)"))
	})
	return dsn(p.addr, database)
}

// exec runs one statement in the database postgres, over a connection of its own.
func (p *PostgresServer) exec(ctx context.Context, addr, statement string) error {
	conn, err := pgx.Connect(ctx, dsn(addr, "postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

func dsn(addr, database string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword("postgres", password), Host: addr,
		Path: "/" + database, RawQuery: "sslmode=disable",
	}).String()
}
