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

// prepare makes a database cluster under dir and returns its server, which is not running. It fetches and unpacks Postgres where it
// has to. It calls say before slow steps.
func prepare(ctx context.Context, dir, cache string, say func(format string, args ...any)) (*server, error) {
	s := &server{data: filepath.Join(dir, dataName), logPath: filepath.Join(dir, "postgres.log"), password: rand.Text()}
	var err error
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	began := time.Now()
	if given := os.Getenv(EnvPostgresBin); given != "" {
		install, err := installation(given)
		if err != nil {
			return nil, err
		}
		say("postgres   uses the installation in %s", install)
		s.bin = filepath.Join(install, "bin")
		err = initialise(ctx, s, install, cache, dir)
		if err != nil {
			return nil, err
		}
	} else if err := unpacked(ctx, s, dir, cache, say); err != nil {
		return nil, err
	}
	say("postgres   a real server; initialised in %.1f s", time.Since(began).Seconds())
	return s, nil
}

// unpacked prepares with the binaries in the cache, which are fetched and unpacked first where they are missing.
func unpacked(ctx context.Context, s *server, dir, cache string, say func(format string, args ...any)) error {
	install := filepath.Join(cache, "postgres-"+string(postgresVersion))
	s.bin = filepath.Join(install, "bin")
	if _, err := os.Stat(s.bin); err == nil {
		return hint(initialise(ctx, s, install, cache, dir), cache)
	}
	if !fetched(cache) {
		say("postgres   downloading %s, about 15 MB, once; kept in %s", postgresVersion, cache)
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	removeHalves(cache)
	// The library unpacks into fresh and writes its temporary files beside fresh. Both are in one folder, which is removed.
	// A whole installation is renamed, so half of one is never used.
	folder := unpacking(cache, dir)
	err := os.RemoveAll(folder)
	if err == nil {
		err = os.Mkdir(folder, 0o700)
	}
	if err != nil {
		return fmt.Errorf("make a directory to unpack Postgres in: %w", err)
	}
	fresh := filepath.Join(folder, "postgres")
	s.bin = filepath.Join(fresh, "bin")
	if err := initialise(ctx, s, fresh, cache, dir); err != nil {
		return hint(err, cache) // the outer process removes the folder: the library may still write to it
	}
	defer func() { _ = os.RemoveAll(folder) }()
	s.bin = filepath.Join(install, "bin")
	if err := os.Rename(fresh, install); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("keep the unpacked Postgres: %w", err)
	}
	return nil // where it exists by now, another demo was faster
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
			return fmt.Errorf("set up Postgres (without a network, set %s to the bin directory of an installed one): %w", EnvPostgresBin, err)
		}
		return nil
	case <-ctx.Done():
		// The library cannot be interrupted. It ends with this process, or as soon as its directory is gone.
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
	return "", fmt.Errorf("%s=%s: initdb not found; set the directory of initdb, pg_ctl and postgres, such as /usr/lib/postgresql/17/bin", EnvPostgresBin, given)
}

// hint adds what helps when it is the cache that is broken.
func hint(err error, cache string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; if an earlier download may be broken, remove %s", err, cache)
}

// fetched says whether the archive is in the cache.
func fetched(cache string) bool {
	found, _ := filepath.Glob(filepath.Join(cache, "embedded-postgres-binaries-*-"+string(postgresVersion)+".txz")) // the pattern is well-formed
	return len(found) > 0
}

// unpacking is the folder in the cache where the demo of dir unpacks Postgres.
func unpacking(cache, dir string) string {
	return filepath.Join(cache, "unpacking-"+filepath.Base(dir))
}

// removeHalves removes files and folders that killed demos left in the cache: half installations and half downloads.
func removeHalves(cache string) {
	for _, pattern := range []string{"unpacking-*", "temp_*"} {
		halves, _ := filepath.Glob(filepath.Join(cache, pattern)) // the pattern is well-formed
		for _, half := range halves {
			if info, err := os.Lstat(half); err == nil && time.Since(info.ModTime()) > time.Hour {
				_ = os.RemoveAll(half) // only room is lost where it stays
			}
		}
	}
}

// freePort is a port that nobody listens on. It is random, so that two demos at once do not meet. It is below the ports of outgoing
// connections: one of these could take it while the server is down.
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
