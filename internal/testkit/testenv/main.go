//go:build integration

package testenv

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

const loopback = "127.0.0.1"

// What the client library reads from the environment before the first container, where nobody has set it.
var settings = map[string]string{
	// It takes a machine with a file /.dockerenv for a container and would dial its default gateway; servers are
	// published on loopback only.
	"TESTCONTAINERS_HOST_OVERRIDE": loopback,
	// All packages of a `go test` share one reaper, which ends this long after the last of them let go. One that is
	// ending while the next package, just linked, turns to it, costs that package all its servers.
	"RYUK_RECONNECTION_TIMEOUT": "5m",
}

// Main runs the tests of a package that uses this one, removes the servers they
// shared and fails the run where a goroutine is left behind. It does not return.
// Call it from TestMain; ignored are leaks that the package knows of.
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
	// The connection to the reaper is meant to last as long as the process.
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
