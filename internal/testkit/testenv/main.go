//go:build integration

package testenv

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

const loopback = "127.0.0.1"

// Defaults for variables that the client library reads before the first container.
var settings = map[string]string{
	// The library takes a machine with a file /.dockerenv for a container and would dial its default gateway. Servers
	// are published on loopback only.
	"TESTCONTAINERS_HOST_OVERRIDE": loopback,
	// All packages of a `go test` share one reaper, which ends this long after the last of them disconnected. If it
	// ended while the next package connects, that package would lose all its servers.
	"RYUK_RECONNECTION_TIMEOUT": "5m",
}

// Main runs the tests of a package that uses this one, removes the shared servers, and fails if a goroutine leaks. It
// does not return. Call it from TestMain; ignored are known leaks of the package.
func Main(m *testing.M, ignored ...goleak.Option) {
	for name, value := range settings {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintf(os.Stderr, "testenv: set %s: %v\n", name, err)
			os.Exit(1)
		}
	}
	// The connection to the reaper lasts as long as the process.
	ignored = append(ignored,
		goleak.IgnoreAnyFunction("github.com/testcontainers/testcontainers-go.(*Reaper).connect.func1"))

	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(ignored...); err != nil {
			fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}
